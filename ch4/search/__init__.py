"""The search for a configuration of `gemm.py`'s kernel, in generations; `tune.py` is its command line.

space.py says what there is to try, proposers.py and model.py what to try next, examine.py compiles it, measure.py has
the engine verify and time it, as versions made from candidate.py, history.py keeps what came of it; generations.py is
the loop, show.py the report, sweeps.py holds a search against an exhaustive one, commands.py does what the command
line asks.
"""
