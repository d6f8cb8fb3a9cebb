"""Random streams: one for each purpose of each seed.

Members are often drawn from the same integer that an audit is given, such as by
``default_rng(0).permutation(n)``. An audit that drew from ``default_rng(0)`` too would see them in
an order that tells who is one. Here a stream is seeded by a digest of its purpose and the seed, so
that none is among the streams that a program has from the seed by itself, and no two purposes
share one.
"""

from enum import Enum
from hashlib import sha256
from typing import Literal

import numpy as np

from leakbound._base.types import BoolArray, IntArray

SCHEME = "leakbound/1"
"""What keeps these streams from those of other libraries; its number is raised with any change."""


class Purpose(Enum):
    """Purposes of random numbers: each has separate streams, used in one place.

    The stream of a seed is NumPy's for a `SeedSequence` of the SHA-256 digest of the purpose and
    the seed. Renaming a purpose changes the stream.

    Examples
    --------
    >>> Purpose.TIES.rng(0).integers(10, size=3)
    array([2, 9, 8])
    >>> Purpose.TIES.derived(0) == Purpose.PAIRS.derived(0)
    False
    """

    COINS = "plan/coins"
    CHOICES = "plan/choices"

    SCORING_ORDER = "audits/scoring-order"
    TIES = "audits/ties"
    AUDITED_ORDER = "audits/order"
    MATCHING = "audits/matching"
    PAIRS = "audits/pairs"
    CHOICE_TIES = "audits/choice-ties"
    SPLIT_PARTS = "audits/split-parts"
    SPLIT_VIEWS = "audits/split-views"
    SPLIT_COLUMNS = "audits/split-columns"
    TALLY_TIES = "audits/tally-ties"
    TALLY_COINS = "audits/tally-coins"
    TRIALS = "audits/trials"
    TRIAL_COINS = "audits/trial-coins"

    SET_TIES = "audits/set-ties"
    DRAWS_NEEDED = "audits/draws-needed"
    BEYOND_FEATURES = "audits/beyond-features"
    BEYOND_FEATURES_TREES = "audits/beyond-features-trees"

    HOLD_OUT = "propensity/hold-out"
    CROSS_FIT = "propensity/cross-fit"
    CALIBRATION = "propensity/calibration"
    CLASSIFIER = "propensity/classifier"
    CLASSIFIER_REFITS = "propensity/classifier-refits"
    RESAMPLES = "propensity/resamples"
    CLASSIFIER_RESAMPLES = "propensity/classifier-resamples"
    SCEPTIC = "propensity/sceptic"
    SCEPTIC_PARTS = "propensity/sceptic-parts"
    SET_HALVES = "propensity/set-halves"
    SET_PARTS = "propensity/set-parts"
    BLIND_PAIRS = "propensity/blind-pairs"

    POWER = "planning/power"
    POWER_OF_PAIRS = "planning/power-of-pairs"

    CANARY_EXAMPLES = "canaries/examples"
    CANARY_PIXELS = "canaries/pixels"
    CANARY_TOKENS = "canaries/tokens"

    DP_SGD_MEMBERS = "dp-sgd/members"
    DP_SGD_SAMPLING = "dp-sgd/sampling"
    DP_SGD_STEPS = "dp-sgd/steps"
    DP_SGD_BATCHES = "dp-sgd/batch-sizes"
    DP_SGD_INDICES = "dp-sgd/indices"
    DP_STEP_SEEDS = "dp-step/seeds"
    DP_STEP_TESTS = "dp-step/tests"

    MECHANISM_COINS = "mechanisms/coins"
    MECHANISM_RUNS = "mechanisms/runs"
    MECHANISM_TREES = "mechanisms/trees"

    NULL_GAME = "simulate/null"
    GAUSSIAN_GAME = "simulate/gaussian"
    MIXTURE_GAME = "simulate/mixture"
    RESPONSE_GAME = "simulate/response"

    LEARNT_HALVES = "attacks/learnt-halves"
    LEARNT_TREES = "attacks/learnt-trees"
    SYNTHETIC_WORDS = "attacks/synthetic-words"
    SYNTHETIC_NOISE = "attacks/synthetic-noise"
    SYNTHETIC_PART = "attacks/synthetic-part"
    SYNTHETIC_HALVES = "attacks/synthetic-halves"
    SYNTHETIC_FOLDS = "attacks/synthetic-folds"
    SYNTHETIC_TREES = "attacks/synthetic-trees"
    SYNTHETIC_METRICS = "attacks/synthetic-metrics"

    MEMBER_SPLIT = "generators/member-split"
    CART_TREES = "generators/cart-trees"
    CART_SAMPLES = "generators/cart-samples"
    CHOW_LIU_SAMPLES = "generators/chow-liu-samples"
    PRINCIPAL_COMPONENTS = "generators/principal-components"
    MIXTURE_FIT = "generators/mixture-fit"
    MIXTURE_SAMPLES = "generators/mixture-samples"
    FOLDER_SAMPLES = "generators/folder-samples"
    LABELS = "generators/labels"
    CHUNKS = "generators/chunks"
    LANGUAGE_WEIGHTS = "generators/language-weights"
    LANGUAGE_TRAINING = "generators/language-training"
    LANGUAGE_PROMPTS = "generators/language-prompts"
    LANGUAGE_SAMPLES = "generators/language-samples"

    RUN_SAMPLES = "panoramia/samples"
    HELPER = "panoramia/helper"
    HELPER_ESTIMATOR = "panoramia/helper-estimator"
    HELPER_LESSON = "panoramia/helper-lesson"
    GAME_MEMBERS = "panoramia/members"
    GAME_OTHERS = "panoramia/others"
    GAME_COINS = "panoramia/coins"
    TREES = "panoramia/trees"
    SIGNALS = "panoramia/signals"
    PICTURES = "panoramia/pictures"
    READER = "panoramia/reader"
    READER_AND_SIGNALS = "panoramia/reader-and-signals"

    SCORING = "torch/scoring"

    USER_GAME = "benchmark/user"
    CORPUS_ROWS = "benchmark/corpus-rows"

    def rng(self, seed: int, *further: int) -> np.random.Generator:
        """Return the generator of a seed and further numbers."""
        return np.random.Generator(np.random.PCG64(self._sequence(seed, *further)))

    def philox(self, seed: int) -> np.random.Philox:
        """Return the counter-based bit generator of a seed."""
        return np.random.Philox(self._sequence(seed))

    def coins(self, seed: int, n: int) -> BoolArray:
        """Return fair coins; more of them begin with these, and each seed's are its own."""
        words = self.philox(seed).random_raw(-(-n // 64)).astype("<u8")
        bits = np.unpackbits(words.view(np.uint8), count=n, bitorder="little")
        return bits.astype(np.bool_)

    def derived(self, seed: int, *further: int, bits: Literal[32, 64] = 64) -> int:
        """Return the seed of a generator other than NumPy's."""
        (word,) = self._sequence(seed, *further).generate_state(1, np.uint64)
        return int(word) >> (64 - bits)

    def _sequence(self, seed: int, *further: int) -> np.random.SeedSequence:
        """Hash purpose and numbers: no list of integers is read as another one is."""
        digested_text = ":".join(
            [SCHEME, self.value, *(f"{number:x}" for number in (seed, *further))]
        )
        return np.random.SeedSequence(
            int.from_bytes(sha256(digested_text.encode()).digest(), "little")
        )


def drawn_folds(rng: np.random.Generator, size: int, folds: int) -> IntArray:
    """Return the fold of each of so many rows: at random, and of equal sizes but for one row.

    scikit-learn draws folds too, from another generator; audits need NumPy alone.
    """
    shuffled_folds: IntArray = rng.permutation(np.arange(size) % folds)
    return shuffled_folds
