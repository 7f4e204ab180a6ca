"""The checks of calibrations as Markdown for a README."""

from dataclasses import astuple
from pathlib import Path

from common.show.layout import markdown_table
from common.show.tables import NOTHING, source
from tools.calibration.findings import Findings

HEADINGS = ("check", "condition", "runs", "found", "accepted", "verdict")


def markdown(calibrations: list[tuple[Path, Findings]], hashes: dict[str, str]) -> str:
    """The checks of each calibration, one table per device; no figures if its pairs have changed since."""
    parts = []
    for path, findings in calibrations:
        is_current = findings.source_hashes == hashes
        table = markdown_table(HEADINGS, rows(findings, "passed", "**not passed**"))
        parts.append(f"{source((path, findings))}, in {findings.environment['took_s'] / 60:.1f} minutes")
        parts.append(table if is_current else "Stale: its pairs have changed since.")
    return "\n\n".join(parts) or NOTHING


def rows(findings: Findings, passed: str, failed: str) -> list[list[str]]:
    """One row per check, with its verdict in these words."""
    return [[*map(str, astuple(check)[:-1]), passed if check.passed else failed] for check in findings.checks]
