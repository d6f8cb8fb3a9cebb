"""
DP-SGD: the scores of a watched run
===================================

`watch_dp_sgd` adds canaries to the gradients of a run with opacus. Those that took part have higher
scores; noise and sampling keep the two groups from separating completely.
"""

import torch
from opacus.optimizers import DPOptimizer

import leakbound as lb

layer = torch.nn.Linear(4, 1)
optimizer = DPOptimizer(
    torch.optim.SGD(layer.parameters(), lr=0.1),
    noise_multiplier=0.8,
    max_grad_norm=1.0,
    expected_batch_size=50,
)
with lb.watch_dp_sgd(optimizer, sampling_rate=0.05, max_steps=200, examples=1_000, seed=0) as watch:
    for _ in range(200):
        batch = int((torch.rand(1_000) < 0.05).sum())
        for parameter in layer.parameters():
            parameter.grad_sample = torch.zeros(batch, *parameter.shape)
        optimizer.step()
        optimizer.zero_grad()

result = watch.audit()
print(result.summary().headline)
_ = result.plot("histogram")
