"""The record as data: what a run found, as dataclasses and as a file; its statistics; what is committed of it."""
