"""The names of the draws of common.checks.stress, for who does without torch: STRESS leaves some of them out."""

DRAWS = (
    "arrays with gaps", "values around 100", "values around 10,000", "zeros", "a constant", "halves of opposite sign",
    "-0.0 and denormals", "-inf", "NaN", "the largest integers", "the smallest integers",
)  # fmt: skip
