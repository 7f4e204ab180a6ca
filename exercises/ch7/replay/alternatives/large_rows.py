"""Rows that do not count hold large numbers, whose products overflow: what a mask lets through shows as NaN."""

import torch


def inputs(position, rows=16, width=8, device="cpu"):
    arrays = {name: torch.randn(width, device=device) for name in ("q", "key", "value")}
    caches = {name: torch.randn(rows, width, device=device) for name in ("cache_k", "cache_v")}
    return arrays | caches | {"position": torch.tensor([position], device=device)}


def attention(q, keys, values):
    return torch.softmax(keys @ q * q.shape[0] ** -0.5, 0) @ values


def needs_values(run):
    try:
        run(**{name: array.to("meta") for name, array in inputs(0).items()})
    except RuntimeError:
        return True
    return False


def is_right(run, step, position):
    """One call, at another position, in the same tensors."""
    for name, array in inputs(position).items():
        step[name].copy_(array)
    step["cache_k"][position:], step["cache_v"][position:] = 3e38, -3e38
    places = {name: array.data_ptr() for name, array in step.items()}
    expected = {name: array.clone() for name, array in step.items()}
    expected["cache_k"][position], expected["cache_v"][position] = expected["key"], expected["value"]
    keys, values = expected["cache_k"][: position + 1], expected["cache_v"][: position + 1]
    answer = attention(expected["q"], keys, values)
    expected["position"] += 1
    if not torch.allclose(run(**step), answer, atol=1e-5):
        return False
    return all(torch.equal(step[name], expected[name]) and step[name].data_ptr() == places[name] for name in step)


def is_honest(run):
    step = inputs(0)
    return not needs_values(run) and all(is_right(run, step, position) for position in (5, 6, 2, 15, 0))
