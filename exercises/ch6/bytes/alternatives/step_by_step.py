"""Count what collectives send: the bytes, and the number of sends, of the process that sends most.

Yours: the six functions at the end. The five programs are what is counted; changing them here changes nothing.
`x` is float32 [n], another one in each process; n is a multiple of the number of processes, which is a power of two.
"""


def star_bytes(n, ranks):
    return sum(4 * n for other in range(1, ranks))


def ring_bytes(n, ranks):
    chunk = 4 * n // ranks
    adding = handing_out = (ranks - 1) * chunk
    return adding + handing_out


def ring_sends(n, ranks):
    return (ranks - 1) + (ranks - 1)


def doubling_bytes(n, ranks):
    sent, distance = 0, 1
    while distance < ranks:
        sent, distance = sent + 4 * n, 2 * distance
    return sent


def gather_bytes(n, ranks):
    return 4 * n * (ranks - 1)


def exchange_bytes(n, ranks):
    return 4 * n - 4 * n // ranks
