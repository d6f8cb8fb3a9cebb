"""
Deletion: what unlearning leaves behind
=======================================

People ask for their records to be deleted, and the model is changed instead of being trained again
from scratch. Did it forget them? Fair coins answer this: they compare records that were *included,
then deleted* with records that were *never included*. :doc:`/audits/deletion` is the short version.
"""

# %%
# The deletion set
# ----------------
# 400 of scikit-learn's digits get a wrong label, so that there is something to forget. Before
# training, a fair coin decides for each of them whether the model is trained on it. The other
# digits are kept. Leave out the seed in a real audit.

import copy
import math

import matplotlib.pyplot as plt
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
asked, kept = order[:400], order[400:]
wrong = (y[asked] + torch.tensor(rng.integers(1, 10, 400))) % 10
keep = (x[kept], y[kept])

plan = lb.InclusionPlan.create(400, seed=0)
delete = (plan.included(x[asked]), plan.included(wrong))

# %%
# Training
# --------
# The model is trained on 700 of the kept digits. Then the included records arrive, together with
# the rest, and training goes on. A checkpoint from before their arrival is saved. If ``away`` has
# records, `train` *raises* the loss on them.


def train(model, data, epochs, *, seed, rate=3e-3, weight=1.0, away=None):
    model = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    draw = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for batch in torch.randperm(len(data[1]), generator=draw).split(64):
            loss = weight * nn.functional.cross_entropy(model(data[0][batch]), data[1][batch])
            if away is not None:
                some = torch.randint(len(away[1]), (64,), generator=draw)
                loss -= 0.3 * nn.functional.cross_entropy(model(away[0][some]), away[1][some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


torch.manual_seed(0)
network = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10))
checkpoint = train(network, (keep[0][:700], keep[1][:700]), 30, seed=0)
everything = (torch.cat([keep[0], delete[0]]), torch.cat([keep[1], delete[1]]))
model = train(checkpoint, everything, 60, seed=1)

# %%
# Routines
# --------
# Now all included records are deleted, and no others.
#
# - *Retrain* goes back to the checkpoint and trains again without the deleted records.
# - *Fine-tune* continues training without them.
# - *Ascend* raises the loss on them for 20 epochs. *Repair* then trains on the kept digits for 5.
# - *Push away* lowers the loss on kept digits and raises it on deleted records at the same time.

ascended = train(model, delete, 20, seed=3, rate=1e-3, weight=-1.0)
models = {
    "no deletion": model,
    "retrain": train(checkpoint, keep, 60, seed=1),
    "fine-tune": train(model, keep, 20, seed=2),
    "ascend": ascended,
    "ascend, repair": train(ascended, keep, 5, seed=4),
    "push away": train(model, keep, 60, seed=5, rate=1e-2, away=delete),
}

# %%
# The audit
# ---------
# All 400 records are scored: the log-odds of the wrong label. A routine may also overdo it and make
# the model *less* sure of a deleted label than of one that it never saw. So the audit takes the
# scores with both signs, and shares the error probability between them.

scores = {
    name: score(one, (x[asked], wrong), progress=False).values for name, one in models.items()
}
for name, one in models.items():
    attacks = {"remembered": scores[name], "overdone": -scores[name]}
    result = lb.audit(attacks, lb.Coins(plan), seed=0)
    right = (one(keep[0]).argmax(1) == keep[1]).float().mean()
    found = result.options["attack"] if result.bound > 0 else "nothing found"
    print(f"{name:14}  ε ≥ {result.bound:.2f}  {found:13}  {right:4.0%} of kept digits right")

# %%
# - **No deletion** is the membership audit. It shows that the attack works.
# - **Retraining** is exact: the checkpoint never saw the deleted records, and nothing in the second
#   training depends on them. ε = 0 is what any audit should find, but for 5 % of false alarms. The
#   same holds for training in shards (SISA), if each shard is trained again from a checkpoint like
#   this one.
# - **Fine-tuning** leaves part of what was learned.
# - **Ascent** hides everything, the digits included. Five epochs of repair bring back the digits,
#   and also the deleted records: they were never forgotten. Audit the model that you publish.
# - **Pushing away** overdoes it. Deleted records have *lower* scores than records that were never
#   included, and are found at the other end.

figure, axes = plt.subplots(1, 4, figsize=(10, 2.6), sharey=True, layout="constrained")
for ax, name in zip(axes, ("no deletion", "retrain", "fine-tune", "push away"), strict=True):
    bins = np.linspace(*np.quantile(scores[name], [0.02, 0.98]), 30)  # without outliers
    ax.hist(scores[name][plan.member], bins, alpha=0.6, label="included, then deleted")
    ax.hist(scores[name][~plan.member], bins, alpha=0.6, label="never included")
    ax.set(title=name, xlabel="log-odds of the label")
_ = figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)

# %%
# A claim of certified unlearning
# -------------------------------
# Certified removal (Guo et al. 2020) deletes from a regularised logistic regression by one Newton
# step. Noise in the training loss hides what the step leaves. The claim is (ε, δ) = (1, 10⁻⁴):
# the law of the model after a batch of deletions is this close to the law after retraining.
#
# Here the model separates digits below 5 from the others, and the batch has at most 60 records.

unit = images / np.linalg.norm(images, axis=1, keepdims=True)
sign = np.where(labels >= 5, 1.0, -1.0)
batch, rest, fresh = order[:60], order[60:1400], order[1400:]
sign[batch] *= -1  # wrong labels
ridge, width = 1e-2, unit.shape[1]


def slope(weights, rows, noise):
    """Return gradient and Hessian of the loss."""
    doubt = 1 / (1 + np.exp(sign[rows] * (unit[rows] @ weights)))
    gradient = -(sign[rows] * doubt) @ unit[rows] + ridge * len(rows) * weights + noise
    hessian = (unit[rows].T * (doubt * (1 - doubt))) @ unit[rows]
    return gradient, hessian + ridge * len(rows) * np.eye(width)


def train_and_delete(member, noise):
    """Train on the members and the rest, delete the members, and bound what is left of them."""
    weights = np.zeros(width)
    for _ in range(5):
        gradient, hessian = slope(weights, np.concatenate([batch[member], rest]), noise)
        weights -= np.linalg.solve(hessian, gradient)
    gradient, hessian = slope(weights, rest, noise)
    step = np.linalg.solve(hessian, gradient)
    left = np.linalg.norm(unit[rest], 2) * np.linalg.norm(step) * np.linalg.norm(unit[rest] @ step)
    return weights - step, left / 4


# %%
# The standard deviation of the noise is chosen before training, from the bound on what is left if
# all 60 are deleted. Larger leftovers would force the owner to train again.

epsilon, delta = 1.0, 1e-4
budget = 1.2 * train_and_delete(np.ones(60, dtype=bool), np.zeros(width))[1]
scale = budget * math.sqrt(2 * math.log(1.5 / delta)) / epsilon

# %%
# A stronger attack
# -----------------
# The auditor knows the candidates and the rest of the data, but not the coins. Without noise, the
# gradient of the loss on the rest is 0 after exact retraining, and after a Newton step it is almost
# 0. The auditor runs the owner's program with other coins, learns which coins leave which gradient,
# and predicts the real coins from the real gradient.

coins = lb.InclusionPlan.create(60, seed=1)


def predict(published, scale, draws):
    own = draws.random((300, 60)) < 0.5
    runs = [train_and_delete(one, draws.normal(size=width) * scale)[0] for one in own]
    left = np.array([slope(one, rest, 0)[0] for one in [*runs, published]])
    left = (left - left.mean(0)) / left.std()
    spread = left[:-1].T @ left[:-1] + 1e-12 * np.eye(width)
    return left[-1] @ np.linalg.solve(spread, left[:-1].T @ (own - 0.5))


for name, size in (("with noise", scale), ("without noise", 0.0)):
    draws = np.random.default_rng(2)
    published, left = train_and_delete(coins.member, draws.normal(size=width) * size)
    assert left <= budget
    right = np.mean(sign[fresh] * (unit[fresh] @ published) > 0)
    print(f"{name}: {right:.0%} of new digits right")
    # The test of a claim for a batch. Two attacks share the error probability.
    level = (0.05 / 2 - delta) / math.exp(epsilon)
    for attack, values in (
        ("gradient", predict(published, size, draws)),
        ("log-odds", sign[batch] * (unit[batch] @ published)),
    ):
        result = lb.audit(values, lb.Coins(coins), confidence=1 - level, seed=0)
        verdict = "refuted" if result.bound > 0 else "not refuted"
        print(f"  {attack}: AUC {result.auc:.2f}, the claim is {verdict}")

# %%
# Without noise the claim is false. The log-odds of the labels do not show it, but the gradient
# does: a bound of 0 depends on the attack. With the noise that the proof requires, the audit finds
# nothing. This agrees with the proof, and does not replace it.
#
# A claim for a batch is tested at the error probability 0.05/e^ε, or a little less with δ:
# :doc:`/theory/deletion` has the proof. For a claim about *one* deletion, run training and deletion
# again for each coin, and declare `Trials`.
