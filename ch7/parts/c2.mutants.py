"""Chapter 7's wrong versions: attention of one token, caches."""

from mutants.lessons import Mutant

MUTANTS = {
    "decode_attention": [
        Mutant("the new token does not see itself", "tl.load(position_ptr) + 1", "tl.load(position_ptr)", of="split"),
        Mutant("keys beyond whole shares are left out", "tl.cdiv(tl.cdiv(length, BLOCK_N), shares) * BLOCK_N",
               "tl.maximum(length // BLOCK_N // shares, 1) * BLOCK_N", of="split"),
        Mutant("a share without keys counts as scores of 0", "(m_i + tl.log2(l_i))[:, None]",
               "tl.where(l_i == 0, 0.0, m_i + tl.log2(l_i))[:, None]", of="split"),
        Mutant("unwritten rows count as scores of 0", "tl.where(in_length[None, :], tl.dot(q, k.T) * qk_scale,",
               "tl.where((offs_n >= 0)[None, :], tl.dot(q, k.T) * qk_scale,", of="split"),
        Mutant("all groups read the first head's keys", "(head * capacity + start)", "start", of="split"),
        Mutant("parts are merged with equal weights", "online_softmax(lse,", "online_softmax(tl.minimum(lse, 0.0),",
               of="split", file="softmax_parts.py"),
        Mutant("earlier shares are not scaled down", "acc * alpha[:, None] + tl.sum(parts", "acc + tl.sum(parts",
               of="last", file="softmax_parts.py"),
        Mutant("the counter is not set back", "        tl.store(counter_ptr + head, 0)  # for the next step\n", "",
               of="last"),
        Mutant("the last but one merges", "== shares - 1:", "== tl.maximum(shares - 2, 0):", of="last"),
        Mutant("one counter for all heads", "tl.atomic_add(counter_ptr + head,", "tl.atomic_add(counter_ptr,",
               of="last"),
        Mutant("a program counts itself before it has written", "    rows = (head",
               "    before = tl.atomic_add(counter_ptr + head, 1, sem=\"acq_rel\")\n    rows = (head", of="last",
               also=(("tl.atomic_add(counter_ptr + head, 1, sem=\"acq_rel\") ==", "before =="),)),
    ],
    "kv_cache": [
        Mutant("the new row is hidden", "<= position", "< position", of="static"),
        Mutant("rows that are not written yet count", "v[None], mask[None])", "v[None])",
               of="static"),
        Mutant("values are written into the keys", "v = cache_v[layer].index_copy_(1, position, value",
               "v = cache_k[layer].index_copy_(1, position, value", of="static"),
        Mutant("every layer writes the first layer's row", "key[layer, :,", "key[0, :,", of="static"),
        Mutant("the row is attended to, and not kept", "cache_k[layer].index_copy_(1,", "cache_k[layer].index_copy(1,",
               of="static"),
        Mutant("the last block is not in use", "table[: n // BLOCK + 1]", "table[: max(n // BLOCK, 1)]", of="paged"),
        Mutant("the row's place in its block is the last", "position % BLOCK", "position.clamp(max=BLOCK - 1)",
               of="paged"),
        Mutant("the rest of the last block counts", "[:, : n + 1] for x", "[:, :] for x", of="paged"),
        Mutant("the first block is written again", "table[position // BLOCK]", "table[0 * position]", of="paged"),
    ],
}  # fmt: skip
