"""
Choices: canaries that differ in a secret
=========================================

A coin decides whether a canary is trained on. A *choice* decides which of the k candidates of a
secret is trained on: which number in a sentence, or which label of an image. The attack guesses the
candidate. By chance, one guess in k is right. A right guess is therefore stronger evidence than a
right guess about a coin, and you need fewer canaries. :doc:`/audits/choices` is the short version.
"""

# %%
# One of ten labels for each image
# --------------------------------
# The canaries are 150 images of scikit-learn's digits. `ChoicePlan` draws one of ten labels for
# each, before training and independently of what the image shows.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

import leakbound as lb

images, labels = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(labels))
canaries, ordinary = images[order[:150]], order[150:]

plan = lb.planning.ChoicePlan.create(150, k=10, seed=0)
plan

# %%
# Leave out the seed in a real audit. Save the draws for the audit with ``plan.save("plan.npz")``
# and load them with ``lb.planning.ChoicePlan.load``. `included` returns the candidate of each
# secret to train on; here that is a label.

candidates = np.tile(np.arange(10), (150, 1))
secret = plan.included(candidates)
secret[:10]

# %%
# Training
# --------
# Add the canaries, with the drawn labels, to the training data.

model = ExtraTreesClassifier(200, min_samples_leaf=2, bootstrap=True, random_state=0)
_ = model.fit(
    np.concatenate([images[ordinary], canaries]), np.concatenate([labels[ordinary], secret])
)

# %%
# Scores of all ten candidates
# ----------------------------
# Scores have a row for each secret and a column for each candidate, in an order that does not
# depend on the draw. Here a score is the probability that the model gives to a label. For a
# language model, use the log-likelihood of each candidate of the sentence.

scores = model.predict_proba(canaries)
scores.shape

# %%
# The audit
# ---------
# The guess about a secret is the candidate with the largest score. The audit ranks guesses by
# their margin over the second-largest score. The bound is on replacing one candidate by another.

result = lb.audit(scores, lb.Choices(plan))
print(result.summary().headline)
print(f"{result.correct} of {result.guesses} guesses were right; by chance one in ten is")

# %%
# Most labels that were not trained on have a score near 0. Others have a high score because they
# are what the image really shows.

_ = result.plot("histogram")

# %%
# With two candidates of each secret, the same number of right guesses proves less:

two = lb.audit(np.eye(2)[[0, 1] * 75], lb.Choices([0, 1] * 75, k=2))
print(f"a perfect attack on 150 secrets proves ε ≥ {two.bound:.2f} among two candidates,")
print(f"and ε ≥ {result.ceiling:.2f} among ten")

# %%
# A guarantee is usually stated for adding or removing one example. It implies a guarantee for
# replacing a candidate with twice the ε. `check` converts the claim, never the bound.

print("ε = 1, adding or removing:", result.check(epsilon=1.0, relation="add_remove"))

# %%
# Other claims use the same scores:

for claim in (lb.ApproxDP(delta=1e-5), lb.GaussianDP()):
    print(lb.audit(scores, lb.Choices(plan), claim=claim, seed=0))

# %%
# **What can go wrong.** Do not list the true candidate first. A model that learned nothing gives
# ties, and an attack that breaks ties in favour of the first candidate is always right. leakbound
# breaks ties at random, and refuses draws that cannot have been uniform:

try:
    lb.audit(scores, lb.Choices(np.zeros(150, dtype=int), k=10))
except lb.LeakboundError as error:
    print(error)

# %%
# On the command line, use a file with the columns ``score_0`` to ``score_9`` and ``chosen``:
#
# .. code-block:: console
#
#    $ leakbound choices scores.parquet
