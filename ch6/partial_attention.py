"""Attention to a part of the keys, with what it takes to merge it with attention to the other parts."""

import torch

FUSED = torch.ops.aten._scaled_dot_product_cudnn_attention  # what scaled_dot_product_attention calls on an H200


def attend(q, k, v):
    """(softmax(q k^T / sqrt(d)) v, the logarithm of each row's sum of exp), of q, k and v [heads, length, d].

    The logarithm is float32 [heads, length of q]. On a GPU q, k and v have 16 bits, and d is a multiple of 8.
    """
    if q.device.type == "cpu":
        scores = q @ k.mT / q.shape[-1] ** 0.5
        log_sum = scores.logsumexp(-1)
        return torch.exp(scores - log_sum.unsqueeze(-1)) @ v, log_sum
    q, k, v = (x.clone() if x.data_ptr() % 16 else x for x in (q, k, v))  # it is read 16 bytes at a time
    y, log_sum, *_ = FUSED(q[None], k[None], v[None], None, True)  # without a bias, with the logarithms
    return y[0], log_sum[0].view(q.shape[:2])
