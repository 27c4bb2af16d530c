"""The training engine: runs one `TrainSpec` and reports events. Knows torch and `jobs.contract`, nothing of Django."""
