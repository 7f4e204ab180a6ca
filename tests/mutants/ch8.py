"""Wrong versions of chapter 8."""

from mutants.lessons import Mutant

MUTANTS = {
    "checkpointing": [
        Mutant("layers before this one get no gradients", "checkpoint(gpt.block, x,",
               "checkpoint(gpt.block, x.detach(),"),
        Mutant("what is kept is kept in 16 bits", "checkpoint(gpt.block, x,",
               "checkpoint(gpt.block, x.bfloat16().to(x.dtype),"),
        Mutant("a layer adds its input, which the block has added", "return checkpoint(", "return x + checkpoint("),
        Mutant("only weights behind the last layer are trained", "gpt.leaves(weights)",
               "[*weights[:-2], *gpt.leaves(weights[-2:])]"),
        Mutant("half of the batch is left out", "gpt.loss_of(words,", "gpt.loss_of(words[: len(words) // 2 + 1],"),
    ],
    "accumulation": [
        Mutant("the loss of a part is not divided", " * (len(part) / len(words))", ""),
        Mutant("unequal parts count as equal ones", "(len(part) / len(words))", "(1 / len(words.split(PART)))"),
        Mutant("a part's gradients are set to zero", "        loss.backward()",
               "        for w in weights:\n            w.grad = None\n        loss.backward()"),
        Mutant("the last part is left out", "words.split(PART):", "words.split(PART)[: max(len(words) // PART, 1)]:"),
        Mutant("the loss is the last part's", "mean += loss", "mean = loss"),
        Mutant("the loss is divided, not the gradient",
               "fused_attention) * (len(part) / len(words))", "fused_attention)",
               also=(("mean += loss.detach()", "mean += loss.detach() * (len(part) / len(words))"),)),
        Mutant("parts go along the sequence", "words.split(PART)", "words.split(words.shape[1] // 2 + 1, 1)",
               also=(("(len(part) / len(words))", "(part.shape[1] / words.shape[1])"),)),
    ],
    "data_loading": [
        Mutant("batches come in another order", "DataLoader(crops, batch,", "DataLoader(crops, batch, shuffle=True,",
               of="workers"),
        Mutant("the last batch is left out", "num_workers=2)", "num_workers=2, drop_last=True)", of="workers"),
        Mutant("each worker has all samples", "crops = pictures.Crops(packed, places,",
               "crops = pictures.Crops(packed, places.repeat(2, 1),", of="workers"),
        Mutant("every step has the weights from before the call", "to(device), state_weights)",
               "to(device), [w.clone() for w in state_weights])", of="workers"),
        Mutant("workers live on", "for pixels in DataLoader(crops, batch, num_workers=2):",
               "run.loader = iter(DataLoader(crops, batch, num_workers=2, persistent_workers=True))\n"
               "    for pixels in run.loader:", of="workers"),
    ],
    "graph_breaks": [
        Mutant("both ways are changed over", "step / norm, step)", "step, step / norm)"),
        Mutant("the step is always scaled", "torch.where(norm > 1, step / norm, step)", "step / norm"),
        Mutant("the norm is a sum", "step.square().mean()", "step.square().sum()"),
        Mutant("the root is left out", ".mean().sqrt()", ".mean()"),
        Mutant("one tensor decides for all", "compiled(*tensors) for tensors in zip(m, v, w, strict=True)",
               "compiled(*tensors) for tensors in [(m, v, w)]", also=(("torch.stack(", "torch.cat("),)),
    ],
    "recompilation": [
        Mutant("rows beyond the length are kept", "[: len(x)] for", " for", of="padded"),
        Mutant("what does not fit is cut off", "-len(x) % MULTIPLE", "-(len(x) % MULTIPLE)", of="padded"),
        Mutant("all rows have one norm, zeros included", "x.shape[1:]", "x.shape", of="padded"),
        Mutant("zeros stand before the rows", "(0, 0, 0, -len(x) % MULTIPLE)", "(0, 0, -len(x) % MULTIPLE, 0)",
               of="padded"),
        Mutant("every length is the longest one's beginning", "compiled(x, gain) for",
               "compiled(xs[0], gain)[: len(x)] for",
               of="dynamic"),
        Mutant("the gain is left out", " * gain)", ")", of="dynamic"),
        Mutant("the gate is its own factor", "eps=1e-5) * gain) * x", "eps=1e-5) * gain).square()", of="dynamic"),
    ],
}  # fmt: skip
