"""AdamW in one kernel for lists of tensors: 7 floats moved for each weight instead of 20, in a few launches.

Problem: `optimized_adamw_foreach.py` still has a pass over memory for each of eight operations.
Idea: one kernel reads w, g, m and v of a weight, does everything in registers, and writes w, m and v (`fused=True`):

    eight operations     20 floats a weight     3.6 GB
    one kernel            7 floats a weight     1.3 GB

The number of steps lies on the device too, so that the kernel computes the corrections itself.
On a GPU the kernel computes 1 - beta_2 in float32. For 0.999 the result is too small by 13 parts in a million, for 0.95
too large by 0.2 parts. So beta_2 is 0.95 in this pair, as it was for GPT-3. An infinite gradient makes a NaN there.
Cost: the least. No temporary.
Predict: 124 million weights are trained with 16,384 tokens a step, 6 FLOPs for each of both, at 400 TFLOP/s. Memory
moves 4 TB/s. What part of the step's products does AdamW take, with 7 floats a weight, and with 20?
"""

import adam_states
import gpt

CLOCK = "wall"
VERSUS = "foreach"
STRESS = {  # on a GPU the kernel refuses these layouts, on a CPU it reads the gaps
    "-inf": "on a GPU two infinite numbers are subtracted from each other, which is NaN",
    "arrays with gaps": "autograd gives a gradient its weight's memory order",
    "arrays with wide gaps": "autograd gives a gradient its weight's memory order",
    "arrays with gaps in rows": "autograd gives a gradient its weight's memory order",
    "transposed arrays": "autograd gives a gradient its weight's memory order",
    "expanded arrays": "autograd gives a gradient its weight's memory order",
}


def inputs(layers=6, hidden=512, vocabulary=50_304, tokens=512, device="cuda"):
    return adam_states.drawn(layers, hidden, vocabulary, tokens, device)


def setup(gradients, state_weights, state_m, state_v):
    weights = gpt.leaves(state_weights)
    return {"weights": weights, "optimizer": adam_states.adamw(weights, state_m, state_v, fused=True)}


def run(gradients, state_weights, state_m, state_v, weights, optimizer):
    for w, gradient in zip(weights, gradients, strict=True):
        w.grad = gradient  # no copy
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return ()  # the answer is what the states hold now
