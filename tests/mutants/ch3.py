"""Chapter 3's wrong versions."""

from mutants import Mutant

MUTANTS = {
    "softmax": [
        Mutant("no maximum is subtracted", "x - tl.max(x, 1, keep_dims=True)", "x"),
        Mutant("the row's tail counts as zeros", 'mask=mask, other=float("-inf")', "mask=mask, other=0.0"),
    ],
    "layer_norm_backward": [
        Mutant("rows % programs are dropped", "tl.range(tl.program_id(0), n_rows,",
               "tl.range(tl.program_id(0), n_rows // tl.num_programs(0) * tl.num_programs(0),"),
        Mutant("dbias sums dx's factor", "dbias += dy\n", "dbias += g\n"),
    ],
}  # fmt: skip
