"""Count what a geometric product in torch's operations launches and moves. See the exercise's text for the program.

Yours: the three functions. Each must be exact for any number of dimensions, batch and features.
"""


def launches(dimensions, batch, features):
    blades = 2**dimensions
    return blades * (2 * blades - 1) + 1


def requested_bytes(dimensions, batch, features):
    blades = 2**dimensions
    return (6 * blades - 1) * 4 * blades * batch * features


def entries(dimensions, batch, features):
    blades = 2**dimensions
    return 2 * blades**3 + blades * (blades - 1) + 1
