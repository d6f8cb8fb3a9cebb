"""
Stronger attacks with reference models: LiRA and RMIA
=====================================================

Some examples are hard for every model. A low score on such an example does not show that it was
left out of training. Reference models, trained on other parts of the data, show how hard each
example is. LiRA and RMIA compare the audited model with them. The attack decides how much an audit
finds, never whether its bound holds.
"""

# %%
# The model under audit
# ---------------------
# A random forest is trained on a random half of scikit-learn's digits. A fifth of the labels are
# wrong, so that the forest has something to memorise.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import leakbound as lb
from leakbound import attacks

images, labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
noisy = rng.random(len(labels)) < 0.2
labels = np.where(noisy, rng.integers(0, 10, len(labels)), labels)


def forest(members, seed):
    model = RandomForestClassifier(100, min_samples_leaf=4, random_state=seed)
    return model.fit(images[members], labels[members])


member = rng.permutation(len(labels)) < len(labels) // 2
audited = forest(member, seed=0)

# %%
# References
# ----------
# There are sixteen forests of the same kind, each trained on a different random half. The halves
# are drawn without looking at ``member``: otherwise the scores would depend on the labels that the
# audit predicts, and the bound would be wrong.

halves = [rng.permutation(len(labels)) < len(labels) // 2 for _ in range(16)]
references = [forest(half, seed) for seed, half in enumerate(halves, start=1)]


def margins(model):
    chances = np.clip(model.predict_proba(images), 1e-3, None)
    return attacks.margin_threshold(np.log(chances), labels).values


def log_probabilities(model):
    chances = model.predict_proba(images)[np.arange(len(labels)), labels]
    return np.log(np.clip(chances, 1e-3, 1.0))


# %%
# Three attacks
# -------------
# `trained_on` says which reference was trained on which example. For each example, the attacks use
# only the references that were not trained on it.

loss = margins(audited)
lira = attacks.offline_lira(loss, [margins(one) for one in references], trained_on=halves)
rmia = attacks.rmia(
    log_probabilities(audited),
    [log_probabilities(one) for one in references],
    trained_on=halves,
)

for name, scores in (("loss alone", loss), ("LiRA", lira), ("RMIA", rmia)):
    result = lb.audit(scores, lb.RandomSplit(member), seed=0)
    print(f"{name:10}  {result.correct} of {result.guesses} right:  {result.summary().headline}")

# %%
# Reporting the best
# ------------------
# Choosing the largest of three bounds after looking would inflate it. Audit all attacks together:
# each gets a third of the error probability, and the audit reports the best one.

together = lb.audit({"loss": loss, "lira": lira, "rmia": rmia}, lb.RandomSplit(member), seed=0)
print(together.summary().headline)
print("attack:", together.options["attack"])
_ = together.plot("histogram")

# %%
# Leave out ``seed`` in a real audit. Reference models may be smaller or trained for fewer epochs
# than the audited one, and may come from public data: worse references make a weaker attack, not
# a wrong bound.
