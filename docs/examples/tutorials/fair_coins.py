"""
Fair coins: your own torch classifier
=====================================

This is the most powerful audit. Before training, a fair coin decides for each *canary* whether the
model is trained on it. After training, an attack guesses which canaries were included. The accuracy
of those guesses gives a lower bound on ε.

The audit needs one training run and no other model. :doc:`/audits/canaries` is the short version.
"""

# %%
# Canaries
# --------
# A canary is an example that the model can only get right by memorising it. Here 400 of
# scikit-learn's digits get a wrong label. The rest are ordinary training data.

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import leakbound as lb
from leakbound.torch import score

images, labels = load_digits(return_X_y=True)
x = torch.tensor(images / 16 - 0.3, dtype=torch.float32)
y = torch.tensor(labels)

rng = np.random.default_rng(0)
order = rng.permutation(len(y))
chosen, ordinary = order[:400], order[400:]
canaries = x[chosen]
wrong = (y[chosen] + torch.tensor(rng.integers(1, 10, 400))) % 10

# %%
# `InclusionPlan` tosses the coins. Leave out the seed in a real audit: the coins then come from the
# system's entropy. Here the seed makes the page reproducible. :doc:`/guides/planning` shows how
# many canaries you need.

plan = lb.InclusionPlan.create(400, seed=0)
plan

# %%
# Training and audit are often two programs. Call ``plan.save("plan.npz")`` in the first and
# ``lb.InclusionPlan.load("plan.npz")`` in the second. Save the plan: without it or its seed the
# audit cannot be run.
#
# Training
# --------
# Add the included canaries to the training data. The others stay out. The training loop does not
# change.

training_x = torch.cat([x[ordinary], plan.included(canaries)])
training_y = torch.cat([y[ordinary], plan.included(wrong)])

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(60):
    for batch in torch.randperm(len(training_y)).split(64):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(training_x[batch]), training_y[batch])
        loss.backward()
        optimizer.step()

# %%
# Scores
# ------
# The attack needs one number for each canary, included or not: higher if the model behaves as if it
# had seen the canary. The default is the log-odds of the label. You may use any other function of
# model and example that does not use the coins.

scores = score(model, (canaries, wrong), ids=plan.ids, progress=False)
scores

# %%
# The audit
# ---------

result = lb.audit(scores, lb.Coins(plan))
print(result.summary().headline)

# %%
# Report this sentence. The result also has the evidence and the assumptions: the number of guesses,
# how many were right, and the ceiling, which is the bound that a perfect attack would have reached
# with these canaries.

print(
    f"{result.correct} of {result.guesses} guesses were right; the ceiling is {result.ceiling:.2f}"
)
for assumption in result.assumptions:
    print(f"- {assumption.name}: {assumption.status}")

# %%
# `check` compares a claim with the bound. ε = 8 is above the ceiling: even a perfect attack could
# not have refuted it with 400 canaries, so the audit is inconclusive about that claim.

print("ε = 1 is", result.check(epsilon=1.0))
print("ε = 8 is", result.check(epsilon=8.0))

# %%
# Where does the bound come from? The included canaries score higher. In the tails, where nearly all
# canaries are of one kind, guesses are nearly always right.

_ = result.plot("histogram")

# %%
# ``result.report("report.html", about={"Signal": scores.signal})`` writes a report that you can
# share. ``result.to_json(path)`` stores the result, and ``lb.load(path)`` reads it back.
#
# **What can go wrong.** The audit is invalid if only the included canaries were scored, or if the
# plan was made after training. If the bound is 0, read :doc:`/guides/bound-is-zero`.
