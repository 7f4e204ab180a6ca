"""The checks of calibrations as Markdown for a README."""

from dataclasses import astuple
from pathlib import Path

from common.calibration.findings import Findings
from common.show.tables import NOTHING, head, line, source

HEADINGS = ("check", "condition", "runs", "found", "accepted", "verdict")


def markdown(calibrations: list[tuple[Path, Findings]], hashes: dict[str, str]) -> str:
    """The checks of each calibration, one table per device; no figures if its pairs have changed since."""
    lines = []
    for path, findings in calibrations:
        lines += ["", f"{source((path, findings))}, in {findings.environment['took_s'] / 60:.1f} minutes", ""]
        if findings.source_hashes != hashes:
            lines.append("Stale: its pairs have changed since.")
            continue
        lines += [*head(HEADINGS), *map(line, rows(findings, "passed", "**not passed**"))]
    return "\n".join(lines).strip() or NOTHING


def rows(findings: Findings, passed: str, failed: str) -> list[list[str]]:
    """One row per check, with its verdict in these words."""
    return [[*map(str, astuple(check)[:-1]), passed if check.passed else failed] for check in findings.checks]
