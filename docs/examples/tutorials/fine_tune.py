"""
A fine-tuned language model
===========================

A transformer is fine-tuned on private text with low-rank adapters (LoRA); the base model stays
frozen. How much do the adapters reveal about single texts? The canaries are random strings. The
score compares the likelihood of each canary under the fine-tuned model with that under the base
model.

Nothing is downloaded. The model is small and works on bytes. This page trains its base on the
source code of Python's library. You can use a model from the hub instead without other changes.
"""

# %%
# A base model
# ------------

import copy
import inspect
import random as standard_library
import warnings

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

import leakbound as lb
from leakbound.torch import score

warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")

LENGTH = 32
text = " ".join((inspect.getsource(standard_library), inspect.getsource(inspect)))
stream = torch.tensor(list(text.encode())[: 1_600 * LENGTH])
pages = stream.view(-1, LENGTH)
general, private = pages[:1_300], pages[1_300:]

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=256,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=LENGTH,
)


def train(model, tokens, *, epochs, rate):
    """Minimise the loss of the next token."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate)
    for _ in range(epochs):
        for batch in torch.randperm(len(tokens)).split(32):
            optimizer.zero_grad()
            model(input_ids=tokens[batch], labels=tokens[batch]).loss.backward()
            optimizer.step()


base = LlamaForCausalLM(config)
train(base, general, epochs=4, rate=3e-3)

# %%
# Canaries among the private text
# -------------------------------
# The canaries are 300 strings of random lower-case letters. A fair coin decides for each whether it
# is part of the fine-tuning data.

rng = np.random.default_rng(0)
canaries = torch.tensor(rng.integers(ord("a"), ord("z") + 1, size=(300, LENGTH)))
plan = lb.InclusionPlan.create(300, seed=0)

adapters = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
tuned = get_peft_model(copy.deepcopy(base), adapters)
trained, every = tuned.get_nb_trainable_parameters()
print(f"{trained:,} of {every:,} weights are trained")

train(tuned, torch.cat([private, plan.included(canaries)]), epochs=30, rate=3e-3)

# %%
# Scores and audit
# ----------------
# `signal="loss_drop"` is the loss under the base model minus the loss under the fine-tuned model.
# This cancels how hard each text is for any model. For variable-length texts, pass the full
# tokenizer output, including ``attention_mask``, so that padding does not count.

scores = score(
    tuned,
    {"input_ids": canaries},
    signal="loss_drop",
    reference=base,
    ids=plan.ids,
    progress=False,
)
result = lb.audit(scores, lb.Coins(plan))
print(result.summary().headline)

# %%
# The bound is about fine-tuning only: the base model was trained without canaries. The unit is one
# text of the private data.

_ = result.plot("histogram")
