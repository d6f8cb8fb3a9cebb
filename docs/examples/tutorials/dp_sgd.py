"""
An opacus run and its accountant
================================

DP-SGD comes with an accountant that computes how private the run is, provided that the code does
what the accountant was told. `watch_dp_sgd` adds canaries to the gradients of the run, and reports
afterwards what they prove.
"""

# %%
# A private run
# -------------
# The data are 1,200 digits, and batches are Poisson samples. This is ordinary opacus code.

import warnings

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import leakbound as lb
from leakbound.integrations import accounted_by

warnings.filterwarnings("ignore", "Secure RNG turned off")
warnings.filterwarnings("ignore", "Full backward hook is firing")

images, labels = load_digits(return_X_y=True)
x = torch.tensor(images[:1_200] / 16 - 0.3, dtype=torch.float32)
y = torch.tensor(labels[:1_200])
STEPS, BATCH = 200, 60


def private():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
    engine = PrivacyEngine(accountant="prv")
    model, optimizer, loader = engine.make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=0.5),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=BATCH),
        noise_multiplier=0.8,
        max_grad_norm=2.0,
    )
    return engine, model, optimizer, loader


# %%
# Watch the run
# -------------
# Wrap the loop in one ``with`` statement. Declare the sampling rate and the number of steps before
# training, as for the accountant. In your own loop, use ``loader.sample_rate`` of the loader that
# `make_private` returned, and the number of epochs times ``len(loader)``. If you pass the number of
# examples, the rate is tested too. The model's own gradients do not change.


def watched(model, optimizer, loader):
    with lb.watch_dp_sgd(
        optimizer, sampling_rate=BATCH / len(y), max_steps=STEPS, examples=len(y), seed=0
    ) as watch:
        for _ in range(STEPS * BATCH // len(y)):
            for inputs, targets in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(inputs), targets).backward()
                optimizer.step()
    return watch


engine, model, optimizer, loader = private()
watch = watched(model, optimizer, loader)

# %%
# Compare with the accountant
# ---------------------------

audit = watch.audit(accounted=accounted_by(engine, delta=1e-5))
print(audit.summary().headline)

# %%
# The audit asks four questions. Does the run as a whole leak more than its noise allows
# (membership)? Does each step add the stated noise (steps)? Are batches Poisson samples (sampling)?
# Does the accountant state a smaller ε than the mechanism has (accounting)?

print("refuted by:", ", ".join(audit.refuted_by) or "nothing")

# %%
# The same run with a fault
# -------------------------
# Forgetting to multiply the noise by the clipping norm is a mistake that no accountant can see.
# This optimizer makes the mistake, and its accountant still reports the same ε.

engine, model, optimizer, loader = private()
add_noise = optimizer.add_noise


def add_too_little_noise():
    norm, optimizer.max_grad_norm = optimizer.max_grad_norm, 1.0
    add_noise()
    optimizer.max_grad_norm = norm


optimizer.add_noise = add_too_little_noise

watch = watched(model, optimizer, loader)
audit = watch.audit(accounted=accounted_by(engine, delta=1e-5))
print("refuted by:", ", ".join(audit.refuted_by) or "nothing")
print(audit.summary().headline)

# %%
# Watching cannot detect some faults, such as a layer that is left out of clipping: a probe of the
# step does (:doc:`/audits/dp-sgd-step`). :doc:`/theory/dp-sgd` lists faults, and measures how often
# the audit refutes runs with each.
