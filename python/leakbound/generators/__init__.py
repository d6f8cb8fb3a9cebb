"""Generators of synthetic non-members: data that looks like members and was in no training set.

An audit without retraining compares members with examples that a generator made. One small protocol
holds for all of them: `Generator.fit` learns from members that are kept out of the audit, and
returns a `Sampler`, whose `Sampler.sample` draws as many new examples as are asked for.

References
----------
M. Kazmi, H. Lautraite, A. Akbari, Q. Tang, M. Soroco, T. Wang, S. Gambs, M. Lécuyer, "PANORAMIA:
Privacy Auditing of Machine Learning Models without Retraining", 2024, arXiv:2402.09477.

Examples
--------
>>> import numpy as np
>>> from leakbound.generators import GaussianCopula
>>> rng = np.random.default_rng(0)
>>> members, labels = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
>>> GaussianCopula().fit(members, labels).sample(100, seed=0)
Samples(n=100, shape=(4,), labels=2)
"""

from leakbound.generators.cart import FittedSequentialCART, SequentialCART
from leakbound.generators.chow_liu import ChowLiuTree, FittedChowLiuTree
from leakbound.generators.copula import FittedGaussianCopula, GaussianCopula
from leakbound.generators.diffusion import Diffusion, FittedDiffusion
from leakbound.generators.duplicates import check_duplicates, find_duplicates
from leakbound.generators.extremes import FeatureExtreme, feature_extremes
from leakbound.generators.filter import Filtered, FittedFiltered
from leakbound.generators.folder import FittedFolderOfSamples, FolderOfSamples
from leakbound.generators.labels import FittedLabeler, Labeler
from leakbound.generators.marginals import FittedNoisyMarginals, NoisyMarginals
from leakbound.generators.mixture import FittedPCAMixture, PCAMixture
from leakbound.generators.protocol import Generator, Sampler, Samples
from leakbound.generators.split import MemberSplit
from leakbound.generators.text import Chunks, FittedLanguageModel, LanguageModel, chunk_texts

__all__ = [
    "ChowLiuTree",
    "Chunks",
    "Diffusion",
    "FeatureExtreme",
    "Filtered",
    "FittedChowLiuTree",
    "FittedDiffusion",
    "FittedFiltered",
    "FittedFolderOfSamples",
    "FittedGaussianCopula",
    "FittedLabeler",
    "FittedLanguageModel",
    "FittedNoisyMarginals",
    "FittedPCAMixture",
    "FittedSequentialCART",
    "FolderOfSamples",
    "GaussianCopula",
    "Generator",
    "Labeler",
    "LanguageModel",
    "MemberSplit",
    "NoisyMarginals",
    "PCAMixture",
    "Sampler",
    "Samples",
    "SequentialCART",
    "check_duplicates",
    "chunk_texts",
    "feature_extremes",
    "find_duplicates",
]
