"""The most that torch offers: torch.compile that tries many kernels for each product, and makes graphs of its own.

A library has no `setup`: what it prepares for one set of addresses is kept until it is called with another.
"""

import gpt
import torch

loss_of = torch.compile(gpt.loss_of, mode="max-autotune", dynamic=False, fullgraph=True)
_prepared = {}


def step(words, state_weights, state_m, state_v, heads, vocabulary):
    """One step in bfloat16 by autocast with the padded vocabulary; the loss."""
    address = state_weights[0].data_ptr()
    if address not in _prepared:
        _prepared.clear()  # its graphs keep their memory
        weights = gpt.leaves(state_weights)
        for w in weights:
            torch._dynamo.mark_static_address(w)  # otherwise a graph copies all weights before each call
        _prepared[address] = weights, gpt.adamw(weights, state_m, state_v, fused=True)
    weights, optimizer = _prepared[address]
    with torch.autocast(words.device.type, torch.bfloat16):
        loss = loss_of(words.contiguous(), weights, heads, gpt.fused_attention, vocabulary=vocabulary)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach().clone()  # the next call writes where this one's loss is
