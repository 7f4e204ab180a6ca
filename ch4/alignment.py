"""Where rows begin in memory, and what Triton has to be told about it.

Triton sees by itself which arguments are multiples of 16, and compiles a kernel of its own for them. Rows of 200
elements of float16 also begin at multiples of 16 bytes, but 200 is not a multiple of 16: their elements are copied one
by one, 2 bytes each. `assume_multiple` says what the compiler cannot see, and they are copied 16 bytes at a time again.
Rows of 201 elements begin anywhere (`odd`): nothing helps but a copy, or a kernel that is made for single elements.
"""

import triton
import triton.language as tl

SEEN = 16  # of what Triton looks for multiples


def unit(x, *numbers):
    """The elements of x in 16 bytes, if all numbers are multiples of it and Triton does not see it by itself; else 1.

    A 1 does not count: Triton compiles it as a constant, which `assume_multiple` leaves alone. On a CPU it is always 1:
    in the interpreter a stride of 1 is no constant, and `assume_multiple` would make it 0.
    """
    elements, others = 16 // x.element_size(), [number for number in numbers if number != 1]
    seen = all(number % SEEN == 0 for number in others)
    told = x.device.type != "cpu" and not seen and all(number % elements == 0 for number in others)
    return elements if told else 1


def odd(x, *strides):
    """Is a stride of x's type neither 1 nor a multiple of 16 bytes? Then rows begin anywhere."""
    return any(stride != 1 and stride * x.element_size() % 16 for stride in strides)


@triton.jit
def assume_multiple(x, UNIT: tl.constexpr):
    """x, a multiple of UNIT, such that the compiler knows it."""
    if isinstance(x, int) or UNIT == 1:  # an int: a 1, which Triton compiles as a constant
        return x
    return x // UNIT * UNIT
