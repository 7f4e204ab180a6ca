"""Operations are listed: they have to be the same at two positions, and none of them may give the host a number."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

FOR_THE_HOST = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal")


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        sizes = [tuple(each.shape) for each in args if isinstance(each, torch.Tensor)]
        self.names.append((str(function), sizes))
        return function(*args, **kwargs or {})


def is_honest(run):
    seen = []
    for position in (3, 9, 4, 15):
        torch.manual_seed(position)
        q, key, value = torch.randn(3, 8)
        cache_k, cache_v = torch.randn(2, 16, 8)
        place = torch.tensor([position])
        keys, values = cache_k.clone(), cache_v.clone()
        keys[position], values[position] = key, value
        before = [cache_k.data_ptr(), cache_v.data_ptr(), place.data_ptr()]
        with Names() as found:
            answer = run(q=q, key=key, value=value, cache_k=cache_k, cache_v=cache_v, position=place)
        weights = torch.softmax(keys[: position + 1] @ q / 8**0.5, 0)
        if not torch.allclose(answer, weights @ values[: position + 1], atol=1e-5):
            return False
        if not (torch.equal(cache_k, keys) and torch.equal(cache_v, values) and int(place) == position + 1):
            return False
        if before != [cache_k.data_ptr(), cache_v.data_ptr(), place.data_ptr()]:
            return False
        seen.append(found.names)
    asks = any(word in name for name, _ in seen[0] for word in FOR_THE_HOST)
    return not asks and all(names == seen[1] for names in seen[1:])
