"""ch6/optimized_overlap_ctas.py: one group with few CTAs, which sums all gradients. (NCCL itself needs GPUs.)"""

from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from common.pairs.pair import ROOT, load


def test_all_gradients_are_summed_in_one_group_of_few_ctas(monkeypatch):
    made, summed, reduce = [], [], dist.all_reduce
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        version, make = load(ROOT / "ch6/optimized_overlap_ctas.py"), dist.new_group
        options = lambda: SimpleNamespace(config=SimpleNamespace())  # noqa: E731
        monkeypatch.setattr(dist, "ProcessGroupNCCL", SimpleNamespace(Options=options), raising=False)
        monkeypatch.setattr(dist, "new_group", lambda pg_options: (made.append(pg_options), make())[1])
        monkeypatch.setattr(dist, "all_reduce", lambda x, **how: (summed.append(how["group"]), reduce(x, **how))[1])
        given = version.inputs(batch=5, dim=3, layers=4, device="cpu")
        states = [version.setup(**given) for _ in range(2)]
        grads = version.run(**given, **states[1])
    finally:
        dist.destroy_process_group()
    assert [each.config.max_ctas for each in made] == [version.CTAS]
    assert states[0]["group"] is states[1]["group"] and summed == 4 * [states[0]["group"]]
    reference = load(ROOT / "ch6/baseline_overlap.py").reference
    right = reference([given["x"]], [given["w_layers"]])[0]  # the other process adds nothing here
    assert all(map(torch.allclose, grads, right))
