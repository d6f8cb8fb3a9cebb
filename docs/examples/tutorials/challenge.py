"""
A challenge, played by both roles
=================================

An *auditor* wants to know what a model gives away, and a *trainer* has it. Neither believes the
other. Here both play on one machine, each in a folder of its own; what goes from one to the other
goes through a third folder, which anybody may read.
"""

# %%
# Two folders and a public one
# ----------------------------
# Commands run as a shell would run them, in the folder of whoever types them.

import hashlib
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import leakbound as lb

place = Path(tempfile.mkdtemp())
auditor, trainer, public = (place / name for name in ("auditor", "trainer", "public"))
for folder in (auditor, trainer, public):
    folder.mkdir()


def leakbound(folder: Path, *words: str) -> int:
    """Run the program in a folder, print what it says and return its exit code."""
    command = [sys.executable, "-m", "leakbound", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    print(f"{folder.name}$ leakbound {' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.returncode


# %%
# The auditor: canaries, protocol, commitment
# -------------------------------------------
# A canary is an example that nobody else has, and that says nothing of the others. Here they are
# 300 digits with a wrong label: 64 pixels and the label in each row.

images, labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(labels))
chosen, ordinary = order[:300], order[300:]
wrong = (labels[chosen] + rng.integers(1, 10, 300)) % 10
np.save(auditor / "canaries.npy", np.column_stack([images[chosen], wrong]))

# %%
# The protocol says what will be done with the scores, so that it cannot be chosen to suit them.

protocol = """
claim = { type = "PureDP" }
confidence = 0.95
cuts = "auto"
sides = "auto"
attacks = ["loss"]
unit = "one training image"
canaries = "300 digits with wrong labels, drawn by the auditor"
checked = { epsilon = 1.0 }
notes = "the score is minus the cross-entropy of the canary's label"
"""
_ = (auditor / "protocol.toml").write_text(protocol, encoding="utf-8")

# %%
# One command tosses a fair coin for each canary and commits to coins, protocol and canaries. The
# commitment is published **before** the trainer gets anything.

leakbound(
    auditor, "challenge", "new", "canaries.npy", "--out", "challenge", "--protocol", "protocol.toml"
)
shutil.copy(auditor / "challenge/public/commitment.json", public)
shutil.copy(auditor / "challenge/for-the-trainer/canaries.npy", public / "train-on-these.npy")
print((public / "commitment.json").read_text())

# %%
# The folder ``secret`` stays with the auditor. What the trainer has is the half of the canaries
# that the coins included, and a number that tells nothing of the coins.
#
# The trainer: train, and fix the model
# -------------------------------------
# The trainer keeps the commitment: it is what the result will be held against. The canaries go in
# with the rest of the data, and nothing else about training changes.

shutil.copy(public / "commitment.json", trainer)
canaries = np.load(public / "train-on-these.npy")
training = np.vstack([np.column_stack([images[ordinary], labels[ordinary]]), canaries])
model = MLPClassifier((128,), max_iter=1000, tol=1e-3, random_state=0)
_ = model.fit(training[:, :-1] / 16, training[:, -1])

# %%
# With its digest published the model is fixed: from here on, knowing the other canaries is no help.

(trainer / "model.pickle").write_bytes(pickle.dumps(model))
digest = hashlib.sha256((trainer / "model.pickle").read_bytes()).hexdigest()
_ = (public / "model.sha256").write_text(digest, encoding="utf-8")

# %%
# The auditor: hand over all canaries
# -----------------------------------
# Not before the digest is there, or the trainer could train on the other half too.

_ = shutil.copy(auditor / "challenge/secret/canaries.npy", public / "score-these.npy")

# %%
# The trainer: score each of them
# -------------------------------
# Which were included is known to the trainer, who was given them; the score must not depend on it.
# A row is named by its place in the file.

asked = np.load(public / "score-these.npy")
told = model.predict_proba(asked[:, :-1] / 16)[np.arange(len(asked)), asked[:, -1].astype(int)]
loss = np.log(np.maximum(told, 1e-300))
rows = [f"{row},{float(one)!r}" for row, one in enumerate(loss)]
_ = (public / "scores.csv").write_text("\n".join(["id,loss", *rows, ""]), encoding="utf-8")

# %%
# The auditor: judge
# ------------------
# The audit is the one of the protocol, and takes no option that could change it. Exit code 1: the
# claim that was agreed on is refuted.

code = leakbound(
    auditor, "challenge", "judge", "challenge", "--scores", "../public/scores.csv",
    "--model-sha256", digest,
)  # fmt: skip
print("exit code", code)
_ = shutil.copytree(auditor / "challenge/bundle", public / "bundle")

# %%
# Anybody: verify
# ---------------
# The trainer, or a reader who knows neither of them, runs the audit again from what is public, and
# compares it with the commitment kept since the first step.

code = leakbound(trainer, "verify", "../public/bundle", "--commitment", "commitment.json")
print("exit code", code)

# %%
# Who cheats, and is seen
# -----------------------
# An auditor who would rather have had other coins, say those that the scores suggest, no longer
# opens the commitment:

shutil.copytree(auditor / "challenge", auditor / "forged")
lb.InclusionPlan(loss > np.median(loss)).save(auditor / "forged/secret/plan.npz")
code = leakbound(auditor, "challenge", "judge", "forged", "--scores", "../public/scores.csv")
print("exit code", code)

# %%
# A trainer who leaves some canaries out has not scored what was asked for:

(place / "some.csv").write_text("\n".join(["id,loss", *rows[10:], ""]), encoding="utf-8")
code = leakbound(auditor, "challenge", "judge", "challenge", "--scores", "../some.csv")
print("exit code", code)

# %%
# And a number that was changed afterwards is not that of the scores:

result = public / "bundle/result.json"
result.write_text(result.read_text("utf-8").replace('"refuted"', '"not refuted"'), "utf-8")
code = leakbound(trainer, "verify", "../public/bundle", "--commitment", "commitment.json")
print("exit code", code)

# %%
# Who cheats, and is not
# ----------------------
# The *auditor* alone tosses the coins, can toss until they suit and commit only then, and can
# commit many times and show one: the trainer keeps the one commitment of the first step, and may
# ask that both have a part in the seed. The *trainer* can leave canaries out of training, or blunt
# the scores, or score another model than the deployed one. All of that hides leakage and none makes
# it up, so that a claim which is not refuted is no evidence of privacy where the trainer scores:
# ask for the model of the published digest instead. :doc:`/theory/evidence` has the whole list, and
# what closes each.
