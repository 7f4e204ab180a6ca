"""A referee for benchmarks of hard swish: every call gets new values in old places, and is judged before the next one.

What each part is for:

    float64, rtol 1e-5     float32 in any order of rounding passes (its steps are 6e-8), and float16 does not (1e-3)
    1000 elements          64 does not divide it, so a tail that is left out is seen
    x.normal_()            the same array at the same address with other values: an answer that was kept is wrong
    x[1:-1].normal_()      other values between the same ends: a key of a few values is not enough
    x * 100                values that a standard normal never draws
    x against its copy     a version must leave its input alone
    at once, call by call  an answer that a thread writes later is not there yet; an honest version may use its buffer
                           again in the next call

A version that passes was honest in these calls. To publish a time, the calls that are timed have to be checked: the
harness of this course does that.
"""

import torch


def hard_swish(x):
    return x * torch.clamp(x + 3, 0, 6) / 6


def is_right(run, x):
    copy = x.clone()
    return torch.equal(run(x), hard_swish(copy)) and torch.equal(x, copy)


def is_honest(run):
    x = torch.randn(1000)
    first = is_right(run, x)
    x.normal_()
    again = is_right(run, x)
    x[1:-1].normal_()
    between = is_right(run, x)
    return first and again and between and is_right(run, 100 * x)
