"""Two clones that share an environment: a notebook says which one it imports, and refuses the other one's."""

import os
import subprocess
import sys

import pytest
from cells import told

from common.notebook import checkout
from common.notebook.checkout import MARK, OtherCheckout
from common.pairs.pair import ROOT


@pytest.fixture
def other(tmp_path):
    """Another checkout, with its reader's folder."""
    (tmp_path / "clone" / MARK).mkdir(parents=True)
    (work := tmp_path / "clone/work").mkdir()
    return work


def test_another_checkouts_modules_are_refused_with_the_way_out(other):
    with pytest.raises(OtherCheckout) as refusal:
        checkout.check(other)
    line = told(refusal.value)
    assert f"this notebook is of {other.parent}, but Python imports the course from {ROOT}: " in line
    assert f"`make lab` in {other.parent}" in line


@pytest.mark.parametrize("folder", [ROOT, ROOT / "notebooks", ROOT.parent])
def test_its_own_and_those_of_no_checkout_are_imported(folder):
    assert checkout.check(folder) == f"imports the course from {ROOT}"


CELL = "from common.notebook import nb"


@pytest.mark.rest
@pytest.mark.parametrize(("forecaster", "said"), [("", f"imports the course from {ROOT}\n"), ("naive", "")])
def test_a_cell_says_what_it_imports_and_kept_outputs_do_not(forecaster, said):
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SPEED_OF_LIGHT_FORECASTER": forecaster}
    command = [sys.executable, "-m", "IPython", "--colors=NoColor", "-c", CELL]
    run = subprocess.run(command, cwd=ROOT / "notebooks", env=env, capture_output=True, text=True, check=True)
    assert run.stdout == said


@pytest.mark.rest
def test_a_cell_in_another_checkout_ends_without_a_traceback(other):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "IPython", "--colors=NoColor", "-c", CELL]
    run = subprocess.run(command, cwd=other, env=env, capture_output=True, text=True, check=False)
    out = run.stdout + run.stderr
    assert "this notebook is of" in out and "Traceback" not in out and out.count("\n") < 8
