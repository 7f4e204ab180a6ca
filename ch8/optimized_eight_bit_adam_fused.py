"""AdamW with moments of 8 bits in one kernel: 16 bytes moved for each weight instead of 220.

Problem: `baseline_eight_bit_adam.py` writes each number between two operations to memory, and reads it again.
Idea: a program has a block of 256 weights and does everything in registers. The new scale is a maximum over the block.
A program of one warp has the whole block, 8 weights a lane, so the maximum needs no shared memory and no barrier:

    read      g 4, w 4, m 1, v 1
    write          w 4, m 1, v 1
    scales    16 bytes a block of 256

A code has to be the baseline's, and a number at the edge between two codes becomes the other one if an earlier rounding
differs. So no product is fused with a sum (`enable_fp_fusion`), and what codes depend on is rounded correctly (`_rn`).
Cost: 16.06 bytes a weight, one launch.
Predict: a program reads 2.6 KB, and all of it before its first result. An SM has room for 32 programs. How many bytes
can 132 SMs have on the way, and is that enough for memory's rate, if 4.8 MB must be on the way?
"""

import torch
import triton
import triton.language as tl

BLOCK = 256  # weights that share a scale
LR, DECAY, BETA_1, BETA_2, EPS = 3e-4, 0.1, 0.9, 0.999, 1e-8
TINY = 1e-30  # the least scale that is divided by: a block may be all zeros
STRESS = {
    "NaN": "who trains looks for it before a step, and leaves the step out; a NaN has no code",
    "-inf": "who trains looks for it before a step, and leaves the step out; its block has no scale",
}


def inputs(blocks=65_536, device="cuda"):
    state = {
        "state_weights": torch.randn(blocks, BLOCK, device=device) * 0.02,
        "state_m": torch.randint(-127, 128, (blocks, BLOCK), device=device, dtype=torch.int8),
        "state_m_scale": (torch.rand(blocks, 1, device=device) + 0.5) * (4e-3 / 127),
        "state_v": torch.randint(1, 256, (blocks, BLOCK), device=device, dtype=torch.uint8),
        "state_v_scale": (torch.rand(blocks, 1, device=device) + 0.5) * (4e-3 / 255),
    }
    return {"gradient": torch.randn(blocks, BLOCK, device=device) * 2e-3, **state}


@triton.jit
def adam_kernel(
    g_ptr, w_ptr, m_ptr, m_scale_ptr, v_ptr, v_scale_ptr,
    LR: tl.constexpr, DECAY: tl.constexpr, BETA_1: tl.constexpr, BETA_2: tl.constexpr, EPS: tl.constexpr,
    TINY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0).to(tl.int64)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    g, w = tl.load(g_ptr + offsets), tl.load(w_ptr + offsets)
    m = tl.load(m_ptr + offsets).to(tl.float32) * tl.load(m_scale_ptr + pid)
    root = tl.load(v_ptr + offsets).to(tl.float32) * tl.load(v_scale_ptr + pid)
    m = BETA_1 * m + (1 - BETA_1) * g
    root = tl.sqrt_rn(BETA_2 * (root * root) + (1 - BETA_2) * (g * g))
    tl.store(w_ptr + offsets, w * (1 - LR * DECAY) - LR * m / (root + EPS))
    m_scale, v_scale = tl.max(tl.abs(m), 0) * (1 / 127), tl.max(root, 0) * (1 / 255)
    m_code = tl.floor(m * tl.div_rn(1.0, tl.maximum(m_scale, TINY)) + 0.5)
    v_code = tl.floor(root * tl.div_rn(1.0, tl.maximum(v_scale, TINY)) + 0.5)
    tl.store(m_ptr + offsets, m_code.to(tl.int8))
    tl.store(v_ptr + offsets, tl.maximum(v_code, 1.0).to(tl.uint8))
    tl.store(m_scale_ptr + pid, m_scale)
    tl.store(v_scale_ptr + pid, v_scale)


def run(gradient, state_weights, state_m, state_m_scale, state_v, state_v_scale):
    states = (state_weights, state_m, state_m_scale, state_v, state_v_scale)
    numbers = (LR, DECAY, BETA_1, BETA_2, EPS, TINY, BLOCK)
    how = {"num_warps": 1, "enable_fp_fusion": False}  # a product and a sum are two roundings
    adam_kernel[(len(gradient),)](gradient.contiguous(), *states, *numbers, **how)
    return ()  # the answer is what the states hold now
