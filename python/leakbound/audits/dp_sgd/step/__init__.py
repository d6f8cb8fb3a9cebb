"""A probe of one step of DP-SGD: runs of the real step on neighbouring batches."""
