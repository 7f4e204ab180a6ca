"""Gradients of 16 sequences, 4 at a time: a quarter of the activations, 0.47 GiB, and gradients are read and added.

Problem: `baseline_accumulation.py` keeps the activations of all 8192 tokens until the backward pass.
Idea: the loss is a mean over sequences, so its gradient is the weighted sum of those of its parts. `backward` adds to
`.grad`: if nothing sets it to zero between two parts, it holds their sum. A part's activations are given back before
the next part begins:

    1.9 GiB / 4 = 0.47 GiB

Two mistakes are easy to make. `loss_of` is the mean of a part: without a weight, the sum is 4 times the
gradient. And parts may be unequal, as the last one of a data set: a part counts with its share of the sequences, not
with 1 / parts. (Where sequences are padded, with its share of the tokens that count.)
Cost: as many FLOPs, in 4 times the launches, each with a quarter of the work: if the host takes longer for a part's
launches than the GPU for its kernels, the GPU waits. Weights are read for each part, and three times a gradient is
added: 2 * 80 MiB are read, 80 written.
Predict: with sequences of 64 tokens instead of 512, a part is 256 tokens. Which of these costs shows first?
"""

import gpt

PART = 4  # sequences


def inputs(batch=16, tokens=512, layers=6, hidden=512, heads=8, vocabulary=4096, device="cuda"):
    return gpt.drawn_for_gradients(batch, tokens, layers, hidden, heads, vocabulary, device)


def run(words, weights, heads):
    weights = gpt.leaves(weights)
    mean = 0
    for part in words.split(PART):
        loss = gpt.loss_of(part, weights, heads, gpt.fused_attention) * (len(part) / len(words))
        loss.backward()  # adds to .grad, and gives the activations back
        mean += loss.detach()
    return mean, gpt.gradients_of(weights)
