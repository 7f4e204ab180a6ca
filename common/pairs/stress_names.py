"""The names of the draws of common.checks.stress, without importing torch. A STRESS leaves some of them out."""

DRAWS = (
    "arrays with gaps", "arrays with wide gaps", "values around 100", "values around 10,000", "values around 0.001",
    "values near -100", "zeros", "a constant", "halves of opposite sign", "-0.0 and denormals", "-inf", "NaN",
    "arrays of one sign", "the largest integers", "the smallest integers",
)  # fmt: skip
