"""
Fair coins: a classifier of your own, with torch
================================================

The audit that proves most per example: before training, a fair coin decides for each *canary*
whether it is trained on; after training, the model is asked about all of them. How often its
answers tell which were included bounds its ε from below.

It takes one training run, and no other model.
"""

# %%
# Canaries
# --------
# A canary is an example that the model can only know by heart. Here 400 of scikit-learn's digits
# get a wrong label; the rest are training data as usual.

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
# The coins are tossed by `InclusionPlan`. Without a seed they come from the system's entropy, which
# is what a real audit wants; the seed here is for this page to come out the same each time. How
# many canaries an audit needs is a question to ask before: see :doc:`/guides/planning`.

plan = lb.InclusionPlan.create(400, seed=0)
plan

# %%
# Training and audit are often two programs: ``plan.save("plan.npz")`` before the one, and
# ``lb.InclusionPlan.load("plan.npz")`` in the other. A plan that is lost cannot be made again,
# unless its seed was written down.
#
# Training
# --------
# The included canaries go in with everything else; the others stay out. Nothing about the loop
# changes.

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
# One number for each canary, included or not: higher for those that the model treats as if it had
# seen them. The log-odds of the label are the default; any other function of model and example will
# do, as long as it does not look at the coins.

scores = score(model, (canaries, wrong), ids=plan.ids, progress=False)
scores

# %%
# The audit
# ---------

result = lb.audit(scores, lb.Coins(plan))
print(result.summary().headline)

# %%
# That is the sentence to report. The result also holds what it rests on: how many guesses were
# made, how many were right, and which bound a perfect attack would have reached with these
# canaries.

print(
    f"{result.correct} of {result.guesses} guesses were right; the ceiling is {result.ceiling:.2f}"
)
for assumption in result.assumptions:
    print(f"- {assumption.name}: {assumption.status}")

# %%
# A claim is checked against the bound. ε = 8 is above the ceiling: even a perfect attack could not
# have refuted it with 400 canaries, so that this audit says nothing of it.

print("ε = 1 is", result.check(epsilon=1.0))
print("ε = 8 is", result.check(epsilon=8.0))

# %%
# Where did the bound come from? The left of the curve holds the most confident guesses; the dot is
# the cut with the largest bound, and that so many cuts were looked at is paid for.

_ = result.plot("bound")

# %%
# ``result.report("report.html", about={"Signal": scores.signal})`` writes the same as a page to
# hand over, ``result.to_json`` and ``lb.AuditResult.from_json`` keep the numbers.
#
# **What can go wrong.** Scores of the included canaries alone, or a plan that was made after
# training, are no audit. If the bound is 0, read :doc:`/guides/bound-is-zero`.
