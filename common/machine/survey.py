"""This machine's description and limits, found in a child process, so that the caller needs no torch."""

from dataclasses import asdict
from functools import cache
from typing import Any

from common.isolation import worker
from common.machine.device import default_device, describe, use_device
from common.pairs.interpreter import environment_on
from common.pairs.user_error import UserError


class DeviceError(UserError):
    """The requested device cannot be used."""


@cache
def survey_apart(device: str | None, with_limits: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
    """(Description, limits) of this machine, found once in a child process, which may use CUDA. Raises DeviceError."""
    device = device or default_device()
    try:
        return worker.call(_survey, device, with_limits, environment=environment_on(device))
    except worker.ChildFailed as failure:
        raise DeviceError(str(failure).removeprefix("ValueError: ").removeprefix("RuntimeError: ")) from None


def _survey(device: str, with_limits: bool, report: worker.Report) -> tuple[dict[str, Any], dict[str, Any]]:
    from common.machine.limits import measure_limits

    report("device", 0.0)
    info = describe(device)
    use_device(device)
    report("limits", 0.5)
    limits = {key: asdict(limit) for key, limit in measure_limits(device).items()} if with_limits else {}
    return info, limits
