"""The work that a version gives a GPU, as text: every torch operation and every launch with its machine code.

The work is found on tensors without memory, on any machine. Two versions with equal texts give equal work, whatever
names their files use.
"""

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch

from common.pairs.eager_mode import EagerMode
from common.pairs.pair import load
from common.pairs.user_error import UserError
from common.xray.capture import Launch, TritonLaunch, as_if_cuda, recorded_launches
from common.xray.compilers import Binary, compile_for
from common.xray.occupancy import MACHINES, Machine
from common.xray.sass import machine_code

UNSEEN = "cannot be seen"  # a line with this prefix gives the reason
Work = dict[str, list[str]]  # function -> what it does
PLACE = re.compile(r' loc\((?:[^()"]|"[^"]*"|\([^()]*\))*\)')  # in Triton's code: loc(#loc7), loc("x"(#loc))


def works(
    path: Path, names: Sequence[str], sizes: Sequence[dict], architecture: str, say: Callable[[str, float], None]
) -> list[Work]:
    """For each set of arguments: what these functions of a file do, a line for each operation.

    `run` comes after `setup`; of `cost` the line has the amounts. A line that begins with UNSEEN says why there are no
    others. Must run in its own process.
    """
    machine, work = MACHINES[architecture], []
    for number, arguments in enumerate(sizes):
        say(str(path), number / len(sizes))
        work.append(_works(path, names, arguments, machine))
    return work


def _works(path: Path, names: Sequence[str], arguments: dict[str, Any], machine: Machine) -> Work:
    done: dict[str, list[str | Launch]] = {}
    with recorded_launches(lambda launch: done[name].append(launch), machine):
        module = load(path)
        for name in names:
            done[name] = []
            try:
                _call(module, name, arguments, done[name])
            except Exception as error:  # noqa: BLE001 (any need for a missing GPU)
                done[name] = [f"{UNSEEN}: {type(error).__name__}"]
    return {name: [_line(event, machine) for event in events] for name, events in done.items()}


def _call(module: ModuleType, name: str, arguments: dict[str, Any], events: list[str | Launch]) -> None:
    if name == "cost":
        events.append(f"cost {module.cost(**module.inputs(**arguments, device='meta'))}")
        return
    random.seed(0)
    torch.manual_seed(0)  # a number drawn by `inputs` may be an argument of a launch
    # not for a library, which would ask torch.compile for code: that needs a GPU
    compiling = patch.object(torch, "compile", _compile_noted(events))
    with _Operations(events), compiling, as_if_cuda() if name == "run" else nullcontext():
        inputs = module.inputs(**arguments, device="meta")
        state = module.setup(**inputs) if name == "run" and hasattr(module, "setup") else {}
        getattr(module, name)(**inputs, **state)


def _compile_noted(events: list[str | Launch]) -> Callable[..., Any]:
    """torch.compile that compiles nothing and writes a line: which operations it would join is not seen."""

    def compile(model: Callable[..., Any] | None = None, **options: Any) -> Any:
        given = {name: value for name, value in options.items() if name != "disable" and value is not None}
        events.append(f"torch.compile {_value_text(given)}")
        return model or (lambda function: function)

    return compile


class _Operations(EagerMode):
    """While active, writes a line for every torch operation that gives the GPU work: a view does not."""

    def __init__(self, events: list[str | Launch]) -> None:
        super().__init__()
        self._events = events

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not func.is_view:
            self._events.append(f"{func} {_value_text(args)} {_value_text(kwargs or {})}")
        return func(*args, **(kwargs or {}))


def _line(launch: str | Launch, machine: Machine) -> str:
    """A launch as text. What is text already stays."""
    if isinstance(launch, str):
        return launch
    try:
        code = code_of(compile_for(launch, machine))
    except UserError as error:
        code = f"does not compile: {error}"
    code = hashlib.sha256(code.encode()).hexdigest()
    if not isinstance(launch, TritonLaunch):
        return f"launch {launch.grid} {_value_text(launch.arguments)} {launch.dynamic_shared_bytes} {code}"
    names = launch.kernel.arg_names
    given = dict(zip(names, launch.arguments, strict=False)) | launch.options
    grid = launch.grid(given) if callable(launch.grid) else launch.grid
    # without names, which may change, and without constants (and None), which are in the machine code
    passed = [parameter.name for parameter in launch.kernel.params if not parameter.is_constexpr]
    by_position = [_value_text(given[name]) for name in passed if given.get(name) is not None]
    options = {name: value for name, value in given.items() if name not in names}
    return f"launch {grid} {by_position} {_value_text(options)} {code}"


def code_of(binary: Binary) -> str:
    """Its machine code; of a loop that Triton specializes, its first intermediate code without places and names.

    That pass orders operations by their addresses: the machine code differs from one compilation to the next.
    """
    if "tt.warp_specialize" not in binary.ttir:
        return machine_code(binary)
    lines = [line for line in binary.ttir.splitlines() if not line.startswith("#loc")]
    names: dict[str, str] = {}
    text = PLACE.sub("", "\n".join(lines)).replace(f"@{binary.name}", "")
    return re.sub(r"%\w+", lambda name: names.setdefault(name[0], f"%{len(names)}"), text)


def _value_text(value: Any) -> str:
    """A value as text, without its address and its name."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{list(value.shape)}{list(value.stride())}+{value.storage_offset()}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}={_value_text(value[key])}' for key in sorted(value))}}}"
    if hasattr(value, "block_shape"):  # a tensor descriptor
        return f"descriptor {_value_text(value.base)} {value.shape} {value.strides} {value.block_shape}"
    if type(value).__module__.startswith("cupy"):
        return f"{value.dtype}{list(value.shape)}{list(value.strides)}"
    is_plain = isinstance(value, int | float | str | bool | None)
    return repr(value) if is_plain else f"{type(value).__name__} {value!s:.40}"
