"""Time and memory of one training step on many GPUs: what each kind of parallelism computes, keeps and sends.

The models are those of Narayanan et al. 2021 (arXiv 2104.04473, Megatron-LM: tensor, pipeline), Rajbhandari et al. 2020
(arXiv 1910.02054, ZeRO), Lepikhin et al. 2020 (arXiv 2006.16668, GShard: experts) and Korthikanti et al. 2022 (arXiv
2205.05198: activations). Tensor ranks are neighbours, then expert ranks, then copies, then pipeline stages.
"""

from dataclasses import dataclass
from itertools import product

from alpha_beta import seconds

BF16, STATE = 2, (12, 2, 2)  # bytes a parameter: Adam's moments and a copy in float32; gradient; parameter
ADAM_BYTES = 28  # an update reads the 12 and the gradient, and writes the 12 and the parameter
ROOM = 0.9  # of a GPU's memory; the rest is for the CUDA context, the library's buffers and fragments


@dataclass(frozen=True)
class Layout:
    """How GPUs share the work. stage: of ZeRO. micro: sequences at once. chunks: parts of the layers a GPU has."""

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    stage: int = 0
    micro: int = 1
    chunks: int = 1
    recompute: bool = False

    def __str__(self):
        said = {name: value for name, value in vars(self).items() if value != getattr(Layout, name)}
        return ", ".join(f"{name} {value}" if value is not True else name for name, value in said.items()) or "plain"

    def copies(self, gpus):
        return gpus // (self.tensor * self.pipeline)


@dataclass(frozen=True)
class Step:
    """Seconds of the parts of a step, one after the other; the seconds that could be hidden; bytes a GPU."""

    parts: dict[str, float]
    hideable: float
    memory: dict[str, float]

    @property
    def seconds(self):
        return sum(self.parts.values())

    @property
    def least(self):
        return self.seconds - self.hideable

    @property
    def bytes(self):
        return sum(self.memory.values())


def skip_reason(model, layout, gpus, batch):
    """Why a layout is not possible, or nothing."""
    copies, micro = layout.copies(gpus), f" x micro {layout.micro}" if layout.micro > 1 else ""
    reasons = {
        f"{gpus} GPUs cannot be divided into groups of tensor x pipeline": gpus % (layout.tensor * layout.pipeline),
        f"{model.heads} heads cannot be divided among {layout.tensor} GPUs": model.heads % layout.tensor,
        f"{model.layers} layers are too few": layout.pipeline * layout.chunks > model.layers,
        "only a pipeline has chunks": layout.pipeline == 1 < layout.chunks,
        f"{model.experts} experts cannot be divided among {layout.expert} ranks": model.experts % layout.expert,
        f"{copies} copies cannot be divided into groups of {layout.expert} expert ranks": copies % layout.expert,
        f"{batch} sequences cannot be divided among {copies} copies{micro}": batch % max(copies * layout.micro, 1),
    }
    return next((reason for reason, fails in reasons.items() if fails), "")


def state_bytes(parameters, stage, ranks):
    """Bytes a GPU of parameters, gradients and Adam's state: 16 a parameter, of which `ranks` share 12, 14 or all.

    Rajbhandari 2020, figure 1: stage 1 divides the optimizer's state, 2 the gradients, too, 3 the parameters, too.
    """
    return parameters * sum(size / (ranks if place < stage else 1) for place, size in enumerate(STATE))


def activation_bytes(model, layout, micros, sequence):
    """The first stage keeps a micro-batch for each stage (1F1B; Korthikanti 2022, 4.2.3); the last has the logits.

    Recomputed layers keep their input, and one layer at a time keeps all. Tensor ranks divide all of it (sequence
    parallelism). Logits are float32.
    """
    elements, stages = layout.micro * sequence * model.hidden / layout.tensor, layout.pipeline
    a_batch = elements * model.layers / stages * (BF16 if layout.recompute else model.kept)
    flying = stages if layout.chunks == 1 else stages + (stages - 1) / layout.chunks
    logits = 4 * layout.micro * sequence * model.vocab / layout.tensor
    again = elements * model.kept if layout.recompute else 0
    return max(a_batch * min(micros, flying), a_batch + logits) + again


def holdings(model, layout, gpus):
    """[(Parameters on one GPU, ranks that hold the same, their distance, exchanges)]: layers, experts, tables."""
    tensor, copies, own = layout.tensor, layout.copies(gpus), model.layers / layout.pipeline
    experts = model.experts * model.mlp * own / layout.expert / tensor
    tables = model.table * (1 if layout.pipeline > 1 or model.tied else 2) / tensor
    layers = model.attention * own / tensor
    if layout.expert == 1:
        return [(layers + experts, copies, tensor, own), (tables, copies, tensor, 1)]
    apart = (experts, copies // layout.expert, tensor * layout.expert, own)
    return [(layers, copies, tensor, own), apart, (tables, copies, tensor, 1)]


def exchange(size, ranks, distance, links, layout, micros):
    """Seconds in which copies agree on gradients and parameters of so many bytes, in one step.

    Stage 0: all_reduce. 1: reduce_scatter, all_gather of what was updated. 2: reduce_scatter after each micro-batch.
    3: for each micro-batch, too, all_gather before forward and before backward (Rajbhandari 2020, section 7).
    """
    if layout.stage == 0:
        return timed("all_reduce", size, ranks, distance, links)
    scatter, gather = (timed(name, size, ranks, distance, links) for name in ("reduce_scatter", "all_gather"))
    return {1: scatter + gather, 2: micros * scatter + gather, 3: micros * (scatter + 2 * gather)}[layout.stage]


def timed(name, size, ranks, distance, links):
    """Seconds of a collective of ranks that are `distance` GPUs from one another."""
    return seconds(name, size, ranks, min(ranks, max(1, links.gpus // distance)), links)


def slot(model, layout, gpu, gpus, sequence):
    """Part -> seconds of one micro-batch in one stage, forward and backward. stages: one chunk's two messages.

    Tensor ranks sum the rows after attention and after the MLP, both ways (Shoeybi et al. 2019, arXiv 1909.08053);
    tokens travel to their experts and back, both ways. Recomputing repeats what forward sends.
    """
    tokens, own, links = layout.micro * sequence, model.layers / layout.pipeline, gpu.links
    rate, passes = gpu.flops * layout.tensor * layout.pipeline, 4 + 2 * layout.recompute
    rows, part = BF16 * tokens * model.hidden, BF16 * tokens * model.hidden / layout.tensor
    far = layout.tensor * layout.copies(gpus)
    compute, done = (model.flops(sequence, again) * tokens / rate for again in (False, layout.recompute))
    return {
        "compute": compute,
        "recompute": done - compute,
        "tensor": own * passes * timed("all_reduce", rows, layout.tensor, 1, links),
        "expert": own * passes * timed("all_to_all", part * model.active, layout.expert, layout.tensor, links),
        "stages": 2 * timed("send_recv", part, 2, far, links) if layout.pipeline > 1 else 0.0,
    }


def predict(model, layout, gpu, gpus, batch, sequence):
    """The Step of `batch` sequences. A pipeline idles (p - 1) / chunks of m micro-batches' slots, which is the share
    (p - 1) / (m chunks + p - 1) of all (Narayanan 2021, section 2.2)."""
    micros, idle = batch // (layout.copies(gpus) * layout.micro), (layout.pipeline - 1) / layout.chunks
    one, held = slot(model, layout, gpu, gpus, sequence), holdings(model, layout, gpus)
    parts = {name: micros * took for name, took in one.items()}
    parts["stages"] = (micros * layout.chunks + layout.pipeline - 1) * one["stages"]
    parts["bubble"] = idle * sum(took for name, took in one.items() if name != "stages")
    parts["data"] = sum(
        calls * exchange(BF16 * count / calls, ranks, distance, gpu.links, layout, micros)
        for count, ranks, distance, calls in held
    )
    owned = sum(count / (ranks if layout.stage else 1) for count, ranks, _, _ in held)
    parts["optimizer"] = ADAM_BYTES * owned / gpu.dram
    alone = one["compute"] + one["recompute"]
    hideable = min(parts["data"], micros * alone if layout.stage == 3 else 2 / 3 * alone)  # the last backward pass
    memory = {"state": sum(state_bytes(count, layout.stage, ranks) for count, ranks, _, _ in held)}
    memory["activations"] = activation_bytes(model, layout, micros, sequence)
    if layout.stage == 3:  # this layer's parameters and the next one's
        memory["gathered"] = 2 * BF16 * max(count / calls for count, _, _, calls in held)
    return Step(parts, hideable, memory)


def candidates(model, gpu, strategy):
    """The layouts among which a strategy chooses; `any` chooses among those of the others, too.

    Each may recompute, and have 1 to 8 sequences in a micro-batch.
    """
    tensors, stages = (2, 4, 8, 16, 32), [n for n in range(2, model.layers + 1) if model.layers % n == 0]
    experts, within = [n for n in range(2, model.experts + 1) if model.experts % n == 0], [1, 2, 4, 8]
    options = {
        "data": {},
        **{f"ZeRO-{stage}": {"stage": [stage]} for stage in (1, 2, 3)},
        "tensor": {"tensor": tensors, "stage": [0, 1]},
        "pipeline": {"pipeline": stages, "stage": [0, 1], "chunks": [1, 2, 4]},
        "expert": {"expert": experts, "stage": [0, 1]},
        "any": {
            "tensor": [n for n in within if n <= gpu.links.gpus], "pipeline": [1, *stages], "expert": [1, *experts],
            "stage": [0, 1, 3], "chunks": [1, 2, 4],
        },
    }  # fmt: skip
    found = {}  # a layout once, and each in its place
    for name in options if strategy == "any" else [strategy]:
        chosen = options[name] | {"micro": [1, 2, 4, 8], "recompute": [False, True]}
        found |= {Layout(**dict(zip(chosen, values, strict=True))): None for values in product(*chosen.values())}
    return list(found)


def best(model, layouts, gpu, gpus, batch, sequence):
    """(Layout, Step): the fastest that fits; if none does, the smallest; None if no layout is possible."""
    able = [layout for layout in layouts if not skip_reason(model, layout, gpus, batch)]
    steps = [(layout, predict(model, layout, gpu, gpus, batch, sequence)) for layout in able]
    fitting = [each for each in steps if each[1].bytes <= ROOM * gpu.memory]
    if fitting:
        return min(fitting, key=lambda each: each[1].seconds)
    return min(steps, key=lambda each: each[1].bytes, default=None)
