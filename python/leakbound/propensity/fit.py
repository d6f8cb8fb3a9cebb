"""A fitted propensity model: predictions, bootstrap draws, diagnostics."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import MOST_REPLICATES, flag, integer, real
from leakbound._base.console import track
from leakbound._base.odds import expit
from leakbound._base.streams import seed_of
from leakbound._base.types import ArrayInput, FloatArray, HasMember
from leakbound.errors import OptionError
from leakbound.propensity.data import Rows, check_features
from leakbound.propensity.engines import Engine, LogisticEngine
from leakbound.propensity.falsification import Falsification, falsify
from leakbound.propensity.overlap import Overlap, overlap

_BLOCK = 64
"""Refits between two looks for Ctrl-C."""

ReferenceShare: TypeAlias = Literal["as audited", "declared", "counted", "unknown"]
"""What is known of the share of members in D' by its design."""


@dataclass(frozen=True, eq=False, repr=False)
class PropensityFit:
    """A model of P(member | features), learnt from D' and refitted on resamples of it.

    Made by the `fit` of a model such as `LogisticPropensity`. It keeps D', from which the bootstrap
    resamples; it can be pickled.

    Attributes
    ----------
    name : str
        The model, in words.
    rows : Rows
        D': features, classes, folds and ids, read-only.
    offset : float
        What is added to all log-odds, because the audit set has another share of members than D'.
    share_of_reference : {"as audited", "declared", "counted", "unknown"}
        What is known of the share of members in D' by design (see `with_member_share`).
    seed : int
        Of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.propensity import LogisticPropensity
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(400) < 0.5
    >>> features = rng.normal(size=(400, 2)) + 0.5 * member[:, None]
    >>> fit = LogisticPropensity().fit(features[:300], member[:300])
    >>> fit
    PropensityFit(logistic regression, l2=1, Platt over 5 folds; 135 members and 165 non-members)
    >>> fit.bootstrap(features[300:], K=20, seed=1).shape
    (20, 100)
    """

    name: str
    rows: Rows
    offset: float = 0.0
    share_of_reference: ReferenceShare = "as audited"
    seed: int = field(kw_only=True)
    _declared: float | None = field(default=None, kw_only=True)
    _engine: Engine = field(kw_only=True)
    _state: Any = field(kw_only=True)

    @property
    def logistic(self) -> bool:
        """Whether its log-odds are linear in the features, so that there is a confidence set."""
        return isinstance(self._engine, LogisticEngine)

    def log_odds(self, X: ArrayInput) -> FloatArray:
        """Return λ = logit P(member | x) for rows of features, shape (m,).

        A classifier that says 0 or 1 gives -inf or inf, and an audit must abstain on these
        examples.
        """
        values = self._engine.log_odds(self._state, self._features(X))
        return values + self.offset

    def predict(self, X: ArrayInput) -> FloatArray:
        """Return the propensities P(member | x): see `log_odds`."""
        return expit(self.log_odds(X))

    def bootstrap(
        self, X: ArrayInput, *, K: int = 600, seed: int | None = None, progress: bool = True
    ) -> FloatArray:
        """Return log-odds under refits on K resamples of D', a row for each.

        A resample draws as many rows as D' has, with replacement; one that lacks a class outside of
        a fold is drawn anew. Every refit repeats the whole procedure, and copies of a row are held
        out of the calibration together. Resample k depends on the seed and k alone.

        Parameters
        ----------
        X : array-like, shape (m, d)
            Features of other examples than those of D'.
        K : int
            Number of resamples, at least 1.
        seed : int, optional
            Seed of the resamples, at least 0; by default a new one.
        progress : bool
            Whether to show a bar on a terminal, once it has lasted a second.
        """
        flag(progress, "progress")
        features = self._features(X)
        replicates = integer(K, "K", least=1, most=MOST_REPLICATES)
        refits = self._engine.refits(self.rows, features, seed_of(seed))
        size = _BLOCK * max(1, _core.threads() // 2)
        blocks = [(first, min(size, replicates - first)) for first in range(0, replicates, size)]
        shown = track(blocks, "bootstrap", total=len(blocks), shown=progress)
        return np.concatenate([refits(*block) for block in shown]) + self.offset

    @property
    def own_intercept(self) -> bool:
        """Whether D' needs an intercept of its own in a confidence set.

        A share counted from labels of D' is no known part of log-odds where these labels count.
        """
        return self.share_of_reference in {"counted", "unknown"}

    def with_member_share(
        self, share: float | None, *, of_reference: float | None = None
    ) -> "PropensityFit":
        """Return the same model for an audit set with another share of members than D'.

        If D' and the audit set were drawn with different shares of members and are alike within
        each class, the log-odds differ by a constant: logit(share) minus logit of the share in D'.

        Parameters
        ----------
        share : float or None
            P(member) in the audit set *by its design*, in (0, 1): not counted afterwards, or
            propensities would depend on the memberships that they are to explain. None if it is
            unknown: then only a confidence set of a logistic model will do, in which D' has an
            intercept of its own.
        of_reference : float, optional
            P(member) in D' by its design, in (0, 1). If None, it is counted, and over a confidence
            set, which rests on the very labels that are counted, D' has an intercept of its own.
        """
        there = self.rows.share
        if of_reference is not None:
            there = real(of_reference, "of_reference", above=0, below=1)
        if share is None:
            if of_reference is not None:
                message = (
                    "of_reference is the share of D', and without that of the audit set the two "
                    "tell nothing: pass share, or leave both unknown"
                )
                raise OptionError(message)
            return replace(self, offset=0.0, share_of_reference="unknown", _declared=None)
        here = real(share, "share", above=0, below=1)
        odds = here / (1 - here) * (1 - there) / there
        known: ReferenceShare = "counted" if of_reference is None else "declared"
        offset = float(np.log(odds))
        return replace(self, offset=offset, share_of_reference=known, _declared=here)

    @property
    def member_share(self) -> float:
        """P(member) where the log-odds hold: that of D', or what `with_member_share` declared."""
        return self.rows.share if self._declared is None else self._declared

    def check_disjoint(self, ids: ArrayInput) -> None:
        """Raise InputError if an example of an audit is in D', should that have ids."""
        self.rows.check_disjoint(ids)

    def overlap(self, X: ArrayInput, member: ArrayInput | HasMember) -> Overlap:
        """Say how far members and non-members of an audit set can be compared."""
        order = ExampleOrder()
        log_odds = self.log_odds(order.placed(X, "X"))
        return overlap(log_odds, order.member(member, log_odds.size))

    def falsify(
        self,
        X: ArrayInput,
        member: ArrayInput | HasMember,
        *,
        sceptic: Any = None,
        seed: int | None = None,
    ) -> Falsification:
        """Try to refute the propensities of an audit set with an independent model: `falsify`."""
        return falsify(self.log_odds(X), X, member, sceptic=sceptic, seed=seed)

    def _features(self, X: ArrayInput) -> FloatArray:
        return check_features(X, "X", columns=self.rows.features.shape[1])

    def __repr__(self) -> str:
        members = int(self.rows.member.sum())
        shift = f"; log-odds shifted by {self.offset:+.3g}" if self.offset else ""
        if self.share_of_reference == "unknown":
            shift = "; up to a constant"
        return (
            f"PropensityFit({self.name}; {members} members and "
            f"{self.rows.member.size - members} non-members{shift})"
        )
