"""Count what a geometric product in torch's operations launches and moves. See the exercise's text for the program.

Yours: the three functions. Each must be exact for 2 and 3 dimensions and for any batch and features.
"""


def launches(dimensions, batch, features):
    return {2: 29, 3: 121}[dimensions]


def requested_bytes(dimensions, batch, features):
    blades = 2**dimensions
    return (6 * blades - 1) * 4 * blades * batch * features


def entries(dimensions, batch, features):
    return {2: 141, 3: 1081}[dimensions]
