"""AdamW with moments of 8 bits in torch's operations: 6 bytes less to keep for each weight, and 220 to move.

Problem: Adam keeps two float32 moments for each weight: 8 bytes beside the weight's 4. They can be codes of 8 bits,
with a float32 scale for each block of 256 weights: 2.03 bytes. A step then decodes, updates, and encodes them again:

    m: signed, linear               code -127 ... 127, m = code * scale          scale = largest |m| / 127
    v: the code is of its root      code    1 ... 255, v = (code * scale) ** 2   scale = largest root / 255

A root has half as many orders of magnitude as v, so fewer of them are small beside the largest. None becomes 0, since
a code is at least 1: with v = 0 a step of lr * m / (sqrt(v) + 1e-8) would be thousands of times too long. Rounded up to
1 it is too short. An m that becomes 0 makes no step.
Cost: 38 operations, most of them passes over memory. At least 16 bytes must move: read g, w, m and v, write all but g.

    bytes per weight: m 33, v 49, sqrt(v) 8, w 48, codes of m 41, codes of v 41     220

Predict: `optimized_eight_bit_adam_fused.py` is one kernel. How many times as fast is it, if memory is the limit? And
how much faster than one kernel with float32 moments (`yardstick_float32`), which moves 28 bytes?
"""

import torch
from torch.optim.adamw import adamw

SIZES = {
    "check": {"blocks": 7},
    "check/one": {"blocks": 1},
    "count": {"blocks": 64},
    "default": {},
    "cpu": {"blocks": 1024},
}
BLOCK = 256  # weights that share a scale
LR, DECAY, BETA_1, BETA_2, EPS = 3e-4, 0.1, 0.9, 0.999, 1e-8
TINY = 1e-30  # the least scale that is divided by: a block may be all zeros
STRUCTURE = {"state_m": "-127 to 127", "state_m_scale": "not negative", "state_v_scale": "not negative"}


def inputs(blocks=65_536, device="cuda"):
    state = {
        "state_weights": torch.randn(blocks, BLOCK, device=device) * 0.02,
        "state_m": torch.randint(-127, 128, (blocks, BLOCK), device=device, dtype=torch.int8),
        "state_m_scale": (torch.rand(blocks, 1, device=device) + 0.5) * (4e-3 / 127),
        "state_v": torch.randint(1, 256, (blocks, BLOCK), device=device, dtype=torch.uint8),
        "state_v_scale": (torch.rand(blocks, 1, device=device) + 0.5) * (4e-3 / 255),
    }
    return {"gradient": torch.randn(blocks, BLOCK, device=device) * 2e-3, **state}


def yardstick_float32(gradient, state_weights, state_m, state_m_scale, state_v, state_v_scale):
    """As many weights, with moments in float32. Their values are of no interest, only the time."""
    m, v = torch.empty_like(gradient), torch.empty_like(gradient)
    how = {"amsgrad": False, "beta1": BETA_1, "beta2": BETA_2, "lr": LR, "weight_decay": DECAY, "eps": EPS}
    steps = [torch.full((), 1e6, device=gradient.device)]
    adamw([state_weights], [gradient], [m], [v], [], steps, fused=True, maximize=False, **how)
    return ()


def cost(gradient, state_weights, state_m, state_m_scale, state_v, state_v_scale):
    states = (state_weights, state_m, state_m_scale, state_v, state_v_scale)
    return {"dram_bytes": gradient.nbytes + 2 * sum(x.nbytes for x in states)}


def run(gradient, state_weights, state_m, state_m_scale, state_v, state_v_scale):
    """A step after so many that Adam's corrections for the first ones are 1."""
    m = BETA_1 * (state_m * state_m_scale) + (1 - BETA_1) * gradient
    root = state_v * state_v_scale
    root = (BETA_2 * (root * root) + (1 - BETA_2) * (gradient * gradient)).sqrt()
    state_weights.mul_(1 - LR * DECAY).sub_(LR * m / (root + EPS))
    m_scale, v_scale = m.abs().amax(1, keepdim=True) * (1 / 127), root.amax(1, keepdim=True) * (1 / 255)
    state_m.copy_((m * (1 / m_scale.clamp(min=TINY)) + 0.5).floor())
    state_v.copy_((root * (1 / v_scale.clamp(min=TINY)) + 0.5).floor().clamp(min=1))
    state_m_scale.copy_(m_scale)
    state_v_scale.copy_(v_scale)
    return ()  # the answer is what the states hold now
