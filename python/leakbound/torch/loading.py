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
from leakbound.torch.device import choose, weights_digest

# The ends of the names of architectures, and which class of transformers loads them.
_LANGUAGE_MODEL = "AutoModelForCausalLM"
_TEXT_CLASSIFIER = "AutoModelForSequenceClassification"
_LOADERS = {
    "ForCausalLM": _LANGUAGE_MODEL,
    "LMHeadModel": _LANGUAGE_MODEL,
    "ForSequenceClassification": _TEXT_CLASSIFIER,
    "ForImageClassification": "AutoModelForImageClassification",
}
# Tokenizers without a limit state one that is larger.
_NO_LIMIT = 1 << 32
# Nothing is downloaded, and no code runs that comes with a model: nobody is asked either.
_ONLY_LOCAL: dict[str, object] = {"local_files_only": True, "trust_remote_code": False}


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
        fast_tokenizer = getattr(self.tokenizer, "backend_tokenizer", None)
        tokenizer_rules = None
        if fast_tokenizer:
            tokenizer_rules = json.loads(fast_tokenizer.to_str())
            tokenizer_rules["truncation"] = None  # as the last call left it
        elif self.tokenizer is not None:
            tokenizer_rules = {"vocab": self.tokenizer.get_vocab(), "truncation": None}
        weights = weights_digest(self.module)
        config = getattr(self.module, "config", None)
        parts = (self.code, self.module, config, tokenizer_rules, weights)
        content = "\n".join(map(str, parts))
        return sha256(content.encode()).hexdigest()


def load(name: str, dtype: str | None, device: str) -> Loaded:
    """Return a model on a device; a process loads it once, until files in its folder change."""
    folder = Path(name)
    file_states = []
    if folder.is_dir():
        file_states = [file.stat() for file in sorted(folder.iterdir())]
    folder_version = tuple((state.st_size, state.st_mtime_ns) for state in file_states)
    chosen_device = choose(device, [torch.device("cpu")])
    return _load_model_once(name, dtype=dtype, device=chosen_device, _=folder_version)


@lru_cache(maxsize=2)  # a model, and the one that it is compared with
def _load_model_once(name: str, dtype: str | None, device: torch.device, _: object) -> Loaded:
    try:
        if ":" not in name or Path(name).exists():
            loaded = _load_transformers(name, getattr(torch, dtype or "float32"))
        else:
            loaded = _imported_torch_module(name)
            if dtype is not None:
                loaded.module.to(getattr(torch, dtype))
        loaded.module.to(device)
    except LeakboundError:
        raise
    except Exception as error:  # other people's code, and files of any content
        raise OptionError(
            f"model {name!r} cannot be loaded: give a folder, the name of a cached model (nothing "
            f"is downloaded) or package.module:name; {type(error).__name__}: {one_line(error)}"
        ) from error
    return loaded


def _imported_torch_module(import_path: str) -> Loaded:
    """Return a torch module by its import path, or what a function there returns."""
    package, _, attribute_path = import_path.partition(":")
    with working_folder_last():
        imported = import_module(package)
        module = attrgetter(attribute_path)(imported)
        if not isinstance(module, nn.Module):
            module = module()
    instance(module, name=f"what {import_path} returns", types=nn.Module)
    code_digest = ""
    file_name = getattr(imported, "__file__", None)
    if file_name and Path(file_name).is_file():
        code_digest = sha256(Path(file_name).read_bytes()).hexdigest()
    return Loaded(module, code=code_digest)


def _load_transformers(name: str, dtype: torch.dtype) -> Loaded:
    """Return a model of transformers that is on this machine."""
    with needs("hf", f"loading the model {name!r}"):
        import transformers
    with quiet():
        config = transformers.AutoConfig.from_pretrained(name, **_ONLY_LOCAL)
        architectures = getattr(config, "architectures", None)
        architecture = "a model without an architecture"
        if architectures:
            architecture = architectures[0]
        loader_name = _transformers_loader_of(architecture)
        if loader_name is None:
            raise OptionError(
                f"model {name!r} is {architecture}: scoring needs one of {', '.join(_LOADERS)}"
            )
        loader = getattr(transformers, loader_name)
        model, report = loader.from_pretrained(
            name, dtype=dtype, output_loading_info=True, **_ONLY_LOCAL
        )
        missing_weights = report["missing_keys"]
        if missing_weights:
            raise OptionError(
                f"model {name!r} lacks weights, such as {min(missing_weights)}: save it as it was "
                "trained"
            )
        model.config.use_cache = False  # a pass over whole texts needs none
        if loader_name not in {_LANGUAGE_MODEL, _TEXT_CLASSIFIER}:
            return Loaded(model, code=transformers.__version__)
        tokenizer = None  # inputs may be tokens already
        with suppress(OSError, ValueError, KeyError):
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, **_ONLY_LOCAL)
    padding_token = _padding_token(tokenizer, model.config)
    model.config.pad_token_id = padding_token  # some classifiers find the end of texts by it
    return Loaded(
        model,
        tokens=True,
        causal=loader_name == _LANGUAGE_MODEL,
        tokenizer=tokenizer,
        longest=_most_tokens_of_model(tokenizer, model.config),
        padding=padding_token,
        code=transformers.__version__,
    )


def _transformers_loader_of(architecture: str) -> str | None:
    """Return the class of transformers that loads models of an architecture."""
    for ending, loader_name in _LOADERS.items():
        if architecture.endswith(ending):
            return loader_name
    return None


def _padding_token(tokenizer: object, config: object) -> int:
    """Return the token that pads texts, or else the one at their end; 0 if neither is known."""
    for name in ("pad_token_id", "eos_token_id"):
        for owner in (tokenizer, config):
            token = getattr(owner, name, None)
            if isinstance(token, int):
                return token
    return 0


def _most_tokens_of_model(tokenizer: object, config: object) -> int | None:
    """Return the most tokens that a model takes, if that is known."""
    limits = (
        getattr(config, "max_position_embeddings", None),
        getattr(tokenizer, "model_max_length", None),
    )
    return min((limit for limit in limits if limit and limit < _NO_LIMIT), default=None)


@contextmanager
def quiet() -> Iterator[None]:
    """Turn off the progress bars and reports of transformers, which come without a terminal too."""
    from transformers.utils import logging

    shows_progress = logging.is_progress_bar_enabled()
    verbosity = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shows_progress:
            logging.enable_progress_bar()
