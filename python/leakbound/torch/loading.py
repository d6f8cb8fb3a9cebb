"""Models by name: a folder or cached name of Hugging Face, or the import path of a torch module."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch import nn

from leakbound._base.checks import instance
from leakbound._base.console import one_line
from leakbound._base.imports import needs, working_folder_last
from leakbound.errors import LeakboundError, OptionError
from leakbound.torch.placement import choose, weights_digest

# The ends of the names of architectures, and which class of transformers loads them.
_CAUSAL = "AutoModelForCausalLM"
_TEXTS = "AutoModelForSequenceClassification"
_KINDS = {
    "ForCausalLM": _CAUSAL,
    "LMHeadModel": _CAUSAL,
    "ForSequenceClassification": _TEXTS,
    "ForImageClassification": "AutoModelForImageClassification",
}
# Nothing is downloaded, and no code runs that comes with a model: nobody is asked either.
_LOCAL: dict[str, object] = {"local_files_only": True, "trust_remote_code": False}


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model on its device, whether inputs are tokens, and whether targets are the next ones."""

    module: nn.Module
    tokens: bool = False
    causal: bool = False
    tokenizer: Any = None
    longest: int | None = None
    """Most tokens that the model takes, if that is known."""
    padding: int = 0
    code: str = ""
    """What computes: the digest of a module's file, or the version of transformers."""

    def digest(self) -> str:
        """Return the SHA-256 of code, layers, options, weights and tokenizer."""
        rules = getattr(self.tokenizer, "backend_tokenizer", None)
        words = None
        if rules:
            words = json.loads(rules.to_str())
            words["truncation"] = None  # as the last call left it
        elif self.tokenizer is not None:
            words = {"vocab": self.tokenizer.get_vocab(), "truncation": None}
        weights = weights_digest(self.module)
        parts = (self.code, self.module, getattr(self.module, "config", None), words, weights)
        return sha256("\n".join(map(str, parts)).encode()).hexdigest()


def load(name: str, dtype: str | None, device: str) -> Loaded:
    """Return a model on a device; a process loads it once, until files in its folder change."""
    folder = Path(name)
    stamps = []
    if folder.is_dir():
        stamps = [file.stat() for file in sorted(folder.iterdir())]
    version = tuple((one.st_size, one.st_mtime_ns) for one in stamps)
    return _load(name, dtype=dtype, device=choose(device, [torch.device("cpu")]), _=version)


@lru_cache(maxsize=2)  # a model, and the one that it is compared with
def _load(name: str, dtype: str | None, device: torch.device, _: object) -> Loaded:
    try:
        if ":" not in name or Path(name).exists():
            loaded = _transformers(name, getattr(torch, dtype or "float32"))
        else:
            package, _, path = name.partition(":")
            with working_folder_last():
                home = import_module(package)
                made = attrgetter(path)(home)
                module = made
                if not isinstance(made, nn.Module):
                    module = made()
            instance(module, name=f"what {name} returns", types=nn.Module)
            file = Path(getattr(home, "__file__", None) or ".")
            code = ""
            if file.is_file():
                code = sha256(file.read_bytes()).hexdigest()
            made = module
            if dtype is not None:
                made = module.to(getattr(torch, dtype))
            loaded = Loaded(made, code=code)
        loaded.module.to(device)
    except LeakboundError:
        raise
    except Exception as error:  # other people's code, and files of any content
        raise OptionError(
            f"model {name!r} cannot be loaded: give a folder, the name of a cached model (nothing "
            f"is downloaded) or package.module:name; {type(error).__name__}: {one_line(error)}"
        ) from error
    return loaded


def _transformers(name: str, dtype: torch.dtype) -> Loaded:
    """Return a model of transformers that is on this machine."""
    with needs("hf", f"loading the model {name!r}"):
        import transformers
    with quiet():
        config = transformers.AutoConfig.from_pretrained(name, **_LOCAL)
        named = (getattr(config, "architectures", None) or ["a model without an architecture"])[0]
        kind = next((_KINDS[end] for end in _KINDS if named.endswith(end)), None)
        if kind is None:
            raise OptionError(
                f"model {name!r} is {named}: scoring needs one of {', '.join(_KINDS)}"
            )
        model, report = getattr(transformers, kind).from_pretrained(
            name, dtype=dtype, output_loading_info=True, **_LOCAL
        )
        missing = report["missing_keys"]
        if missing:
            raise OptionError(
                f"model {name!r} lacks weights, such as {min(missing)}: save it as it was trained"
            )
        model.config.use_cache = False  # a pass over whole texts needs none
        if kind not in {_CAUSAL, _TEXTS}:
            return Loaded(model, code=transformers.__version__)
        tokenizer = None  # inputs may be tokens already
        with suppress(OSError, ValueError, KeyError):
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, **_LOCAL)
    names = ("pad_token_id", "eos_token_id")
    found = [getattr(owner, one, None) for one in names for owner in (tokenizer, model.config)]
    padding = next((token for token in found if isinstance(token, int)), 0)
    model.config.pad_token_id = padding  # some classifiers find the end of texts by it
    limits = (
        getattr(model.config, "max_position_embeddings", None),
        getattr(tokenizer, "model_max_length", None),
    )
    longest = min((limit for limit in limits if limit and limit < 1 << 32), default=None)
    told: dict[str, Any] = {"tokenizer": tokenizer, "longest": longest, "padding": padding}
    told["code"] = transformers.__version__
    return Loaded(model, tokens=True, causal=kind == _CAUSAL, **told)


@contextmanager
def quiet() -> Iterator[None]:
    """Turn off the progress bars and reports of transformers, which come without a terminal too."""
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    level = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
