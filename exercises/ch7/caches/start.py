"""Count what three caches move and what memory they take: grown by `torch.cat`, static, and in blocks.

Yours: the six functions at the end. The three programs are what is counted; changing them here changes nothing.
`rows`: for each sequence its rows, float16 [length, width]. They come from elsewhere, and are not counted as memory.
"""

import torch


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


def grown_bytes(lengths, room, block, width):
    return 0  # yours: bytes that `grown` reads and writes


def grown_peak(lengths, room, block, width):
    return 0  # yours: the most bytes that the arrays of `grown` take at a time


def static_bytes(lengths, room, block, width):
    return 0  # yours: bytes that `static` reads and writes


def static_memory(lengths, room, block, width):
    return 0  # yours: bytes of all arrays of `static`


def paged_bytes(lengths, room, block, width):
    return 0  # yours: bytes that `paged` reads and writes


def paged_memory(lengths, room, block, width):
    return 0  # yours: bytes of all blocks of `paged`
