"""One measurement: from a job to samples, and from samples to conclusions."""
