"""What data may be in, and of which type: right scores, or an error that names the part."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from leakbound.errors import InputError, InputTypeError
from leakbound.torch import score

torch.set_num_threads(1)
EXAMPLES, FEATURES, CLASSES, VOCABULARY = 12, 3, 4, 9
torch.manual_seed(0)
NETWORK = nn.Linear(FEATURES, CLASSES)
X, Y = torch.randn(EXAMPLES, FEATURES), torch.randint(CLASSES, (EXAMPLES,))
A, B = X.numpy(), Y.numpy()
EXPECTED = score(NETWORK, (X, Y)).values

INPUTS: dict[str, Any] = {
    "lists": X.tolist(),
    "tuples": tuple(map(tuple, X.tolist())),
    "list of arrays": list(A),
    "list of tensors": list(X),
    "long double": A.astype(np.longdouble),
    "another byte order": A.astype(">f4"),
    "backwards": A[::-1].copy()[::-1],
    "by columns": np.asfortranarray(A),
    "pandas": pd.DataFrame(A),
    "polars": pl.DataFrame(A),
    "pyarrow": pa.table({str(i): A[:, i] for i in range(FEATURES)}),
    "masked, but nothing is": np.ma.masked_array(A),
    "with gradients": X.clone().requires_grad_(),
}
TARGETS: dict[str, Any] = {
    **{str(kind): B.astype(kind) for kind in ("i1", "u1", "u2", "u4", "u8", ">i8")},
    "unsigned tensor": torch.tensor(B.astype(np.uint64)),
    "list": Y.tolist(),
    "list of tensors": list(Y),
    "nullable": pd.Series(B).astype("Int64"),
    "categorical": pd.Categorical(B),
    "polars": pl.Series(B),
    "pyarrow": pa.chunked_array([B]),
}


@pytest.mark.parametrize("container", INPUTS)
def test_inputs(container: str) -> None:
    found = score(NETWORK, (INPUTS[container], Y))
    np.testing.assert_allclose(found.values, EXPECTED, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("container", TARGETS)
def test_targets(container: str) -> None:
    found = score(NETWORK, (X, TARGETS[container]))
    np.testing.assert_allclose(found.values, EXPECTED, rtol=1e-5)
    if container.startswith("list"):
        found = score(NETWORK, (X.tolist(), TARGETS[container]))
        np.testing.assert_allclose(found.values, EXPECTED, rtol=1e-5)


@pytest.mark.parametrize("given", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("model", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_inputs_are_given_the_precision_of_the_model(
    model: torch.dtype, given: torch.dtype
) -> None:
    network = nn.Linear(FEATURES, CLASSES)
    network.load_state_dict(NETWORK.state_dict())
    network.to(model)
    data = X.to(given)
    found = score(network, (data, Y)).values
    with torch.no_grad():
        logits = network(data.to(model))
    expected = score(nn.Identity(), (logits.double(), Y)).values
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found, EXPECTED, atol=0.05)


def test_weights_of_eight_bits_are_not_what_a_model_computes_in() -> None:
    class Stored(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            stored = NETWORK.weight.detach().to(torch.float8_e4m3fn)
            self.weight = nn.Parameter(stored, requires_grad=False)
            self.bias = nn.Parameter(NETWORK.bias.detach().double())

        def forward(self, inputs: Tensor) -> Tensor:
            return nn.functional.linear(inputs, self.weight.double(), self.bias)

    assert np.isfinite(score(Stored(), (X, Y)).values).all()


RAGGED = [[1.0, 2.0], [1.0]] * (EXAMPLES // 2)
REFUSED: list[tuple[Any, type[Exception], str]] = [
    ((A.astype(object), Y), InputTypeError, "got dtype object in inputs"),
    ((A.astype(str), Y), InputTypeError, "got dtype <U32 in inputs"),
    ((A.astype(complex), Y), InputTypeError, "got dtype complex128 in inputs"),
    ((np.ma.masked_array(A, mask=A > 1), Y), InputTypeError, "inputs has masked entries"),
    ((X, np.ma.masked_array(B, mask=B == 0)), InputTypeError, "targets has masked entries"),
    ((X.to_sparse(), Y), InputTypeError, "inputs must be a dense tensor, got a torch.sparse_coo"),
    ((scipy.sparse.csr_matrix(A), Y), InputTypeError, "got dtype object in inputs"),
    (
        (torch.nested.nested_tensor(list(X), layout=torch.jagged), Y),
        InputTypeError,
        "got a nested one",
    ),
    ((RAGGED, Y), InputError, "inputs cannot be read as an array.*mapping with input_ids"),
    ((None, Y), InputTypeError, "got dtype object in inputs"),
    (([], Y), InputError, "got 0 inputs and 12 targets"),
    ((X > 0, Y), InputError, r"cannot take inputs of bool and shape \(12, 3\): RuntimeError"),
    ((X.long(), Y), InputError, r"cannot take inputs of int64 and shape \(12, 3\)"),
    ((X[:, :2], Y), InputError, r"cannot take inputs of float32 and shape \(12, 2\)"),
    ((X, B.astype(np.uint64) + 2**63), InputError, r"below 2\^63"),
    ((X, [2**70] * EXAMPLES), InputTypeError, "got dtype object in targets"),
    ([(None, 1)] * EXAMPLES, InputError, "batch 0 of the data cannot be made.*NoneType"),
    ([(X[0], None)] * EXAMPLES, InputError, "batch 0 of the data cannot be made"),
    ([(torch.zeros(1 + i % 2), 0) for i in range(9)], InputError, "of one shape; RuntimeError"),
    (pd.DataFrame(A), InputTypeError, "got DataFrame"),
    ("abc", InputTypeError, "got str"),
    (zip(X, Y, strict=True), InputTypeError, "got zip"),
    ({"input_ids": None}, InputTypeError, "a mapping with input_ids, got dict"),
]


@pytest.mark.parametrize(("data", "error", "message"), REFUSED)
def test_what_is_refused(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        score(NETWORK, data)


class Language(nn.Module):
    """A causal language model of a recurrent network."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.tokens = nn.Embedding(VOCABULARY, 8)
        self.memory = nn.GRU(8, 8, batch_first=True)
        self.head = nn.Linear(8, VOCABULARY)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        del attention_mask
        logits: Tensor = self.head(self.memory(self.tokens(input_ids))[0])
        return logits


TOKENS = torch.randint(VOCABULARY, (EXAMPLES, 5))
CUT = [row[: 2 + i % 4] for i, row in enumerate(TOKENS.tolist())]


def language_score(data: Any, **options: Any) -> np.ndarray[Any, Any]:
    return score(Language(), data, signal="cross_entropy", batch_size=5, **options).values


EVEN: dict[str, Any] = {
    "bytes": TOKENS.to(torch.uint8),
    "shorts": TOKENS.numpy().astype(np.uint16),
    "lists": {"input_ids": TOKENS.tolist()},
    "tensors": {"input_ids": list(TOKENS)},
    "a series": {"input_ids": pd.Series(TOKENS.tolist())},
    "Arrow": {"input_ids": pa.array(TOKENS.tolist())},
    "rows": [{"input_ids": row, "attention_mask": [1] * 5} for row in TOKENS.tolist()],
    "a mask of booleans": {"input_ids": TOKENS, "attention_mask": TOKENS >= 0},
}
UNEVEN: dict[str, Any] = {
    "lists": {"input_ids": CUT},
    "lists with labels": {"input_ids": CUT, "labels": CUT},
    "lists with a mask": {"input_ids": CUT, "attention_mask": [[1] * len(row) for row in CUT]},
    "objects": {"input_ids": np.array([np.array(row) for row in CUT], dtype=object)},
    "a series": {"input_ids": pd.Series(CUT)},
    "Arrow": {"input_ids": pa.array(CUT)},
    "rows": [{"input_ids": row} for row in CUT],
    "rows with labels": [{"input_ids": row, "labels": row, "text": None} for row in CUT],
    "rows of tensors": [{"input_ids": torch.tensor(row)} for row in CUT],
}


@pytest.mark.parametrize("container", EVEN)
def test_tokens(container: str) -> None:
    np.testing.assert_allclose(language_score(EVEN[container]), language_score(TOKENS), rtol=1e-5)


@pytest.mark.parametrize("container", UNEVEN)
def test_tokens_of_several_lengths_are_padded(container: str) -> None:
    alone = [language_score(torch.tensor([row]))[0] for row in CUT]
    np.testing.assert_allclose(language_score(UNEVEN[container]), alone, rtol=1e-5)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({"input_ids": [[], *CUT[1:]]}, InputError, "input_ids has no token in row 0"),
        ({"input_ids": CUT, "attention_mask": [[1]] * EXAMPLES}, InputError, "attention_mask must"),
        ({"input_ids": CUT, "text": ["a"] * EXAMPLES}, InputTypeError, "got dtype <U1 in text"),
        ({"input_ids": [[2**70] * 5] * 3}, InputTypeError, "got dtype object in input_ids"),
        ({"input_ids": TOKENS - 20}, InputError, "cannot take inputs of int64.*IndexError"),
        ({"input_ids": TOKENS.float()}, InputError, "cannot take inputs of float32"),
        ((CUT, CUT), InputError, "inputs cannot be read as an array"),
        (CUT, InputError, "batch 0 of the data cannot be made"),
        (
            DataLoader([{"input_ids": torch.tensor(row)} for row in CUT], 4),  # type: ignore[arg-type]
            InputError,
            "batch 0 of the data cannot be made",
        ),
    ],
)
def test_tokens_that_are_refused(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        language_score(data)
