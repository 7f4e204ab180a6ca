"""The measured datasheet of a machine: facts, bandwidth and latency by working set, transfers, links."""
