"""AdamW, an operation for all tensors at once: some 30 launches instead of 608, and 20 floats moved for each weight.

Problem: `baseline_adamw.py` has a launch for each operation and each of 76 tensors. On a GPU the host is the limit.
Idea: `torch._foreach_mul_` and its like take lists of tensors. A kernel gets a table of addresses and sizes, and its
programs share all tensors in pieces of 65,536 elements. A launch has room for 320 pieces, so an operation on 45
million weights takes 3 or 4:

    tensor by tensor     8 operations * 76 tensors     608 launches
    lists of tensors     8 operations * 3 or 4          24 to 32

This is what AdamW does on a GPU if nothing is said.
Cost: the bytes of the loop, and s = sqrt(v) for all weights at once: 180 MB that the loop needed for one tensor only.
Predict: `optimized_adamw_fused.py` does all eight operations in one kernel. By what factor do its bytes differ? And
with 48 layers of 128 channels, 9.7 million weights in 580 tensors, does the loop or this version gain more from it?
"""

import adam_states
import gpt

CLOCK = "wall"


def inputs(layers=6, hidden=512, vocabulary=50_304, tokens=512, device="cuda"):
    return adam_states.drawn(layers, hidden, vocabulary, tokens, device)


def setup(gradients, state_weights, state_m, state_v):
    weights = gpt.leaves(state_weights)
    return {
        "weights": weights,
        "optimizer": adam_states.adamw(weights, state_m, state_v, foreach=True),
    }


def run(gradients, state_weights, state_m, state_v, weights, optimizer):
    for w, gradient in zip(weights, gradients, strict=True):
        w.grad = gradient  # no copy
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return ()  # the answer is what the states hold now
