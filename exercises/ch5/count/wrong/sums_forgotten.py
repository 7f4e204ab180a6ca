"""Count what a geometric product in torch's operations launches and moves. See the exercise's text for the program.

Yours: the three functions. Each must be exact for 2 and 3 dimensions and for any batch and features.
"""


def launches(dimensions, batch, features):
    blades = 2**dimensions
    return blades**2 + 1


def requested_bytes(dimensions, batch, features):
    blades = 2**dimensions
    blade_bytes = 4 * batch * features
    operations = blades**2 + blades * (blades - 1)
    return 3 * operations * blade_bytes + 2 * blades * blade_bytes


def entries(dimensions, batch, features):
    blades = 2**dimensions
    return blades**2 + blades**3 + (blades**3 - blades) + 1
