"""Python's words on blocks, found in the text of a file's kernels.

Python asks a block once whether it is true. The interpreter says yes, so `and` and `min` take one of two whole blocks.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from common.learn.errors import place

MAKE = {"arange", "zeros", "full", "zeros_like", "full_like", "dot", "broadcast_to"}  # of tl: they return blocks
REDUCE = {"sum", "max", "min", "argmax", "argmin", "reduce", "xor_sum", "reduce_or"}
FUNCTIONS = {"min": "tl.minimum", "max": "tl.maximum", "abs": "tl.abs"}
BRACKETS = ", with each comparison in brackets"
TIGHTER = "binds more tightly than a comparison: put each comparison in brackets"


def python_words(path: Path) -> str:
    """The first one, with its line and with what to write in its place; empty if there is none."""
    text = path.read_text(encoding="utf-8")
    kernels = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and _is_kernel(node)]
    advice_by_line = [(node.lineno, advice) for kernel in kernels for node, advice in _Blocks(kernel, text).mistakes()]
    return next((f"{place(str(path), line)}: {advice}" for line, advice in sorted(advice_by_line)), "")


def _is_kernel(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).startswith("triton.jit") for decorator in node.decorator_list)


class _Blocks:
    """The names of a kernel that hold blocks (`blocks`), and those that hold the results of comparisons (`masks`)."""

    def __init__(self, kernel: ast.FunctionDef, text: str) -> None:
        self._kernel, self._lines = kernel, text.encode().splitlines(keepends=True)
        self._blocks, self._masks = set[str](), set[str]()
        for _ in range(2):  # what a loop changes is used before the line that changes it
            for node in ast.walk(kernel):
                match node:
                    case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                        for target, value in zip(names, values, strict=False):
                            self._assign(target, value)
                    case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
                        self._assign(target, value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        names = {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
        self._blocks |= names if self._is_block(value) else set()
        self._masks |= names if self._is_mask(value) else set()

    def _is_block(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self._blocks
            case ast.Call(func=ast.Attribute(value=ast.Name(id="tl"), attr=name)):
                if name in REDUCE and not _has_axis(node):
                    return False
                return name in MAKE or any(map(self._is_block, ast.iter_child_nodes(node)))
            case ast.Attribute():  # x.dtype, x.shape
                return node.attr == "T" and self._is_block(node.value)
            case ast.Call(func=ast.Attribute(value=value, attr="to")):
                return self._is_block(value)
        return any(map(self._is_block, ast.iter_child_nodes(node)))

    def _is_mask(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self._masks
            case ast.Compare() | ast.BoolOp():
                return True
            case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
                return self._is_mask(left) or self._is_mask(right)
            case ast.Subscript(value=value) | ast.UnaryOp(operand=value):
                return self._is_mask(value)
        return False

    def mistakes(self) -> Iterator[tuple[ast.expr, str]]:
        """Each place, and what is said of it."""
        for node in ast.walk(self._kernel):
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS and any(map(self._is_block, node.args)):
                    yield node, f"Python's `{name}` on blocks: write {FUNCTIONS[name]}"
                case ast.BoolOp(op=op) if any(map(self._is_block, node.values)):
                    word, sign = ("and", "&") if isinstance(op, ast.And) else ("or", "|")
                    yield node, f"Python's `{word}` on blocks: write {sign}{BRACKETS}"
                case ast.UnaryOp(op=ast.Not()) if self._is_block(node.operand):
                    yield node, "Python's `not` on a block: write ~"
                case ast.Compare() if self._is_block(node):
                    if advice := self._comparison_advice(node):
                        yield node, advice
                case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if self._is_block(test):
                    yield test, "Python asks a whole block for one decision: tl.where chooses for each lane"

    def _comparison_advice(self, node: ast.Compare) -> str:
        is_chain = len(node.ops) > 1
        for operand in (node.left, *node.comparators):
            match operand:
                case ast.BinOp(op=ast.BitAnd() | ast.BitOr() as op) if is_chain or self._is_mask(operand):
                    if not self._in_brackets(operand):
                        return f"`{'&' if isinstance(op, ast.BitAnd) else '|'}` {TIGHTER}"
        return f"Python's chain of comparisons on blocks: write two comparisons and &{BRACKETS}" * is_chain

    def _in_brackets(self, node: ast.expr) -> bool:
        """An operand of a comparison has the comparison's sign on one side, or brackets on both."""
        text, before = b"".join(self._lines), [0]
        for line in self._lines:
            before.append(before[-1] + len(line))
        begin = before[node.lineno - 1] + node.col_offset
        end = before[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
        return text[:begin].rstrip().endswith(b"(") and text[end:].lstrip().startswith(b")")


def _has_axis(node: ast.Call) -> bool:
    """Whether a reduction has an axis other than 0: its argument has two axes, so its result is a block."""
    axes = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "axis")]
    return any(not (isinstance(axis, ast.Constant) and axis.value in (0, None)) for axis in axes)
