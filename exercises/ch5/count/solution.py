"""Kernels and bytes of a geometric product, from the number of blades D = 2^dimensions.

Each of the D * D pairs of blades gives one blade, so `run` has D * D products. Each blade of the answer is the sum of D
of them, which takes D - 1 additions or subtractions, so D * (D - 1) in all; then one stack. Each product and each sum
reads two blades and writes one, 3 u / D (u: the bytes of x); the stack reads and writes 1 u each. That is (6 D - 1) u:
47 u in 3D, where 3 u are the least. `all_entries` multiplies each product with D signs, D - 1 of which are 0. It adds
all of them up: D * D + D^3 + (D^3 - D) + 1 kernels, 1081 in 3D for 121.
"""


def launches(dimensions, batch, features):
    blades = 2**dimensions
    return blades**2 + blades * (blades - 1) + 1


def requested_bytes(dimensions, batch, features):
    blades = 2**dimensions
    blade_bytes = 4 * batch * features
    operations = blades**2 + blades * (blades - 1)
    return 3 * operations * blade_bytes + 2 * blades * blade_bytes


def entries(dimensions, batch, features):
    blades = 2**dimensions
    return blades**2 + blades**3 + (blades**3 - blades) + 1
