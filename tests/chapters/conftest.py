"""What the chapters' tests share: the packages of chapters 4 and 5, and inputs that are the same in every run."""

import sys

import pytest
import torch

from common.pairs.pair import ROOT

sys.path += [
    str(ROOT / "ch4"),
    str(ROOT / "ch5"),
]  # by the names that pairs import them by: they exist once


@pytest.fixture(autouse=True)
def _same_numbers_in_every_run():
    torch.manual_seed(0)
