"""Wrong versions of chapter 8."""

from mutants.lessons import Mutant

MUTANTS = {
    "training_step": [
        Mutant("attention sees the words to come", "is_causal=True", "is_causal=False", of="sdpa", file="gpt.py"),
        Mutant("scores are not scaled", "is_causal=True", "is_causal=True, scale=1.0", of="sdpa", file="gpt.py"),
        Mutant("gradients of two steps are summed", "    optimizer.zero_grad(set_to_none=True)\n", "", of="bf16"),
        Mutant("the step is left out", "    optimizer.step()\n", "", of="bf16"),
        Mutant(
            "the step is taken twice",
            "    optimizer.step()\n",
            "    optimizer.step()\n    optimizer.step()\n",
            of="foreach",
        ),
        Mutant("it climbs", "state_v, foreach=True", "state_v, foreach=True, maximize=True", of="foreach"),
        Mutant(
            "the embedding is not trained",
            "gpt.adamw(weights, state_m, state_v,",
            "gpt.adamw(weights[1:], state_m[1:], state_v[1:],",
            of="fused",
        ),
        Mutant(
            "one moment is taken for the other",
            "gpt.adamw(weights, state_m, state_v,",
            "gpt.adamw(weights, state_v, state_m,",
            of="fused",
        ),
        Mutant(
            "the loss is of half of the words",
            "loss_of(words,",
            "loss_of(words[:, : words.shape[1] // 2 + 1],",
            of="bf16",
        ),
        Mutant("the first sequence is left out", "loss_of(words,", "loss_of(words[1:],", of="sdpa"),
        Mutant(
            "gradients are summed over the sequences", "loss.backward()", "(loss * len(words)).backward()", of="fused"
        ),
        Mutant(
            "weights are rounded to 16 bits",
            "    optimizer.zero_grad(set_to_none=True)\n",
            "    optimizer.zero_grad(set_to_none=True)\n    state_weights[0].copy_(state_weights[0].half())\n",
            of="fused",
            passes="on bfloat16 products: a rounding to 11 bits is within what their gradients allow",
        ),
    ],
}
