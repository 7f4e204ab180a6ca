"""Three caches that receive rows one at a time: grown by `torch.cat`, static, and in blocks."""

import torch

SIZES = {
    "three": {"lengths": [2, 5, 3], "room": 8, "block": 4, "width": 16},
    "two": {"lengths": [9, 4], "room": 9, "block": 2, "width": 8},
    "unseen/four": {"lengths": [6, 1, 16, 7], "room": 20, "block": 8, "width": 4},
    "unseen/long": {"lengths": [30, 2], "room": 31, "block": 5, "width": 12},
}


def inputs(lengths, room, block, width, device="cpu"):
    rows = [torch.ones(n, width, dtype=torch.float16, device=device) for n in lengths]
    return {"rows": rows, "room": room, "block": block}


def grown(rows, room, block):
    caches = []
    for of_sequence in rows:
        cache = of_sequence[:0]  # a view without rows
        for i in range(len(of_sequence)):
            cache = torch.cat([cache, of_sequence[i : i + 1]])
        caches.append(cache)
    return caches


def static(rows, room, block):
    caches = []
    for of_sequence in rows:
        cache = of_sequence.new_empty(room, of_sequence.shape[1])
        for i in range(len(of_sequence)):
            cache[i] = of_sequence[i]
        caches.append(cache)
    return caches


def paged(rows, room, block):
    caches = []
    for of_sequence in rows:
        blocks = []
        for i in range(len(of_sequence)):
            if i % block == 0:  # the last block is full
                blocks.append(of_sequence.new_empty(block, of_sequence.shape[1]))
            blocks[-1][i % block] = of_sequence[i]
        caches.append(blocks)
    return caches
