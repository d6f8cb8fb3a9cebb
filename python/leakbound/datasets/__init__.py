"""Small files of real scores, which the tutorials audit and which are good to try things on.

- ``adult.parquet``: UCI Adult. For each of 4,032 pairs a fair coin decided whether a person or a
  generated record is shown (``member``). The other columns are scores: of a baseline that does not
  see the audited model (``baseline``), and of attacks on three networks.
- ``benchmark.parquet``: results of a benchmark of bounds, for `leakbound.benchmark.Table.read`.
- ``sites.parquet``: a network trained on Fashion-MNIST. 6,000 images with minus the loss
  (``score``), ``member``, class (``label``), eight principal components (``x0`` to ``x7``), and
  the log-odds with which each became a member (``log_odds``).
"""

from pathlib import Path
from typing import Literal, TypeAlias

from leakbound._base.checks import choice

__all__ = ["DatasetName", "path"]

DatasetName: TypeAlias = Literal["adult", "benchmark", "sites"]
"""The files that come with the package."""


def path(name: DatasetName) -> Path:
    """Return where a file that comes with the package is.

    Parameters
    ----------
    name : {"adult", "benchmark", "sites"}
        Which file.

    Returns
    -------
    pathlib.Path
        A Parquet file inside the installed package. Do not write to it.

    Raises
    ------
    OptionError
        There is no file of this name.

    Examples
    --------
    >>> from leakbound import datasets
    >>> datasets.path("sites").name
    'sites.parquet'
    """
    choice(name, "name", DatasetName)
    return Path(__file__).with_name(f"{name}.parquet")
