"""What a child process gets of its user's environment, and what its user is told of its silence."""

import os
import subprocess
import sys

import pytest

from common.pairs.pair import ROOT

PROBE = """
import os, sys
sys.path.insert(0, {root!r})

def look(say):
    from triton import knobs
    wanted = "TRITON_INTERPRET", "TRITON_DEFAULT_FP_FUSION", "TRITON_CACHE_DIR"
    return [os.environ.get(name) for name in wanted], knobs.runtime.interpret

if __name__ == "__main__":
    from common.isolation import forkserver, worker
    from common.pairs.interpreter import INTERPRETED
    forkserver.prefer("triton")
    print(worker.call(look), worker.call(look, environment=INTERPRETED), os.environ["TRITON_INTERPRET"])
"""


def test_a_child_interprets_where_it_is_told_to_and_not_where_its_user_does(tmp_path):
    pytest.importorskip("triton")
    (probe := tmp_path / "probe.py").write_text(PROBE.format(root=str(ROOT)))
    chosen = {"TRITON_INTERPRET": "1", "TRITON_DEFAULT_FP_FUSION": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, probe], env={**os.environ, **chosen}, capture_output=True, text=True, check=False
    )
    place = f"None, {str(tmp_path)!r}"
    assert run.stdout == f"([None, {place}], False) (['1', {place}], True) 1\n", run.stderr
