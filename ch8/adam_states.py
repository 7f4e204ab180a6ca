"""What an optimizer gets of a GPT: a list of weights with their gradients and Adam's moments, drawn and not trained."""

import gpt
import torch

BETAS = (0.9, 0.95)  # torch's fused kernel computes 1 - beta_2 in float32: 13 parts in a million are lost of 1 - 0.999


def drawn(layers, hidden, vocabulary, tokens, device):  # the arguments of `inputs`
    """Lists of tensors with the shapes of gpt.py's weights, in its order. Moments are of the gradients' size."""
    channels = (hidden,)
    layer = [
        channels, channels, (3 * hidden, hidden), (3 * hidden,), (hidden, hidden), channels,
        channels, channels, (4 * hidden, hidden), (4 * hidden,), (hidden, 4 * hidden), channels,
    ]  # fmt: skip
    shapes = [(vocabulary, hidden), (tokens, hidden), *layer * layers, channels, channels]

    def normal(std):
        return [torch.randn(shape, device=device).mul_(std) for shape in shapes]

    v = [x.square_().add_(gpt.GRADIENT**2) for x in normal(gpt.GRADIENT)]  # a mean of squares
    gradients, m = normal(gpt.GRADIENT), normal(gpt.GRADIENT)
    return {"gradients": gradients, "state_weights": normal(0.02), "state_m": m, "state_v": v}


def adamw(weights, state_m, state_v, **how):
    return gpt.adamw(weights, state_m, state_v, betas=BETAS, **how)
