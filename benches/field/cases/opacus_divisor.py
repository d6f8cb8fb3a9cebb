"""One step of opacus, whose divisor is the number of records (opacus #571, #819)."""

import warnings

import numpy as np
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
claim, parameter = "gaussian", 0.1  # one step on all records with noise multiplier 10
d0, d1 = np.zeros((2, 1000)), np.zeros((3, 1000))  # a record more, whose gradient is 0
DIVISOR = None


def run(data, rng):
    torch.manual_seed(int(rng.integers(2**31)))
    model = torch.nn.Linear(1000, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    records = TensorDataset(torch.tensor(data, dtype=torch.float32))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=DataLoader(records, batch_size=len(records)),
        noise_multiplier=1 / parameter,
        max_grad_norm=1.0,
    )
    optimizer.expected_batch_size = DIVISOR or optimizer.expected_batch_size
    for (batch,) in loader:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    return float(next(model.parameters()).norm())  # of all weights, which are released
