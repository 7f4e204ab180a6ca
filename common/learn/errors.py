"""An error that a reader's kernel raises, as one line: which line of the file, and what is wrong with it."""

import ast
import linecache
import re
import sys
import sysconfig
import traceback
from pathlib import Path
from types import CodeType
from typing import Any

from common.isolation.pipe import End
from common.isolation.worker import ChildFailed
from common.pairs.pair import ROOT
from common.pairs.user_error import printable
from common.xray.occupancy import REGISTERS_PER_SM, WARP

OTHERS = (*(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")), f"{ROOT / 'common'}/", "<")
SAYS = {  # what an error's text has -> what to do about it
    "range must be a power of 2": "the size of a block must be a power of two",
    "Shape element .* must be a power of 2": "the size of a block must be a power of two",
    "object of type '.*' has no len": "the grid must be a tuple, with a comma even for one number: kernel[(programs,)]",
    "'float' object cannot be interpreted as an integer": "a number of programs or of steps must be an int: use // or "
    "triton.cdiv in place of /",
    "Value argument cannot be block type": "a block of values needs a block of addresses: add offsets to the pointer, "
    "or make one value of the block",
    "Mask argument cannot be block type": "a block of mask values needs a block of addresses: add offsets to the "
    "pointer",
    "Unsupported ptr type": "the first argument must be addresses: a pointer plus offsets",
    "'int' object has no attribute 'to'": "in the interpreter a loop counter is a Python int: tl.cast(counter, dtype)",
    "unsupported tensor index": "a block has no elements to index: a column of it is "
    "tl.sum(tl.where(column == 0, block, 0.0), axis=1)",
    "Cannot make_shape_compatible|incompatible dimensions": "incompatible dimensions: blocks that are combined "
    "have the same sizes, or 1: a column a[:, None] and a row b[None, :] make a tile",
    "'function' object is not subscriptable": "a kernel needs @triton.jit before its def",
}
STARTS = {"isend", "irecv"}  # calls that return what has to be kept, and waited for
WAITS = ". They wait for each other: is a call missing, or what can be started before anything is waited for?"
KEEP = "write work = ..., and work.wait() before its tensor is used again"
BROKE = (
    ". A message beyond its buffer does this, collectives of another order or size, and a process that sends to itself"
)
REGISTERS = 255  # the most that a thread can have
INDEXED = re.compile(r"\b(\w+)\[(?![^\]]*(?:None|:))([^\]]+)\]")  # but not [:, None]


def explain_error(error: BaseException) -> str:
    """The innermost cause of an error, after the last line of the reader's own code on the way to it; else empty."""
    frames = traceback.extract_tb(error.__traceback__)
    while error.__cause__:
        error = error.__cause__
        frames += traceback.extract_tb(error.__traceback__)
    places = [(frame.filename, frame.lineno or 0) for frame in frames if is_own(frame.filename)]
    return printable(f"{place(*places[-1])}: {_what(error, _line(*places[-1]))}") if places else ""


def _what(error: BaseException, line: str) -> str:
    lines = [part.strip() for part in str(error).splitlines() if part.strip()] or [type(error).__name__]
    text = lines[-1]
    if "not iterable" in text and (match := INDEXED.search(line)):
        return f"a pointer has no elements to index: write tl.load({match[1]} + {match[2]})"
    if text == "AssertionError" and ".dot(" in line:
        return "the third argument of tl.dot must have the type of its answer: float32, unless out_dtype says otherwise"
    return _advice(text)


def not_compiled(text: str, kernel: Any) -> str:
    """A compiler's error, `<kernel> for sm_90: at 4:4: ...`, after the line of the reader's kernel."""
    match = re.search(r" at (\d+):\d+: ?(.*)", text)
    if not match:
        return text
    lines, number = kernel.src.splitlines(), int(match[1])  # without decorators
    line = lines[number - 1].strip() if number <= len(lines) else ""
    return printable(f"`{line}`: {_advice(match[2])}")


def in_file(text: str, path: Path) -> str:
    """A compiler's error with the line of a file: Triton counts from the `def` of a kernel on. Others stay as they are.

    Without the kernel's name it is of the only function that has a decorator.
    """
    match = re.search(r"(?:(\w+) for \w+: )?\bat (\d+):\d+:? ?(.*)", text)
    nodes = [node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.FunctionDef)]
    begins = {node.name: node.lineno for node in nodes if node.decorator_list}
    only = next(iter(begins)) if len(begins) == 1 else ""
    if not match or (match[1] or only) not in begins:
        return text
    line = place(str(path), begins[match[1] or only] + int(match[2]) - 1)
    return printable(f"{text[: match.start()]}{line}: {_advice(match[3])}")


def spill_advice(threads: int) -> str:
    """Why a block of so many threads spills registers to memory, and what helps."""
    most = min(REGISTERS, REGISTERS_PER_SM // threads)
    text = f"a block of V values in {threads // WARP} warp{'s' * (threads > WARP)} is V / {threads} values per thread"
    helps = "more warps, or a smaller block" if threads < 1024 else "a smaller block"
    return f"{text}, which has at most {most} registers: take {helps}"


def explain_processes(death: ChildFailed, path: Path) -> str:
    """Why several processes did not come to an end, and what does this. gloo's own words are about its source."""
    message = str(death)
    if death.end == End.HUNG:
        return message + (_dropped(path) or WAITS)
    text = re.sub(r"\w+: \[[^]]*gloo/.*?(?= \(\S+:\d+\)$|$)", "the connection to another process broke", message)
    return text + BROKE if text != message else text


def _dropped(path: Path) -> str:
    """The first line of a file that starts a transfer, and keeps nothing to wait for: gloo gives it up then."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] in STARTS:
            line = place(str(path), call.lineno)
            return f". {line}: nothing keeps what this returns, so the transfer is given up: {KEEP}"
    return ""


def unwaited_text(count: int) -> str:
    """What a call starts and does not wait for: so many transfers, or none."""
    are = "is" if count == 1 else "are"
    return f". Of the transfers that a call starts, {count} {are} not waited for: {KEEP}" * (count > 0)


def _advice(text: str) -> str:
    text = plain(text)
    return next((says for pattern, says in SAYS.items() if re.search(pattern, text)), text)


def plain(text: str) -> str:
    """Without the words of Triton's own classes: `AssertionError("...")`, `constexpr[64]`, `<['64'], fp16>`."""
    inner = re.fullmatch(r"""(?:\w+\()+(["'])(.*)\1,?\)+""", text)
    text = inner[2].replace("\\'", "'") if inner else text
    text = re.sub(r"'?constexpr\[(\w+)\]'?", r"\1", text)
    text = re.sub(r"<\[([^\]]*)\], (\w+)>", lambda match: f"{match[2]}[{match[1]}]".replace("'", ""), text)
    return re.sub(r"Loop-carried variable (\w+) has initial type (\S+) but is re-assigned to (\S+) in loop!.*",
                  r"\1 is \2 before the loop and becomes \3 in it: it must keep its type", text)  # fmt: skip


def place(path: str, number: int) -> str:
    """A line of a file for a reader: its number and its text."""
    return f"line {number}, `{_line(path, number)}`"


def here() -> str:
    """The line of the reader's code that runs now; empty if there is none."""
    frame = sys._getframe(1)
    while frame and not is_own(frame.f_code):
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
    return place(frame.f_code.co_filename, frame.f_lineno) if frame else ""


def is_own(file: str | CodeType) -> bool:
    name = file if isinstance(file, str) else file.co_filename
    return not name.startswith(OTHERS) or Path(name).name.startswith(("baseline_", "optimized_"))


def _line(path: str, number: int) -> str:
    return linecache.getline(path, number).strip()
