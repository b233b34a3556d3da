"""The stages of an evaluation in their order: plans only, which run nothing, but for the job that makes all sums."""
