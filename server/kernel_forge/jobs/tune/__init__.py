"""The tune job: where search and verification meet."""

from kernel_forge.jobs.tune.job import tune_file

__all__ = ["tune_file"]
