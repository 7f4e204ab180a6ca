"""The candidates of a pair in its process: versions, library calls, the baseline again; and the reference answer."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from common.checks.arrays import Tree, clone, copy_into, merge_numbers, private_views, tensors, to_float64
from common.checks.tolerance import Custom
from common.engine.ranks import ONE_RANK, Ranks
from common.isolation.worker import one_line
from common.machine.limits import cost_problem
from common.pairs.contract import LIBRARY_KINDS, Version
from common.pairs.syntax import ContractError
from common.record.outcome import Cause, Finding
from common.record.result import CONTROL

KEPT = ("cache", "state")  # how the names of inputs begin that a call may read and write
REFERENCE_ROWS = 64  # rows of the answer, if there is no memory for the reference of all


class Disqualified(Exception):
    """A candidate broke a rule: (label, Finding)."""


def is_out_of_memory(error: BaseException) -> bool:
    by_name = "can't allocate memory" in str(error) or "OutOfMemoryError" in type(error).__name__
    return by_name or isinstance(error, MemoryError | torch.OutOfMemoryError)


@dataclass(frozen=True)
class Candidate:
    """What is timed: a loaded version, or a library call on a version's inputs."""

    label: str
    module: ModuleType
    run: Callable[..., Any]
    setup: Callable[..., dict[str, Any]] | None = None
    has_kernel: bool = False  # a kernel of its own
    answer_differs: bool = False  # a library with another answer, or a yardstick

    @property
    def is_library(self) -> bool:
        return self.label.split("/")[0] in LIBRARY_KINDS

    @property
    def defines_kernel(self) -> bool:
        """Whether its own file has a Triton kernel."""
        return any(_kernel_module(value) == self.module.__name__ for value in vars(self.module).values())

    @property
    def precision(self) -> str:
        return getattr(self.module, "PRECISION", "")

    @property
    def custom(self) -> Custom:
        """The tolerance that its file declares."""
        return getattr(self.module, "TOLERANCE", None)

    @property
    def has_gradients(self) -> bool:
        """Whether gradients are a part of the answer, unless its file, the baseline's, says that they are none."""
        return not hasattr(self.module, "NO_GRADIENTS")

    def run_setup(self, inputs: dict[str, Any], weights_from: dict[str, Any]) -> dict[str, Any]:
        """The result of `setup` on private copies of inputs that `run` will not see, except for the weights.

        Caches are the arrays that `run` will see, with other contents.
        Raises ContractError if that is no dict of its own names, or if `run` does not take the inputs and it.
        """
        state: dict[str, Any] = {}
        if self.setup:
            private = clone({name: value for name, value in inputs.items() if not name.startswith(("w_", *KEPT))})
            same = weights(weights_from) | caches(weights_from)
            with _holding(caches(weights_from), inputs):
                state = call_function(self.module, "setup", {**private, **private_views(same)})
            if shared_names := ", ".join(inputs.keys() & state.keys()):
                problem = f"`setup` returns {shared_names}, as `inputs` does: give it another name"
                raise _contract_error(self.module, problem)
        name = self.label.replace("/", "_") if self.is_library else "run"
        _require_parameters(self.module, name, self.run, inputs | state)
        return state

    def bind(self, inputs: dict[str, Any], state: dict[str, Any]) -> partial:
        """A call ready to be timed, on views of its own. What it leaves in caches is a part of its answer."""
        run = partial(_run_with_caches, self.run) if caches(inputs) else self.run
        return partial(run, **private_views(inputs), **state)


def _kernel_module(value: Any) -> str:
    """The name of the module in which a Triton kernel is defined; empty if the value is none."""
    is_kernel = type(value).__module__.startswith("triton.runtime")
    while hasattr(value, "fn"):  # an autotuner's, or a function's in the interpreter
        value = value.fn
    return str(getattr(value, "__module__", "")) if is_kernel else ""


def call_function(module: ModuleType, name: str, arguments: dict[str, Any]) -> Any:
    """What this function of a file returns. Raises ContractError if it takes other arguments or returns no dict."""
    function = getattr(module, name)
    if not callable(function):
        raise _contract_error(module, f"`{name}` must be a function, not {type(function).__name__}")
    _require_parameters(module, name, function, arguments)
    result = function(**arguments)
    if name != "reference" and not isinstance(result, dict):
        raise _contract_error(module, f"`{name}` must return a dict, not {type(result).__name__}")
    return result


def _require_parameters(module: ModuleType, name: str, function: Callable[..., Any], names: Iterable[str]) -> None:
    """Raises ContractError unless a function of a file can be called with arguments of these names."""
    with suppress(ValueError):  # torch.lerp has no signature
        signature = inspect.signature(function)
        try:
            signature.bind(**dict.fromkeys(names))
        except TypeError:
            source = "`inputs` and `setup` return" if name == "run" and hasattr(module, "setup") else "`inputs` returns"
            fix = f"its parameters must be what {source}: {', '.join(names)}"
            takes = ", ".join(signature.parameters) or "nothing"
            raise _contract_error(module, f"`{name}` takes {takes}: {fix}") from None


def _contract_error(module: ModuleType, problem: str) -> ContractError:
    return ContractError(f"{Path(str(module.__file__)).name}: {problem}")


def make_candidates(modules: dict[str, ModuleType], control: ModuleType, kernels: Iterable[str]) -> list[Candidate]:
    """The versions as loaded, by label; their library calls and yardsticks; and the baseline, loaded a second time.

    A library whose package is not installed (LIBRARY_NEEDS) is left out. `kernels`: the labels of versions with a
    kernel of their own.
    """
    versions = [_version(label, module, label in kernels) for label, module in modules.items()]
    libraries: dict[str, Candidate] = {}
    for module in modules.values():
        for name, function in vars(module).items():
            kind = name.split("_")[0]
            package = getattr(module, "LIBRARY_NEEDS", {}).get(name)
            if kind in LIBRARY_KINDS and name != "yardstick" and (package is None or find_spec(package)):
                differs = kind == "yardstick" or hasattr(module, "LIBRARY_DIFFERS")
                library = Candidate(name.replace("_", "/", 1), module, function, answer_differs=differs)
                libraries.setdefault(name, library)
    return [*versions, *libraries.values(), _version(CONTROL, control, "baseline" in kernels)]


def _version(label: str, module: ModuleType, has_kernel: bool) -> Candidate:
    return Candidate(label, module, module.run, getattr(module, "setup", None), has_kernel)


Costs = dict[str, dict[str, float]]  # label -> cost of its work


def count_costs(
    candidates: list[Candidate], by_label: dict[str, dict[str, Any]], timed: bool = False
) -> tuple[Costs, dict[str, Finding]]:
    """(The cost of each candidate's work on its inputs, from its file; label -> what is wrong with it.)

    Work on an empty input may cost 0, unless it is `timed`.
    """
    costs, problems = {}, dict[str, Finding]()
    for candidate in candidates:
        module = candidate.module if hasattr(candidate.module, "cost") else candidates[0].module
        cost = call_function(module, "cost", by_label[candidate.label]) if hasattr(module, "cost") else {}
        is_empty = any(x.numel() == 0 for _, x in tensors(by_label[candidate.label]))
        if problem := cost_problem(cost, may_be_zero=is_empty and not timed):
            facts = {"file": Path(str(module.__file__)).name, "problem": problem}
            problems[candidate.label] = Finding(Cause.BAD_COST, facts)
        costs[candidate.label] = {} if problem else {key: float(amount) for key, amount in cost.items()}
    return costs, other_work(candidates, costs) | problems


def other_work(candidates: list[Candidate], costs: Costs) -> dict[str, Finding]:
    """Label -> reason, for amounts that differ from the baseline's. Under PRECISION the FLOPs may have another name."""
    problems = {}
    for candidate in candidates:
        pair = costs[candidate.label], costs[candidates[0].label]
        amounts, expected = (_merge_flops(cost) if candidate.precision else cost for cost in pair)
        if amounts != expected:
            facts = {"cost": str(pair[0]), "expected": str(pair[1])}
            problems[candidate.label] = Finding(Cause.OTHER_WORK, facts)
    return problems


def _merge_flops(cost: dict[str, float]) -> dict[str, float]:
    """The cost with its FLOPs of any precision as one amount."""
    rest = {key: amount for key, amount in cost.items() if not key.endswith("_flops")}
    return {**rest, "flops": sum(amount for key, amount in cost.items() if key.endswith("_flops"))}


def weights(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name.startswith("w_")}


def caches(tree: dict[str, Any]) -> dict[str, Any]:
    """The inputs that a call may read and write: a decoder's keys and values, an optimizer's state."""
    return {name: value for name, value in tree.items() if name.startswith(KEPT)}


def _run_with_caches(run: Callable[..., Any], /, **arguments: Any) -> dict[str, Any]:
    return {"answer": run(**arguments), **caches(arguments)}


@contextmanager
def _holding(held: dict[str, Any], inputs: dict[str, Any]) -> Iterator[None]:
    """Inside, these caches hold what those of other inputs do."""
    backup = clone(held)
    copy_into(held, caches(inputs))
    try:
        yield
    finally:
        copy_into(held, backup)


def reference_rows(baseline: Version) -> int | None:
    """The number of leading rows that the pair's reference answer covers; None for all."""
    return REFERENCE_ROWS if "rows" in baseline.functions.get("reference", ()) else None


def reference_answer(
    baseline: Candidate, rows: int | None, inputs: dict[str, Any], setup_inputs: dict[str, Any], ranks: Ranks = ONE_RANK
) -> Tree:
    """The answer in float64, or its leading `rows`. `setup_inputs`: for the baseline's `setup`, if it answers.

    With several ranks the reference is given each input as a list, one of each rank, and returns a list of answers.
    Raises Disqualified if the reference returns lower precision, or no such list; ContractError if there is no answer.
    """
    if not hasattr(baseline.module, "reference"):
        return _run_in_float64(baseline, inputs, setup_inputs)
    exact = _widened(baseline, ranks.gather(inputs) if ranks.count > 1 else inputs)
    held = clone(caches(exact))
    expected = call_function(baseline.module, "reference", {**exact, **held} | ({"rows": rows} if rows else {}))
    expected = {"answer": expected, **held} if held else expected
    if ranks.count > 1:
        if not isinstance(expected, list) or len(expected) != ranks.count:
            text = f"must return a list of {ranks.count}: each rank's answer"
            raise Disqualified("baseline", Finding(Cause.BAD_REFERENCE, {"text": text}))
        expected = expected[ranks.rank]
    for _, answer in tensors(expected):
        if answer.is_floating_point() and answer.dtype != torch.float64:
            text = f"returns {answer.dtype}, it must return torch.float64"
            raise Disqualified("baseline", Finding(Cause.BAD_REFERENCE, {"text": text}))
    return _require_answer(baseline.module, "reference", expected)


def _run_in_float64(baseline: Candidate, inputs: dict[str, Any], setup_inputs: dict[str, Any]) -> Tree:
    """The answer of the baseline's `run` to float64 inputs.

    Raises Disqualified if it only runs in the inputs' own type; otherwise what it raises.
    """

    def answer(inputs: dict[str, Any], setup_inputs: dict[str, Any]) -> Tree:
        return clone(baseline.bind(inputs, baseline.run_setup(setup_inputs, inputs))())

    problem = Exception()
    for constants in (nullcontext, _wide_constants):
        try:
            with constants():
                wide = answer(_widened(baseline, inputs), _widened(baseline, setup_inputs))
            return _require_answer(baseline.module, "run", wide)
        except (RuntimeError, TypeError, ValueError) as error:
            if is_out_of_memory(error):
                raise
            problem = error
    answer(inputs, setup_inputs)  # raises what is wrong in this type, too
    raise Disqualified("baseline", Finding(Cause.NOT_IN_FLOAT64, {"text": one_line(problem)}))


def _widened(baseline: Candidate, inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs in float64; weights in their own type where the baseline says that it widens each as it uses it."""
    kept = weights(inputs) if hasattr(baseline.module, "NARROW_WEIGHTS") else {}
    return to_float64({name: x for name, x in inputs.items() if name not in kept}) | kept


@contextmanager
def _wide_constants() -> Iterator[None]:
    """Inside, tensors that are made without a type (`torch.zeros(n)`) are float64, as the inputs are."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


def _require_answer(module: ModuleType, name: str, answer: Tree) -> Tree:
    """An answer of a file's function. Raises ContractError if it is None."""
    if answer is None:
        raise _contract_error(module, f"`{name}` must return the answer, not None")
    return merge_numbers(answer)
