"""The command lines: arguments, counts, profiles, regressions, READMEs; what a chapter's compare.py needs."""
