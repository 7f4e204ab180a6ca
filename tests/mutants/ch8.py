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
    "adamw": [
        Mutant("the last tensor is left out", "zip(weights, gradients, strict=True)",
               "zip(weights[:-1], gradients[:-1], strict=True)", of="foreach"),
        Mutant("the decay is left out", "    optimizer.step()\n",
               '    optimizer.param_groups[0]["weight_decay"] = 0.0\n    optimizer.step()\n', of="foreach"),
        Mutant("the decay is a part of the gradient, as Adam has it", "    optimizer.step()\n",
               '    optimizer.param_groups[0]["decoupled_weight_decay"] = False\n    optimizer.step()\n', of="foreach"),
        Mutant("the moments are exchanged", "adamw(weights, state_m, state_v,", "adamw(weights, state_v, state_m,",
               of="foreach"),
        Mutant("the weights are copies", "gpt.leaves(state_weights)", "gpt.leaves([w.clone() for w in state_weights])",
               of="fused"),
        Mutant("the second moment is a copy", "state_v, fused=True)", "[v.clone() for v in state_v], fused=True)",
               of="fused"),
        Mutant("a call is two steps", "    optimizer.step()\n", "    optimizer.step()\n    optimizer.step()\n",
               of="fused"),
        Mutant("gradients are normed, each tensor by itself", "w.grad = gradient ",
               "w.grad = gradient / gradient.norm() ",
               of="fused"),
    ],
}  # fmt: skip
