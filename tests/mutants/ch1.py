"""Chapter 1's wrong versions."""

from mutants.lessons import Mutant

MUTANTS = {
    "arithmetic_intensity": [
        Mutant("no block for the elements after the last whole one", "-(-x.size // (4 * THREADS))",
               "max(x.size // (4 * THREADS), 1)", of="fused"),
        Mutant("the last n % 4 are left out", "for (int k = 4 * i; k < n; ++k)",
               "for (int k = 4 * i; k < n / 4 * 4; ++k)", of="vectorized"),
        Mutant("a last float4 beyond the end is written", "if (i < n / 4)", "if (i <= n / 4)", of="fused",
               passes="what lies behind an allocation is nobody's: compute-sanitizer tells"),
        Mutant("steps of 128 where a block has 256 threads", "blockDim.x;\n        if (i < n) a",
               "128;\n        if (i < n) a", also=(("k * blockDim.x", "k * 128"),), of="unrolled"),
        Mutant("what the last pass left is multiplied by itself, not by x", "float4 b = ((const float4*)x)[i];",
               "float4 b = a;", of="vectorized"),
    ],
    "batch_size": [
        Mutant("the last samples, no whole batch, are not computed",
               "    return torch.cat([model(batch) for batch in x.split(BATCH)])",
               "    y = torch.empty_like(x)\n"
               "    for start in range(0, len(x) // BATCH * BATCH, BATCH):\n"
               "        y[start : start + BATCH] = model(x[start : start + BATCH])\n"
               "    return y"),
        Mutant("weights in bfloat16", "build(w_weights, w_biases)",
               "build([w.bfloat16().float() for w in w_weights], w_biases)"),
        Mutant("every batch in the same memory", "    return torch.cat([model(batch) for batch in x.split(BATCH)])",
               "    y = torch.empty_like(x[:BATCH])\n"
               "    parts = [y[: len(batch)].copy_(model(batch)) for batch in x.split(BATCH)]\n"
               "    return torch.cat(parts)"),
    ],
    "batched_gemm": [
        Mutant("multiplied in float16", "xp.matmul(a, b, out=out)",
               'out[...] = xp.matmul(a.astype("float16"), b.astype("float16"))', of="strided"),
        Mutant("every b with the first a", "xp.matmul(a, b, out=out)", "xp.matmul(a[:1], b, out=out)", of="strided"),
        Mutant("matrices as far apart as those of a", "index * matrices[0].nbytes", "index * a[0].nbytes",
               of="pointer_array"),
        Mutant("added to what lies in out", "ZERO.ctypes.data", "ONE.ctypes.data", of="pointer_array"),
    ],
    "coalescing": [
        Mutant("no program for the elements after the last whole block", "triton.cdiv(n, 1024),",
               "max(n // 1024, 1),", of="wide"),
        Mutant("the last element is masked", "offsets < n", "offsets < n - 1", of="wide"),
        Mutant("one element beyond the end is written", "offsets < n", "offsets <= n", of="wide",
               on_a_gpu="what lies behind an allocation is nobody's: compute-sanitizer tells"),
        Mutant("squared in float16", "x * x, mask=mask",
               "(x.to(tl.float16) * x.to(tl.float16)).to(tl.float32), mask=mask", of="wide"),
        Mutant("a gap of one element between blocks", "pid * BLOCK + lane", "pid * (BLOCK + 1) + lane", of="adjacent"),
        Mutant("lanes two elements apart, in the first half of x twice", "pid * BLOCK + lane",
               "pid * BLOCK // 2 + 2 * lane", of="adjacent"),
    ],
    "cuda_graphs": [
        Mutant("replayed on old inputs", "    static_x.copy_(x)  # the graph reads this address\n", ""),
        Mutant("replayed before the inputs are copied",
               "    static_x.copy_(x)  # the graph reads this address\n    graph.replay()\n",
               "    graph.replay()\n    static_x.copy_(x)\n"),
        Mutant("replayed on another stream, which nobody waits for", "    graph.replay()\n",
               "    with torch.cuda.stream(torch.cuda.Stream()):\n        graph.replay()\n"),
    ],
    "double_buffering": [
        Mutant("both streams use the same buffer", "chunk[i % 2].copy_", "chunk[0].copy_",
               also=(("chunk[i % 2]", "chunk[0]"),), passes="a race, which small sizes show on some runs only"),
        Mutant("nobody waits for the streams",
               "    for stream in streams:\n        torch.cuda.current_stream().wait_event(stream.record_event())\n",
               "", passes="a race, which small sizes show on some runs only"),
        Mutant("only the first stream is waited for", "    for stream in streams:\n        torch.cuda.current_stream()",
               "    for stream in streams[:1]:\n        torch.cuda.current_stream()",
               passes="the second has ended, at the check sizes, before the answer is looked at"),
        Mutant("the other stream's result is copied out", "out[i].copy_(result[i % 2]",
               "out[i].copy_(result[(i + 1) % 2]"),
        Mutant("the last chunk is left out", "range(len(x))", "range(len(x) - 1)"),
    ],
    "pinned_memory": [
        Mutant("copied on another stream, which nobody waits for", "    return out.copy_(x)",
               "    with torch.cuda.stream(torch.cuda.Stream()):\n        return out.copy_(x, non_blocking=True)",
               passes="a race, which small sizes show on some runs only"),
        Mutant("copied in four pieces, without the n % 4 left", "    return out.copy_(x)",
               "    piece = len(x) // 4\n"
               "    for i in range(4):\n"
               "        out[i * piece : (i + 1) * piece].copy_(x[i * piece : (i + 1) * piece], non_blocking=True)\n"
               "    return out"),
        Mutant("a pinned copy is made once, in setup", "def run(x, out):\n    return out.copy_(x)",
               'def setup(x, out):\n    return {"pinned": x.clone().pin_memory()}\n\n\n'
               "def run(x, out, pinned):\n    return out.copy_(pinned, non_blocking=True)"),
    ],
    "preallocation": [
        Mutant("not clamped below", "torch.clamp(a, 0.0, 6.0, out=b)", "torch.clamp(a, max=6.0, out=b)"),
        Mutant("x + 3 is rounded to float16", "torch.add(x, 3.0, out=a)", "a.copy_(torch.add(x, 3.0).half())"),
        Mutant("x is a third buffer", "torch.mul(b, x, out=a)\n    return torch.div(a, 6.0, out=b)",
               "torch.mul(b, x, out=x)\n    return torch.div(x, 6.0, out=b)"),
        Mutant("x + 3 is computed once, in setup",
               '{"a": torch.empty_like(x), "b": torch.empty_like(x)}\n\n\n'
               "def run(x, a, b):\n    torch.add(x, 3.0, out=a)\n",
               '{"a": x + 3.0, "b": torch.empty_like(x)}\n\n\ndef run(x, a, b):\n'),
    ],
}  # fmt: skip
