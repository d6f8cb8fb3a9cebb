"""White-box audits of DP-SGD: canaries in every noisy gradient, and what these prove."""
