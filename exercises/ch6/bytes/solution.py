"""What collectives send, from their steps: (p - 1) / p of something, or log2(p) times all of it.

Three programs have the same answer, the sum of all vectors. With p processes

    star        process 0 sends p - 1 vectors; p - 1 and p - 1 transfers at one link, one after the other
    doubling    log2(p) vectors from each process, in log2(p) steps
    ring        2 (p - 1) / p vectors from each process, in 2 (p - 1) steps

The link of a star's middle carries more with every process. A ring sends fewer than two vectors, whatever p is: so
libraries use rings for large vectors, where bytes take the time. For small ones each step is a latency, and few steps
win: trees and doubling.

`gather` hands on whole vectors, p - 1 of them. `exchange` keeps one part of p and sends the others. Both are what has
to be sent at least. So is the ring: half of it adds up (a reduce-scatter), half of it is an all-gather of chunks.
"""


def star_bytes(n, ranks):
    return 4 * n * (ranks - 1)


def ring_bytes(n, ranks):
    return 2 * (ranks - 1) * 4 * (n // ranks)


def ring_sends(n, ranks):
    return 2 * (ranks - 1)


def doubling_bytes(n, ranks):
    return 4 * n * (ranks.bit_length() - 1)


def gather_bytes(n, ranks):
    return 4 * n * (ranks - 1)


def exchange_bytes(n, ranks):
    return (ranks - 1) * 4 * (n // ranks)
