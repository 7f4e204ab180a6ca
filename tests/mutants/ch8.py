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
}  # fmt: skip
