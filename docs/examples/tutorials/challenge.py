"""
A challenge between an auditor and a trainer
============================================

A *trainer* has a model, and an *auditor* wants to know what it leaks. Neither trusts the other.
Here both work on one machine, each in a separate folder. They exchange files through a third
folder, which anybody may read.
"""

# %%
# Two folders and a public one
# ----------------------------
# Each command runs in the folder of the party that types it.

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
# A canary is an example that nobody else has, and that reveals nothing about the other canaries.
# Here the canaries are 300 digits with a wrong label: 64 pixels and the label in each row.

images, labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(labels))
chosen, ordinary = order[:300], order[300:]
wrong = (labels[chosen] + rng.integers(1, 10, 300)) % 10
np.save(auditor / "canaries.npy", np.column_stack([images[chosen], wrong]))

# %%
# The protocol fixes how the scores will be audited, so that nobody can choose options after seeing
# the scores.

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
# The auditor keeps the folder ``secret``. The trainer gets the canaries that the coins included,
# and a commitment that reveals nothing about the coins.
#
# The trainer: train, and fix the model
# -------------------------------------
# The trainer keeps the commitment, to compare the result with it later. The canaries are added to
# the training data, and nothing else about training changes.

shutil.copy(public / "commitment.json", trainer)
canaries = np.load(public / "train-on-these.npy")
training = np.vstack([np.column_stack([images[ordinary], labels[ordinary]]), canaries])
model = MLPClassifier((128,), max_iter=1000, tol=1e-3, random_state=0)
_ = model.fit(training[:, :-1] / 16, training[:, -1])

# %%
# The published digest fixes the model. After this step, the other canaries cannot help the trainer.

(trainer / "model.pickle").write_bytes(pickle.dumps(model))
digest = hashlib.sha256((trainer / "model.pickle").read_bytes()).hexdigest()
_ = (public / "model.sha256").write_text(digest, encoding="utf-8")

# %%
# The auditor: hand over all canaries
# -----------------------------------
# The auditor waits for the digest; otherwise the trainer could train on the other half too.

_ = shutil.copy(auditor / "challenge/secret/canaries.npy", public / "score-these.npy")

# %%
# The trainer: score each of them
# -------------------------------
# The trainer knows which canaries were included. The scores must not depend on that. The id of a
# row is its position in the file.

asked = np.load(public / "score-these.npy")
told = model.predict_proba(asked[:, :-1] / 16)[np.arange(len(asked)), asked[:, -1].astype(int)]
loss = np.log(np.maximum(told, 1e-300))
rows = [f"{row},{float(one)!r}" for row, one in enumerate(loss)]
_ = (public / "scores.csv").write_text("\n".join(["id,loss", *rows, ""]), encoding="utf-8")

# %%
# The auditor: judge
# ------------------
# The command runs the audit of the protocol, and has no option that could change it. Exit code 1
# means that the agreed claim is refuted.

code = leakbound(
    auditor, "challenge", "judge", "challenge", "--scores", "../public/scores.csv",
    "--model-sha256", digest,
)  # fmt: skip
print("exit code", code)
_ = shutil.copytree(auditor / "challenge/bundle", public / "bundle")

# %%
# Anybody: verify
# ---------------
# The trainer, or any reader, runs the audit again from the public files, and compares it with the
# commitment from the first step.

code = leakbound(trainer, "verify", "../public/bundle", "--commitment", "commitment.json")
print("exit code", code)

# %%
# Cheating that is detected
# -------------------------
# An auditor who replaces the coins, for example by coins that fit the scores, can no longer open
# the commitment:

shutil.copytree(auditor / "challenge", auditor / "forged")
lb.InclusionPlan(loss > np.median(loss)).save(auditor / "forged/secret/plan.npz")
code = leakbound(auditor, "challenge", "judge", "forged", "--scores", "../public/scores.csv")
print("exit code", code)

# %%
# A trainer who leaves out the scores of some canaries is refused:

(place / "some.csv").write_text("\n".join(["id,loss", *rows[10:], ""]), encoding="utf-8")
code = leakbound(auditor, "challenge", "judge", "challenge", "--scores", "../some.csv")
print("exit code", code)

# %%
# A result that was changed afterwards no longer matches the scores:

result = public / "bundle/result.json"
result.write_text(result.read_text("utf-8").replace('"refuted"', '"not refuted"'), "utf-8")
code = leakbound(trainer, "verify", "../public/bundle", "--commitment", "commitment.json")
print("exit code", code)

# %%
# Cheating that is not detected
# -----------------------------
# The *auditor* tosses the coins alone. They could toss until the coins suit them and commit only
# then, or commit many times and show one result. Therefore the trainer keeps the one commitment of
# the first step, and may ask that both parties contribute to the seed.
#
# The *trainer* can leave canaries out of training, add noise to the scores, or score a different
# model than the deployed one. All of this hides leakage, and none of it creates any. So a refuted
# claim is strong evidence, but a claim that is not refuted is no evidence of privacy if the trainer
# computed the scores. Ask for the model with the published digest instead. :doc:`/theory/evidence`
# has the whole list, and explains how to prevent each kind of cheating.
