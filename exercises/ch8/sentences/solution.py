"""Four steps on sentences of different lengths: half of them compile the model anew.

`dynamo` is torch.compile at work, and it was called twice in four steps. `Torch-Compiled Region: 0/n` names the version
of the compiled function that ran: two versions in one call, and one number for each length of sentences so far. The
steps of a length that was seen before show what a step takes: the gaps between them are compilation.

So it gains whole / (whole - dynamo) to compile nothing anew. `torch._dynamo.mark_dynamic(sentences, 1)` makes one
version for all lengths. Or fewer lengths do: pad each batch to a multiple of 64. `TORCH_LOGS=recompiles` names the
guard that failed, here the size of an input. The program had raised `recompile_limit`, because a warning told of it.

Its backend is "eager", which only traces the model. A backend that makes kernels needs seconds for each version.

Below is the program of the profile.
"""

import torch
import torch.nn.functional as F

cause = "compilation"
gain = (6.8, 8.2)  # times as fast, if no step waited for that any more
versions = 8  # of the compiled function, when this call ends


def inputs(hidden=64, words=1000, layers=4, device="cpu"):
    torch.manual_seed(0)
    shapes = [(words, hidden), *[(hidden, hidden)] * (2 * layers)]
    weights = [(torch.randn(*shape) * hidden**-0.5).requires_grad_() for shape in shapes]
    torch._dynamo.config.recompile_limit = 1000

    @torch.compile(dynamic=False, backend="eager")
    def loss_of(sentences):
        x = F.embedding(sentences, weights[0])
        for first, second in zip(weights[1::2], weights[2::2], strict=True):
            x = x + F.linear(F.gelu(F.linear(F.rms_norm(x, x.shape[-1:]), first)), second)
        logits = F.linear(x[:, :-1], weights[0])
        return F.cross_entropy(logits.flatten(0, 1), sentences[:, 1:].flatten())

    lengths = [int(length) for length in 16 + torch.randperm(200)]
    return {"loss_of": loss_of, "optimizer": torch.optim.SGD(weights, lr=1e-3), "lengths": lengths}


def run(loss_of, optimizer, lengths):
    first, second = lengths.pop(), lengths.pop()  # two that have not come before
    for length in (first, first, second, first):
        loss = loss_of(torch.randint(1000, (8, length)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
