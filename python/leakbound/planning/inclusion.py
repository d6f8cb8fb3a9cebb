"""Which canaries go into the training set: a coin or a choice for each, drawn before training."""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from leakbound._base.alignment import picked, row_names
from leakbound._base.checks import (
    MOST_EXAMPLES,
    MOST_K,
    check_ids,
    check_membership,
    integer,
    membership_vector,
    numbers,
    seed_of,
    shown,
    vector,
    whole_numbers,
)
from leakbound._base.drawn import check_copies, check_unit, refuse_copies
from leakbound._base.files import Archive, open_archive, replacing
from leakbound._base.reading import readable
from leakbound._base.streams import Purpose
from leakbound._base.types import (
    AnyArray,
    ArrayInput,
    BoolArray,
    Data,
    IntArray,
    JsonObject,
    JsonValue,
    Named,
    PathInput,
)
from leakbound.errors import FormatError, InputError, InputTypeError, LeakboundError
from leakbound.planning.commitment import NONCE, Opening, read_opening

T = TypeVar("T")
Scalar = TypeVar("Scalar", bound=np.generic)

# Number of the file layout: it rises whenever an array changes its name or meaning.
SCHEMA = 2
# That of a plan of several copies, which a reader of the other would take for one of single ones.
_SCHEMA_OF_COPIES = 3
# Bytes of the largest plan that is read: 10^8 examples, with ids of 8 characters each.
_MOST_BYTES = 1 << 32


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Plan:
    """The draws for each example before training: an `InclusionPlan` or a `ChoicePlan`."""

    drawn: AnyArray
    ids: AnyArray
    seed: int | None
    k: int = 0
    """Candidates of each secret; 0 for coins."""
    copies: int = 1
    """How often each member is inserted: `included` repeats it."""
    unit: str = "example"
    """One word for what is drawn, which results take over."""

    def commit(self, protocol: Mapping[str, JsonValue]) -> Opening:
        """Commit to this plan and to the protocol of the audit, before training.

        The opening has the plan, the protocol and 256 random bits. Save it by
        `opening.save(folder)`, and keep it secret until the audit. Publish `opening.commitment`,
        a digest of the three.

        Parameters
        ----------
        protocol : mapping
            What `leakbound.planning.read_protocol` reads from a file: claim, confidence, cuts,
            sides, attacks, unit and canaries, and other options of `audit`. A seed is drawn if it
            names none.
        """
        # Whoever may choose the seed after scoring can try many, and report the best.
        protocol_with_seed: JsonObject = {"seed": secrets.randbelow(2**53), **protocol}
        if self.copies > 1:
            protocol_with_seed = {"copies": self.copies, **protocol_with_seed}
        random_nonce = secrets.token_hex(NONCE)
        opening = Opening(plan=self, protocol=protocol_with_seed, nonce=random_nonce)
        # The audit is rehearsed on uninformative scores, so that errors appear before training.
        opening.agreed.rehearse(self.drawn, self.k)
        return opening

    def subset(self, rows: ArrayInput) -> Self:
        """Return the plan of some of its examples, such as those that `learnt_score` leaves.

        Parameters
        ----------
        rows : array-like of int
            Positions of the examples, in any order. Which these are must not depend on the draws.
        """
        checked_rows = numbers(
            vector(rows, name="rows"),
            name="rows",
            least=0,
            most=len(self) - 1,
            whole=True,
        )
        positions_of_rows = checked_rows.astype(np.int64)
        options_of_plan: Named = {"ids": self.ids[positions_of_rows], "copies": self.copies}
        plan_type: Any = type(self)
        if self.k:
            options_of_plan["k"] = self.k
        else:
            options_of_plan["unit"] = self.unit
        plan: Self = plan_type(self.drawn[positions_of_rows], **options_of_plan)
        return plan

    def save(self, path: PathInput) -> None:
        """Write the plan as a NumPy archive ``.npz`` that only its owner can read, or nothing."""
        with replacing(path, secret=True) as file:
            self.write(file)

    def write(self, file: IO[bytes]) -> None:
        """Write the plan to a binary file that is open, as `save` does."""
        further_arrays: Named = {}
        layout_number = SCHEMA
        if self.copies > 1:
            further_arrays = {"copies": np.int64(self.copies)}
            layout_number = _SCHEMA_OF_COPIES
        if self.unit != "example":  # a word for sentences, which older versions do without
            further_arrays["unit"] = np.str_(self.unit)
        seed_as_text = ""
        if self.seed is not None:
            seed_as_text = str(self.seed)
        np.savez_compressed(
            file,
            inclusion_plan=np.int64(layout_number),
            drawn=self.drawn,
            k=np.int64(self.k),
            ids=self.ids,
            seed=np.str_(seed_as_text),
            **further_arrays,
        )

    @classmethod
    def load(cls, path: PathInput | IO[bytes]) -> Self:
        """Read a plan that `save` wrote, or raise FormatError. Nothing in the file is executed."""
        try:
            with open_archive(path, most=_MOST_BYTES) as archive:
                return cls._plan_of_archive(archive)
        except (LeakboundError, ValueError, TypeError, OverflowError) as error:
            what: PathInput = "the content"
            if isinstance(path, str | os.PathLike):
                what = path
            message = f"{what} is not an InclusionPlan or ChoicePlan: {error}; write plans "
            raise FormatError(message + "with plan.save(path)") from error

    def __len__(self) -> int:
        return self.drawn.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return (
            self.seed == other.seed
            and self.k == other.k
            and self.copies == other.copies
            and self.unit == other.unit
            and np.array_equal(self.ids, other.ids)
            and np.array_equal(self.drawn, other.drawn)
        )

    def __hash__(self) -> int:
        return hash((self.seed, self.drawn.tobytes()))

    @classmethod
    def _plan_of_archive(cls, archive: Archive) -> Self:
        layout_number = int(archive["inclusion_plan"])
        if layout_number not in {SCHEMA, _SCHEMA_OF_COPIES}:
            raise FormatError(f"its layout must be number {SCHEMA} or {_SCHEMA_OF_COPIES}")
        seed_as_text = str(archive["seed"])
        k = int(archive["k"])
        stored_copies = 1
        if layout_number == _SCHEMA_OF_COPIES:
            stored_copies = int(archive["copies"])
        plan_type: Any = InclusionPlan
        if k:
            plan_type = ChoicePlan
        if not issubclass(plan_type, cls):
            raise FormatError(f"it is a {plan_type.__name__}, but a {cls.__name__} is needed")
        seed = None
        if seed_as_text:
            seed = int(seed_as_text)
        options_of_plan: Named = {"ids": archive["ids"], "seed": seed, "copies": stored_copies}
        if k:
            options_of_plan["k"] = k
        elif "unit" in archive.names:
            options_of_plan["unit"] = str(archive["unit"])
        plan: Self = plan_type(archive["drawn"], **options_of_plan)
        return plan

    def _set_draws(
        self,
        drawn: AnyArray,
        ids: Data,
        seed: int | None,
        copies: int,
        k: int = 0,
        unit: str = "example",
    ) -> None:
        """Set draws, ids, seed, copies and unit; arrays are read-only."""
        copies = integer(copies, name="copies", least=1)
        check_copies(copies, drawn.size)
        drawn_coins = drawn
        if k:
            drawn_coins = np.ones(drawn.size, dtype=np.bool_)
        read_ids: AnyArray = np.arange(drawn.size)
        if ids is not None:
            read_ids = _ids_without_pickle(ids, drawn_coins)
        for array in (drawn, read_ids):
            array.flags.writeable = False
        if seed is not None:
            seed = integer(seed, name="seed", least=0)
        vars(self).update(
            drawn=drawn,
            ids=read_ids,
            seed=seed,
            k=k,
            copies=copies,
            unit=check_unit(unit),
        )

    @property
    def _options_in_repr(self) -> str:
        """Copies as the representation has them; the seed, which tells all draws, is secret."""
        options = ""
        if self.copies > 1:
            options += f", copies={self.copies}"
        if self.unit != "example":
            options += f", unit={self.unit!r}"
        return options

    def _check_items_of_plan(self, items: Data) -> None:
        has_no_dimensions = getattr(items, "shape", None) == ()
        is_sequence = hasattr(items, "__len__") and hasattr(items, "__getitem__")
        if has_no_dimensions or not is_sequence:
            raise InputTypeError(
                "items must have a length and be indexed by position (a sequence, array, tensor, "
                f"data frame or map-style dataset), got {type(items).__name__}"
            )
        if len(items) != len(self):
            raise InputError(
                f"items has {len(items)} elements but the plan has {len(self)}; pass one for each "
                "example of the plan, in the same order"
            )


@dataclass(frozen=True, init=False, eq=False, repr=False)
class InclusionPlan(Plan):
    """Which of `n` examples are members: independent fair coins, flipped before training.

    Train on `included` and keep `excluded` out of training. Then score all `n` examples and audit
    the scores against the plan.

    An independent fair coin stays fair given all the other coins. Every bound relies on this: under
    ε-DP each guess is correct with probability at most e^ε / (1 + e^ε), whatever the other guesses
    were. If exactly n/2 members were drawn, the last memberships would follow from the others.

    Parameters
    ----------
    member : array-like of shape (n,)
        True for the members, from coins flipped elsewhere. `create` flips new ones.
    ids : array-like of shape (n,), optional
        A different integer or string for each example; by default the index of a pandas Series of
        membership if it names each row, otherwise 0, 1, …, n - 1.
    seed : int, optional
        The seed of `create`; None for coins flipped elsewhere.
    copies : int
        How often each member is inserted into the training data, at least 1 and at most n:
        `included` repeats it. An audit by `Coins(plan)` then converts its bound to one record.
    unit : str
        One word for what the coins decide on, in sentences of results: "user", "hospital".

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy Auditing with One (1) Training Run", 2023,
    arXiv:2305.08846, Algorithm 1.

    Examples
    --------
    >>> plan = InclusionPlan.create(6, seed=1)
    >>> plan
    InclusionPlan(n=6, members=1)
    >>> canaries = ["a", "b", "c", "d", "e", "f"]
    >>> plan.included(canaries), plan.excluded(canaries)
    (['d'], ['a', 'b', 'c', 'e', 'f'])
    """

    def __init__(
        self,
        member: ArrayInput,
        *,
        ids: ArrayInput | None = None,
        seed: int | None = None,
        copies: int = 1,
        unit: str = "example",
    ) -> None:
        refuse_copies(member)
        coins = np.array(check_membership(member, membership_vector(member).size))
        example_ids = ids
        if ids is None:
            example_ids = row_names(member)
        self._set_draws(coins, example_ids, seed, copies, unit=unit)

    @classmethod
    def create(
        cls,
        n: int,
        *,
        seed: int | None = None,
        ids: ArrayInput | None = None,
        copies: int = 1,
        unit: str = "example",
    ) -> Self:
        """Flip an independent fair coin for each of `n` examples.

        The same seed gives the same plan on every machine, and a longer plan of the same seed
        begins with the shorter one. No other stream of the seed, in NumPy or here, has these coins.
        The seed determines all coins: keep it from the model and from the attack, and use another
        one for another training run.

        Parameters
        ----------
        n : int
            Number of examples, at least 1 and at most 10^8.
        seed : int, optional
            Seed of the coins, at least 0; by default 128 bits of the system's entropy, which the
            plan records.
        ids : array-like of shape (n,), optional
            A different integer or string for each example; by default 0, 1, …, n - 1.
        copies : int
            How often each member is inserted, at least 1 and at most n.
        unit : str
            One word for what the coins decide on, in sentences of results.

        Examples
        --------
        >>> InclusionPlan.create(8, seed=0).member.astype(int)
        array([0, 1, 1, 1, 1, 0, 1, 0])
        """
        n = integer(n, name="n", least=1, most=MOST_EXAMPLES)
        seed = seed_of(seed, bits=128)
        # Bits of the counter-based generator Philox, whose stream NumPy keeps between versions.
        return cls(Purpose.COINS.coins(seed, n), ids=ids, seed=seed, copies=copies, unit=unit)

    @property
    def member(self) -> BoolArray:
        """Membership of each example: bool, shape (n,)."""
        return self.drawn

    @property
    def indices(self) -> IntArray:
        """Positions of the members, increasing: int64, shape (number of members,)."""
        return np.flatnonzero(self.member).astype(np.int64, copy=False)

    @overload
    def included(self, items: NDArray[Scalar]) -> NDArray[Scalar]: ...
    @overload
    def included(self, items: Sequence[T]) -> list[T]: ...
    @overload
    def included(self, items: Data) -> Data: ...
    def included(self, items: Data) -> Data:
        """Return the members of `items`, in their order: what the model is trained on.

        Each is there `copies` times, one behind the other: do not repeat them again.

        Parameters
        ----------
        items : sequence, array, tensor, data frame or torch Dataset
            One item for each example. The result has the same type; a list for other sequences,
            a `torch.utils.data.Subset` for a map-style dataset.
        """
        return self._items_at(items, np.repeat(self.indices, self.copies))

    @overload
    def excluded(self, items: NDArray[Scalar]) -> NDArray[Scalar]: ...
    @overload
    def excluded(self, items: Sequence[T]) -> list[T]: ...
    @overload
    def excluded(self, items: Data) -> Data: ...
    def excluded(self, items: Data) -> Data:
        """Return the non-members of `items`, as `included`: what the model must never see."""
        return self._items_at(items, np.flatnonzero(~self.member).astype(np.int64, copy=False))

    def __repr__(self) -> str:
        members = np.count_nonzero(self.member)
        return f"InclusionPlan(n={len(self)}, members={members}{self._options_in_repr})"

    def _items_at(self, items: Data, positions: IntArray) -> Data:
        self._check_items_of_plan(items)
        torch_data = sys.modules.get("torch.utils.data")
        if torch_data is not None and isinstance(items, torch_data.Dataset):
            return torch_data.Subset(items, positions.tolist())
        return picked(items, positions)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class ChoicePlan(Plan):
    """Which of k candidates of each of m secrets is trained on: uniform draws before training.

    Train on `included`, one candidate of each secret, and keep the others out of training. Then
    score all candidates and audit by ``Choices(plan)``.

    Parameters
    ----------
    chosen : array-like of shape (m,)
        The candidate of each secret, in [0, k), drawn elsewhere. `create` draws new ones.
    k : int
        Candidates of each secret, at least 2.
    ids, seed, copies : optional
        As for `InclusionPlan`.

    Examples
    --------
    >>> plan = ChoicePlan.create(3, k=10, seed=1)
    >>> plan.included([[f"{name} has PIN {digit}" for digit in range(10)] for name in "ABC"])
    ['A has PIN 3', 'B has PIN 7', 'C has PIN 4']
    """

    def __init__(
        self,
        chosen: ArrayInput,
        k: int,
        *,
        ids: ArrayInput | None = None,
        seed: int | None = None,
        copies: int = 1,
    ) -> None:
        k = integer(k, name="k", least=2, most=MOST_K)
        drawn = numbers(
            vector(chosen, name="chosen"), name="chosen", least=0, most=k - 1, whole=True
        )
        example_ids = ids
        if ids is None:
            example_ids = row_names(chosen)
        self._set_draws(drawn.astype(np.int64), example_ids, seed, copies, k)

    @classmethod
    def create(
        cls,
        m: int,
        k: int,
        *,
        seed: int | None = None,
        ids: ArrayInput | None = None,
        copies: int = 1,
    ) -> Self:
        """Draw one of `k` candidates for each of `m` secrets, uniformly up to 2⁻⁴⁴.

        At most 10^8 secrets and 10^6 candidates; seed, ids and copies as for
        `InclusionPlan.create`.
        """
        m = integer(m, name="m", least=1, most=MOST_EXAMPLES)
        k = integer(k, name="k", least=2, most=MOST_K)
        seed = seed_of(seed, bits=128)
        random_words = Purpose.CHOICES.philox(seed).random_raw(m)
        drawn = (random_words % np.uint64(k)).astype(np.int64)
        return cls(chosen=drawn, k=k, ids=ids, seed=seed, copies=copies)

    @property
    def chosen(self) -> IntArray:
        """The candidate of each secret: int64, shape (m,)."""
        return self.drawn

    @overload
    def included(self, items: NDArray[Scalar]) -> NDArray[Scalar]: ...
    @overload
    def included(self, items: Sequence[Sequence[T]]) -> list[T]: ...
    @overload
    def included(self, items: Data) -> Data: ...
    def included(self, items: Data) -> Data:
        """Return the chosen candidate of each of m sequences of k: what the model is trained on.

        The result is an array or tensor if `items` is, otherwise a list. Candidates of a secret
        must differ. The chosen one is there `copies` times, one behind the other.
        """
        self._check_items_of_plan(items)
        for secret, candidates in enumerate(items):
            if np.ndim(readable(candidates)) == 0 and not isinstance(candidates, Sequence):
                raise InputTypeError(
                    f"items must have k = {self.k} candidates for each secret, got "
                    f"{shown(candidates)} for secret {secret}"
                )
            distinct_candidates = {
                np.asarray(readable(candidate)).tobytes() for candidate in candidates
            }
            if len(candidates) != self.k or len(distinct_candidates) < self.k:
                raise InputError(
                    f"items must have k = {self.k} different candidates each: secret {secret} has "
                    f"{len(candidates)}, of which {len(distinct_candidates)} differ"
                )
        if hasattr(items, "shape"):
            rows_of_secrets = np.repeat(np.arange(len(self)), self.copies)
            return items[rows_of_secrets, np.repeat(self.chosen, self.copies)]
        return [
            candidates[candidate]
            for candidates, candidate in zip(items, self.chosen, strict=True)
            for _ in range(self.copies)
        ]

    def __array__(self, dtype: Data = None, **_: Data) -> AnyArray:
        return np.array(self.chosen, dtype=dtype)

    def __repr__(self) -> str:
        return f"ChoicePlan(m={len(self)}, k={self.k}{self._options_in_repr})"


def load_opening(folder: PathInput) -> Opening:
    """Read what `Opening.save` wrote: plan, nonce and protocol.

    Parameters
    ----------
    folder : str or os.PathLike
        The folder; FormatError names a file that is not valid.
    """
    place = Path(folder)
    return read_opening(place / "opening.json", Plan.load(place / "plan.npz"))


def _ids_without_pickle(ids: ArrayInput, member: BoolArray) -> AnyArray:
    """Return `ids` as a new array of integers or of fixed-width strings, which need no pickle."""
    checked_ids = whole_numbers(vector(ids, name="ids", kinds="iuUTO"))
    if checked_ids.dtype.kind == "O":
        raise InputTypeError("ids must be all 64-bit integers or all strings; convert them first")
    check_ids(checked_ids, member)
    if checked_ids.dtype.kind in "iu":
        return np.array(checked_ids)
    return checked_ids.astype(np.str_)
