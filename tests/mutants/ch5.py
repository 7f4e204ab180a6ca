"""Chapter 5's wrong versions."""

from mutants.lessons import Mutant

SGP, FCGP, FUSED = "clifford/sgp.py", "clifford/fcgp.py", "clifford/fcgp_fused.py"
# What stands before the second of two equal texts in sgp.py
RIGHT = "RIGHT=found.sums(1, 0, 2), GRADES=found.grades,\n        NORMALIZED=normalized, "
WEIGHTS = "other=0.0).to(tl.float32)\n    begin, end, step = (0, 1, 1) "
# What a formula's version runs in its place
OWN_PRODUCT = """    found = formulas.algebra_of(x)
    product = formulas._weighted({}, {}, w.unbind(-1), found.sums(2, 0, 1))
    return formulas.torch.stack(formulas._normalized(product, found) if normalized else product)"""
OWN_ROOT = """    def product(x, y, w, normalized):
        out = formulas.sgp(x, y, w, False)
        parts = out.split(formulas.algebra_of(x).sizes)
        roots = [{} for part in parts]
        return formulas.torch.cat([a / b for a, b in zip(parts, roots)]) if normalized else out

    return {}"""
MEAN = "part.square().sum(0).mean(-1, keepdim=True)"
PRODUCT_GRADIENTS = "gradients(product, x, y, w, gradient, normalized)"
BACKWARD_RUN = "    return gradients(formulas.sgp, x, y, w, gradient, normalized)"


def _in_run(body: str) -> tuple[str, str]:
    """The formulas' version with a body of its own."""
    head = "def run(x, y, w, normalized):\n"
    return head + "    return formulas.sgp(x, y, w, normalized)", head + body


MUTANTS = {
    "layout": [
        Mutant("programs beyond whole blocks are left out", "(triton.cdiv(size, 512),)", "(max(size // 512, 1),)"),
        Mutant("phi is tanh's", "0.5 + 0.5 * tl.erf(x * 0.7071067811865476)",
               "1 / (1 + tl.exp(-1.5957691216057308 * x * (1 + 0.044715 * x * x)))"),
        Mutant("3D is taken for 2D", "tl.static_range(1, D)", "tl.static_range(1, 4)"),
        Mutant("each blade is gated by itself", "tl.store(out_ptr + offsets + i * stride_d, x * phi, mask=mask)",
               "tl.store(out_ptr + offsets + i * stride_d, x * (0.5 + 0.5 * tl.erf(x * 0.7071067811865476)), "
               "mask=mask)"),
    ],
    "sgp": [
        Mutant("y is not gated", *_in_run(OWN_PRODUCT.format("formulas._gated(x.unbind())", "y.unbind()")),
               of="written_out"),
        Mutant("the gate leaves its own blade as it is",
               *_in_run(OWN_PRODUCT.format("[x[0], *formulas._gated(x.unbind())[1:]]", "formulas._gated(y.unbind())")),
               of="written_out"),
        Mutant("all is normalized", *_in_run("    return formulas.sgp(x, y, w)"), of="written_out"),
        Mutant("epsilon is left out",
               *_in_run(OWN_ROOT.format(f"{MEAN}.sqrt()", "product(x, y, w, normalized)")), of="written_out"),
        Mutant("epsilon is added to the root",
               *_in_run(OWN_ROOT.format(f"{MEAN}.sqrt() + 1e-6", "product(x, y, w, normalized)")), of="written_out"),
        Mutant("a part of a row is normalized by itself", f"{RIGHT}WIDE=wide", f"{RIGHT}WIDE=False",
               also=(("WIDE=wide", "WIDE=False"),), of="tuned", file=SGP),
        Mutant("a program works on its first tile alone", f"{WEIGHTS}if STAGES == 0", f"{WEIGHTS}if STAGES < 2",
               also=(("if STAGES == 0 else (group", "if STAGES < 2 else (group"),), of="tuned", file=SGP),
        Mutant("the mean is over the block", "blade *= tl.rsqrt(squares[item(GRADES, i)] / columns",
               "blade *= tl.rsqrt(squares[item(GRADES, i)] / BLOCK",
               also=(("] / columns + epsilon", "] / BLOCK + epsilon"),), of="tuned", file=SGP),
        Mutant("the pseudoscalar squares to 1", "TABLE=found.sums(2, 0, 1), GRADES=found.grades,\n        NORMALIZED",
               "TABLE=tuple(tuple((k, tuple((i, j, s if i + j < 2 * len(x) - 2 else 1) for i, j, s in terms))\n"
               "                    for k, terms in path) for path in found.sums(2, 0, 1)),\n"
               "        GRADES=found.grades, NORMALIZED", of="tuned", file=SGP),
        Mutant("y is read as if it had no gaps", "y.contiguous()", "y", of="tuned"),
        Mutant("the gate is x's alone", "gate = phi(x[0]) * phi(y[0])", "gate = phi(x[0])", of="fused"),
        Mutant("each blade is normalized by itself", "if GRADES[k] == grade:\n                square",
               "if k == grade:\n                square", of="fused"),
        Mutant("signs are left out", "acc += TERMS[n][3] * (w", "acc += (w", of="fused"),
    ],
    "sgp_backward": [
        Mutant("the normalization's root is taken for a constant", BACKWARD_RUN,
               OWN_ROOT.format(f"({MEAN} + 1e-6).sqrt().detach()", PRODUCT_GRADIENTS), of="written_out"),
        Mutant("all is normalized", BACKWARD_RUN, BACKWARD_RUN.replace("normalized)", "True)"), of="written_out"),
        Mutant("epsilon is left out", BACKWARD_RUN,
               OWN_ROOT.format(f"{MEAN}.sqrt()", PRODUCT_GRADIENTS), of="written_out"),
        Mutant("dy goes without its gate's gradient", "dy = (dy[0] + density(y[0]) * phi(x[0]) * acc,)",
               "dy = (dy[0],)", of="tuned", file=SGP),
        Mutant("dw goes without the gates", "dw = added_at(dw, path, factor * acc)", "dw = added_at(dw, path, acc)",
               of="tuned", file=SGP),
        Mutant("a part of a row is normalized by itself", f"{RIGHT}WIDE=wide", f"{RIGHT}WIDE=False",
               also=(("WIDE=wide", "WIDE=False"),), of="tuned", file=SGP),
        Mutant("programs' sums beyond whole blocks are left out", "for first in range(0, programs, ROWS):",
               "for first in range(0, programs - ROWS + 1, ROWS):", of="tuned", file=SGP),
        Mutant("dy has dx's terms", "products(x, g, w, RIGHT, D)", "products(x, g, w, LEFT, D)", of="fused"),
        Mutant("a program's last row alone counts for dw", "sums = sums + (dw[path] + gate * acc,)",
               "sums = sums + (gate * acc,)", of="fused"),
        Mutant("the gate is taken for a constant", "density(x[0]) * phi(y[0]) * S, D)", "0.0, D)", of="fused"),
    ],
    "fcgp": [
        Mutant("epsilon is added to the root", "tl.sqrt(tl.sum(squares, 0) / features + epsilon)",
               "tl.sqrt(tl.sum(squares, 0) / features) + epsilon", of="tuned", file=FCGP),
        Mutant("the smallest product stands for one of the others", "a @ b_low + a_low @ b",
               "a @ b_low + a_low @ b_low", of="tf32x3"),
        Mutant("all is normalized", "formulas.normalize(out) if normalized else out", "formulas.normalize(out)",
               of="by_grade"),
        Mutant("the paths are in another order than their matrices", "w_weight[paths].flatten",
               "w_weight[paths[::-1]].flatten", of="by_grade"),
        Mutant("all is normalized by the kernel", "forward(x, y, w_weight, normalized,",
               "forward(x.contiguous(), y.contiguous(), w_weight.contiguous(), True,", of="tf32"),
        Mutant("a matrix is taken for its transpose", "matrices_of(W, dimensions)]", "matrices_of(W.mT, dimensions)]",
               of="tuned", file=FCGP),
        Mutant("features beyond whole blocks are left out", "for first in range(0, features, BLOCK_K):",
               "for first in range(0, features // BLOCK_K * BLOCK_K, BLOCK_K):", of="fused", file=FUSED),
    ],
    "fcgp_backward": [
        Mutant("W's gradient is left out", "gradient, x, y, w_weight)\n",
               "gradient, x, y, w_weight)[:2] + (0 * w_weight,)\n", of="by_grade"),
        Mutant("all is normalized", "product(*tensors, normalized)", "product(*tensors, True)", of="by_grade"),
        Mutant("the normalization's root is taken for a constant", "(g - o * mean) / root", "g / root", of="tf32",
               file=FCGP),
        Mutant("dy's gate is x's", "dy_i += density(y[0]) * gate_x * acc", "dy_i += density(y[0]) * gate_y * acc",
               of="tuned", file=FCGP),
        Mutant("dW lies in the order of the products",
               "torch.stack([dW_c[paths.index(path)] for path in range(len(W))])", "dW_c", of="tf32", file=FCGP),
    ],
    "layer": [
        Mutant("every blade has the bias", "y[0] += w_bias", "y += w_bias"),
        Mutant("one matrix serves all grades", "matrices[grade] for", "matrices[0] for"),
        Mutant("the fully connected product is always normalized", "w_weight.contiguous(), normalized)[0]",
               "w_weight)[0]", of="tuned"),
        Mutant("matrices go by blades, not by grades", "matrices[grade] for grade in algebra_of(x).grades",
               "matrices[blade % len(matrices)] for blade in range(len(x))"),
        Mutant("no bias where features are weighted", "normalized, w_bias.contiguous())", "normalized)",
               of="tuned"),
    ],
}  # fmt: skip
