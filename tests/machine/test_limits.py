"""The kernel behind the limit of reads reads every block once."""

import pytest

pytest.importorskip("triton")


def read_blocks(blocks, programs):
    """What each program has read, folded by exclusive or: by the kernel and by torch."""
    import numpy as np
    import torch

    from common.machine.read_kernel import BLOCK, read_kernel

    x = torch.randint(-(2**31), 2**31, (blocks, BLOCK), dtype=torch.int64).to(torch.int32)
    out = torch.empty(programs, dtype=torch.int32)
    read_kernel[(programs,)](x, out, blocks, BLOCK=BLOCK)
    return out.tolist(), [int(np.bitwise_xor.reduce(x[p::programs].numpy(), axis=None)) for p in range(programs)]


@pytest.mark.parametrize(("blocks", "programs"), [(7, 3), (4, 4), (2, 5)])
def test_all_blocks_are_read_once(blocks, programs, interpreter):
    read, expected = interpreter.submit(read_blocks, blocks, programs).result()
    assert read == expected
