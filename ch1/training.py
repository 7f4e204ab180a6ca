"""The training loop that both performance_basics scripts measure: a small classifier on made-up data.

One step is forward, loss, backward and optimizer, for every variant alike. One pass trains on every sample once.
"""

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

WIDTHS = (256, 512, 512, 10)  # features, two hidden layers, classes
SEED = 1
WARMUP_STEPS = 3  # the first pays for library set-up; a CUDA graph's capture asks for a few

Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Transfer = Callable[[list[torch.Tensor], bool], list[torch.Tensor]]


@dataclass(frozen=True)
class Pass:
    """One timed pass over the data. Times in seconds; `losses`: one a step; `weights`: what came out, in one vector."""

    useful_s: float
    total_s: float
    samples: int
    losses: torch.Tensor
    weights: torch.Tensor

    @property
    def goodput(self) -> float:
        return self.useful_s / self.total_s


def make_data(samples: int) -> TensorDataset:
    """Inputs [samples, features] in the CPU's memory, labelled by a fixed linear map: there is something to learn."""
    generator = torch.Generator().manual_seed(SEED)
    x = torch.randn(samples, WIDTHS[0], generator=generator)
    teacher = torch.randn(WIDTHS[0], WIDTHS[-1], generator=generator)
    return TensorDataset(x, (x @ teacher).argmax(dim=1))


def make_model(device: str) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """The same first weights every time, drawn on the CPU."""
    torch.manual_seed(SEED)
    layers: list[torch.nn.Module] = []
    for fan_in, fan_out in pairwise(WIDTHS):
        layers += [torch.nn.Linear(fan_in, fan_out), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1]).to(device)  # no activation after the last layer
    return model, torch.optim.SGD(model.parameters(), lr=0.2)


def weights(model: torch.nn.Module) -> torch.Tensor:
    """All parameters of a model in one vector on the CPU."""
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach().cpu()


def flops_per_sample() -> int:
    """Matrix-product FLOPs of one step per sample, one FMA = 2; biases, activations and the update are left out.

    Forward one product a layer, backward two: one for the weights' gradient, one for the input's. The first layer needs
    no gradient of its input.
    """
    products = [2 * fan_in * fan_out for fan_in, fan_out in pairwise(WIDTHS)]
    return 3 * sum(products) - products[0]


def train_step(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor
) -> torch.Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def capture(step: Step, x: torch.Tensor, y: torch.Tensor) -> Step:
    """The step as one CUDA graph: every launch recorded once, all replayed with a single call.

    A graph remembers addresses, not tensors: `x` and `y` are its inputs from now on, new samples must be copied into
    them, and a batch of another size would need another graph.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(x, y)

    def replay(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        graph.replay()
        return loss.clone()  # the next replay overwrites `loss`

    return replay


@contextmanager
def side_stream(device: str) -> Iterator[None]:
    """On a GPU: a stream beside the current one, where a capture wants its warm-up."""
    if device == "cpu":
        yield
        return
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        yield
    torch.cuda.current_stream().wait_stream(side)


def prepare(data: TensorDataset, device: str, batch: int, graph: bool) -> tuple[torch.nn.Module, Step, Transfer]:
    """A fresh model, its step and what brings a batch to the device.

    The cold start happens here; afterwards the model gets its first weights back.
    """
    model, optimizer = make_model(device)
    step: Step = partial(train_step, model, optimizer)
    first = copy.deepcopy(model.state_dict())
    static = [tensor[:batch].to(device, copy=True) for tensor in data.tensors]
    with side_stream(device):
        for _ in range(WARMUP_STEPS):
            step(*static)
    if graph:
        step = capture(step, *static)
    model.load_state_dict(first)

    def to_device(samples: list[torch.Tensor], pinned: bool) -> list[torch.Tensor]:
        return [tensor.to(device, non_blocking=pinned) for tensor in samples]

    def to_static(samples: list[torch.Tensor], pinned: bool) -> list[torch.Tensor]:
        return [target.copy_(source, non_blocking=pinned) for target, source in zip(static, samples, strict=True)]

    return model, step, to_static if graph else to_device


def synchronize(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize(device)


def mark(device: str) -> Any:
    """This moment: on a GPU an event in the stream, which needs no synchronization; on a CPU the time."""
    if device == "cpu":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def seconds_between(start: Any, stop: Any) -> float:
    return stop - start if isinstance(start, float) else start.elapsed_time(stop) * 1e-3  # events count milliseconds


def train(data: TensorDataset, device: str, batch: int, pinned: bool = False, graph: bool = False) -> Pass:
    """Train a fresh model on all of `data` once and time it. Useful: from the start of each step to its end."""
    model, step, transfer = prepare(data, device, batch, graph)
    loader = DataLoader(data, batch_size=batch, pin_memory=pinned)
    marks, losses = [], []
    synchronize(device)
    begin = time.perf_counter()
    for samples in loader:
        x, y = transfer(samples, pinned)
        start = mark(device)
        losses.append(step(x, y))
        marks.append((start, mark(device)))
    synchronize(device)
    total_s = time.perf_counter() - begin
    useful_s = sum(seconds_between(*pair) for pair in marks)
    return Pass(useful_s, total_s, len(data), torch.stack(losses).cpu(), weights(model))


def fixed_steps(device: str, batch: int) -> Callable[[int], float]:
    """A function that trains on one batch for `count` steps and returns the seconds of one."""
    model, optimizer = make_model(device)
    x = torch.randn(batch, WIDTHS[0], device=device)
    y = torch.randint(WIDTHS[-1], (batch,), device=device)

    def steps(count: int) -> float:
        synchronize(device)
        start = mark(device)
        for _ in range(count):
            loss = train_step(model, optimizer, x, y)
        stop = mark(device)
        synchronize(device)
        if not loss.isfinite():
            raise SystemExit(f"batch {batch}: the loss is not finite")
        return seconds_between(start, stop) / count

    return steps
