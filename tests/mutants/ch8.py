"""Wrong versions of chapter 8."""

from mutants.lessons import Mutant

MUTANTS = {
    "head_loss": [
        Mutant("the last tokens, fewer than a chunk, are left out", "range(0, len(x), CHUNK)",
               "range(0, max(len(x) - CHUNK + 1, 1), CHUNK)", of="chunked"),
        Mutant("the target's gradient is not less by 1", "of_targets.expm1()", "of_targets.exp()", of="chunked"),
        Mutant("the last chunk's share replaces the others", "grad_w += grad.mT @ part",
               "grad_w.copy_(grad.mT @ part)", of="chunked"),
        Mutant("the mean is over a chunk", "return loss / len(x)", "return loss / min(len(x), CHUNK)", of="chunked"),
        Mutant("gradients are of the sum, not of the mean", "grad_w.div_(len(x))", "grad_w", of="chunked"),
        Mutant("all chunks have the first one's targets", "targets[t : t + CHUNK])", "targets[: len(part)])",
               of="chunked"),
        Mutant("softmax without its sum", "logits.log_softmax(-1, dtype=torch.promote_types(x.dtype, torch.float32))",
               "(logits - logits.amax(-1, keepdim=True)).to(torch.promote_types(x.dtype, torch.float32))",
               of="chunked"),
        Mutant("log_softmax in 16 bits", "dtype=torch.promote_types(x.dtype, torch.float32))", "dtype=x.dtype)",
               of="chunked"),
    ],
}  # fmt: skip
