"""Where a call's time goes: recorded timelines and counters, and scripts for a profiling session."""
