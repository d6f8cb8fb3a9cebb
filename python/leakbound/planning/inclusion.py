"""Which canaries go into the training set: one fair coin for each, tossed before training."""

import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from leakbound._base.alignment import row_names
from leakbound._base.checks import MOST_EXAMPLES, check_ids, check_membership, integer, vector
from leakbound._base.files import Archive, open_archive, replacing
from leakbound._base.streams import Purpose, seed_of
from leakbound._base.types import ArrayInput, BoolArray, IntArray, JsonValue
from leakbound.errors import FormatError, InputError, InputTypeError, LeakboundError
from leakbound.planning.commitment import NONCE, Opening, read_opening

# Number of the file layout: it rises whenever an array changes its name or meaning.
SCHEMA = 1
# Bytes of the largest plan that is read: 10^8 examples, with ids of 8 characters each.
_MOST = 1 << 32


@dataclass(frozen=True, init=False, eq=False, repr=False)
class InclusionPlan:
    r"""Which of `n` examples are members: independent fair coins, tossed before training.

    Train on `included` and keep `excluded` away from training, then score all `n` examples and
    audit the scores against the plan.

    **Why coins, and not exactly n/2 of the examples.** Given all the other coins, an independent
    fair coin is still fair, so that under :math:`\varepsilon`-DP each guess is right with
    probability at most :math:`e^\varepsilon/(1+e^\varepsilon)` *whatever the other guesses were*,
    which every bound here rests on. With exactly n/2 members the last memberships follow from the
    others.

    Parameters
    ----------
    member : array-like of shape (n,)
        True for the members; coins tossed elsewhere. `create` tosses them here.
    ids : array-like of shape (n,), optional
        A different integer or string for each example; by default the index of a pandas Series of
        membership if it names each row, and else 0, 1, …, n - 1.
    seed : int, optional
        The seed of `create`; None for coins tossed elsewhere.

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy Auditing with One (1) Training Run", 2023,
    arXiv:2305.08846, Algorithm 1.

    Examples
    --------
    >>> plan = InclusionPlan.create(6, seed=1)
    >>> plan
    InclusionPlan(n=6, members=1, seed=1)
    >>> canaries = ["a", "b", "c", "d", "e", "f"]
    >>> plan.included(canaries), plan.excluded(canaries)
    (['d'], ['a', 'b', 'c', 'e', 'f'])
    """

    member: BoolArray
    ids: NDArray[Any]
    seed: int | None

    def __init__(
        self, member: ArrayInput, *, ids: ArrayInput | None = None, seed: int | None = None
    ) -> None:
        coins = np.array(check_membership(member, vector(member, "member").size))
        ids = row_names(member) if ids is None else ids
        names = np.arange(coins.size) if ids is None else _read_ids(ids, coins)
        for array in (coins, names):
            array.flags.writeable = False
        object.__setattr__(self, "member", coins)
        object.__setattr__(self, "ids", names)
        object.__setattr__(self, "seed", None if seed is None else integer(seed, "seed", least=0))

    @classmethod
    def create(cls, n: int, *, seed: int | None = None, ids: ArrayInput | None = None) -> Self:
        """Toss an independent fair coin for each of `n` examples.

        The same seed gives the same plan on every machine, and a longer plan of the same seed
        begins with the shorter one. No other stream of the seed, in NumPy or here, has these coins.
        Whoever knows the seed knows them all: keep it from the model and from the attack, and take
        another one for another training run.

        Parameters
        ----------
        n : int
            Number of examples, at least 1 and at most 10^8.
        seed : int, optional
            Seed of the coins, at least 0; by default 128 bits of the system's entropy, which the
            plan records.
        ids : array-like of shape (n,), optional
            A different integer or string for each example; by default 0, 1, …, n - 1.

        Examples
        --------
        >>> InclusionPlan.create(8, seed=0).member.astype(int)
        array([0, 1, 1, 1, 1, 0, 1, 0])
        """
        n, seed = integer(n, "n", least=1, most=MOST_EXAMPLES), seed_of(seed, bits=128)
        # Bits of the counter-based generator Philox, whose stream NumPy keeps between versions.
        return cls(Purpose.COINS.coins(seed, n), ids=ids, seed=seed)

    @property
    def indices(self) -> IntArray:
        """Positions of the members, increasing: int64, shape (number of members,)."""
        return np.flatnonzero(self.member).astype(np.int64, copy=False)

    def included(self, items: Any) -> Any:
        """Return the members of `items`, in their order: what the model is trained on.

        Parameters
        ----------
        items : sequence, array, tensor, data frame or torch Dataset
            One item for each example. What is returned is of the same kind; a list for other
            sequences, a `torch.utils.data.Subset` for a map-style dataset.
        """
        return self._pick(items, self.indices)

    def excluded(self, items: Any) -> Any:
        """Return the non-members of `items`, as `included`: what the model must never see."""
        return self._pick(items, np.flatnonzero(~self.member).astype(np.int64, copy=False))

    def commit(self, protocol: Mapping[str, JsonValue]) -> Opening:
        """Commit to these coins and to what the audit will be, before training.

        The opening has coins, protocol and 256 random bits: keep it secret until the audit, by
        `opening.save(folder)`. Publish `opening.commitment`, a digest of the three.

        Parameters
        ----------
        protocol : mapping
            What `leakbound.planning.read_protocol` reads from a file: claim, confidence, cuts,
            sides, attacks, unit and canaries, and other options of `audit`.

        Examples
        --------
        >>> protocol = {"claim": {"type": "PureDP"}, "confidence": 0.95, "cuts": "auto"}
        >>> protocol |= {"sides": "both", "attacks": ["loss"], "unit": "one image"}
        >>> protocol |= {"canaries": "1,000 mislabelled images, listed in canaries.csv"}
        >>> opening = InclusionPlan.create(1000).commit(protocol)
        >>> opening.commitment.check(opening)
        """
        opening = Opening(self, protocol, secrets.token_hex(NONCE))
        # The audit is rehearsed on scores that tell nothing: what it would refuse after training
        # is refused before.
        opening.agreed.rehearse(self.member)
        return opening

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as a NumPy archive ``.npz``, all of it or nothing."""
        with replacing(path) as file:
            self.write(file)

    def write(self, file: IO[bytes]) -> None:
        """Write the plan to a binary file that is open, as `save` does."""
        np.savez_compressed(
            file,
            inclusion_plan=np.int64(SCHEMA),
            member=self.member,
            ids=self.ids,
            seed=np.str_("" if self.seed is None else self.seed),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str] | IO[bytes]) -> Self:
        """Read a plan that `save` wrote, or raise FormatError. Nothing in the file is executed."""
        try:
            with open_archive(path, most=_MOST) as archive:
                return cls._from_archive(archive)
        except (LeakboundError, ValueError, TypeError) as error:
            what = path if isinstance(path, str | os.PathLike) else "the content"
            message = f"{what} is not an inclusion plan: {error}; write plans with plan.save(path)"
            raise FormatError(message) from error

    def __len__(self) -> int:
        return self.member.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InclusionPlan):
            return NotImplemented
        return (
            self.seed == other.seed
            and np.array_equal(self.member, other.member)
            and np.array_equal(self.ids, other.ids)
        )

    def __hash__(self) -> int:
        return hash((self.seed, self.member.tobytes()))

    def __repr__(self) -> str:
        seed = "" if self.seed is None else f", seed={self.seed}"
        return f"InclusionPlan(n={len(self)}, members={np.count_nonzero(self.member)}{seed})"

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        if archive["inclusion_plan"] != SCHEMA:
            message = f"its layout is not number {SCHEMA}"
            raise FormatError(message)
        seed = str(archive["seed"])
        return cls(archive["member"], ids=archive["ids"], seed=int(seed) if seed else None)

    def _pick(self, items: Any, positions: IntArray) -> Any:
        if not hasattr(items, "__len__") or not hasattr(items, "__getitem__"):
            message = (
                "items must have a length and be picked by position (a sequence, array, tensor, "
                f"data frame or map-style dataset), got {type(items).__name__}"
            )
            raise InputTypeError(message)
        if len(items) != len(self):
            message = (
                f"items has {len(items)} elements and the plan has {len(self)}; pass one for each "
                "example of the plan, in its order"
            )
            raise InputError(message)
        if hasattr(items, "iloc"):
            return items.iloc[positions]
        if hasattr(items, "shape"):
            return items[positions]
        data = sys.modules.get("torch.utils.data")
        if data is not None and isinstance(items, data.Dataset):
            return data.Subset(items, positions.tolist())
        return [items[position] for position in positions.tolist()]


def load_opening(folder: str | os.PathLike[str]) -> Opening:
    """Read what `Opening.save` wrote: a plan, and nonce and protocol beside it.

    Parameters
    ----------
    folder : str or os.PathLike
        The folder; FormatError says which of its files is not what it should be.
    """
    place = Path(folder)
    return read_opening(place / "opening.json", InclusionPlan.load(place / "plan.npz"))


def _read_ids(ids: ArrayInput, member: BoolArray) -> NDArray[Any]:
    """Return `ids` as a new array of integers or of fixed-width strings, which need no pickle."""
    values = vector(ids, "ids", kinds="iuUTO")
    if values.dtype.kind == "O":
        kinds = {type(value) for value in values.tolist()}
        values = np.array(values.tolist()) if kinds in ({str}, {int}) else values
    if values.dtype.kind == "O":
        message = "ids must be all 64-bit integers or all strings; convert them first"
        raise InputTypeError(message)
    check_ids(values, member)
    return np.array(values if values.dtype.kind in "iu" else values.astype(np.str_))
