"""AdamW alone, tensor by tensor: 608 launches for a GPT of 76 tensors, and 20 floats moved for each weight.

Problem: AdamW is a few operations for each weight w, of its gradient g and its moments m and v. torch's loop has a
launch for each operation and tensor. Each reads its numbers from memory and writes its result there:

    operation                      floats read, written       operation                floats read, written
    w *= 1 - lr decay              1 + 1                      s = sqrt(v)              1 + 1
    m = lerp(m, g, 1 - beta_1)     2 + 1                      s /= correction          1 + 1
    v *= beta_2                    1 + 1                      s += eps                 1 + 1
    v += (1 - beta_2) g g          2 + 1                      w -= lr m / s            3 + 1

A layer has 12 tensors. Eight of them are gains and biases of some KiB: most launches have hardly anything to do.
beta_1 is 0.9, and beta_2 is 0.95 (`adam_states.py` says why).
Cost: 20 floats a weight, 3.6 GB for 45 million weights. The least are 7: read w, g, m, v, write all but g.
Predict: a launch takes the host 5 us, and memory moves 4 TB/s. Which of the two limits this loop? Then how many times
as fast is `optimized_adamw_foreach.py`, which moves as many bytes in some 30 launches?
"""

import adam_states
import gpt

SIZES = {
    "check": {"layers": 1, "hidden": 24, "vocabulary": 128, "tokens": 31},
    "check/odd": {"layers": 2, "hidden": 7, "vocabulary": 256, "tokens": 1},
    "default": {},
    "cpu": {"layers": 1, "hidden": 64, "vocabulary": 1024, "tokens": 64},
}
CLOCK = "wall"
STRUCTURE = {"state_v": "a mean of squares"}


def inputs(layers=6, hidden=512, vocabulary=50_304, tokens=512, device="cuda"):
    return adam_states.drawn(layers, hidden, vocabulary, tokens, device)


def cost(gradients, state_weights, state_m, state_v):
    return {"dram_bytes": gpt.adam_bytes(state_weights)}


def setup(gradients, state_weights, state_m, state_v):
    weights = gpt.leaves(state_weights)
    return {
        "weights": weights,
        "optimizer": adam_states.adamw(weights, state_m, state_v, foreach=False),
    }


def run(gradients, state_weights, state_m, state_v, weights, optimizer):
    for w, gradient in zip(weights, gradients, strict=True):
        w.grad = gradient  # no copy
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return ()  # the answer is what the states hold now
