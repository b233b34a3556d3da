"""What kernels take: lists cut at several ranks, exposures of items, and rates of groups of items."""
