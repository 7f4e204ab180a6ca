"""The measured datasheet of a machine: facts, bandwidths and latencies by working set, transfers, links."""
