"""The record as data: dataclasses, the file, statistics, and what is committed under recorded/."""
