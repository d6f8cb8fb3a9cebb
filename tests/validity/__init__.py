"""The rows of the validity suite: audits of this package on games whose truth is known."""
