"""Digits drawn in the fonts that come with matplotlib: procedural images of 8 × 8 pixels.

As with `census`, the process is known and thus the perfect generator.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.ft2font import FT2Font
from numpy.typing import NDArray

from leakbound._base.types import ArrayInput, FloatArray, IntArray
from leakbound.generators import Samples
from streams import generator

__all__ = ["FONTS", "Glyphs", "noisy_labels", "photographs"]

FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSansMono", "STIXGeneral")
CANVAS = 64
"""Pixels across the drawing that an image is taken from."""
POINTS = 48
"""Size of the font, for a digit about half as high as the canvas."""
PIXELS = 8
RAYS = 4
"""Each pixel is the mean over so many points across and down."""
TILT = 7.0
"""Standard deviation of the angle, in degrees."""
SHIFT = 2.4
"""Standard deviation of the shift across and down, in pixels of the canvas."""
NOISE = 0.08
"""Standard deviation of what is added to every pixel; ink is 1 and paper 0."""
RELABELLED = 0.15
"""Share of labels that are replaced at random: a target can only memorise them."""
BATCH = 4096
"""Images drawn at a time, to bound memory."""


@dataclass(frozen=True)
class Glyphs:
    """Where the images come from: a generator that knows the truth, and needs no members.

    A digit in one of five fonts is tilted and shifted a little, reduced to 8 × 8 pixels and covered
    with noise. Labels are the digits, 15 % of them replaced by a random digit.

    Examples
    --------
    >>> Glyphs().sample(100, seed=0)
    Samples(n=100, shape=(8, 8), labels=10)
    """

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> "Glyphs":  # noqa: ARG002
        """Return the process itself: there is nothing to learn."""
        return self

    def sample(self, n: int, *, seed: int) -> Samples:
        """Draw images."""
        rng = generator("demos/glyphs", seed)
        digits = rng.integers(0, 10, n)
        images = photographs(digits, fonts=rng.integers(0, len(FONTS), n), rng=rng)
        labels = noisy_labels(digits, rng)
        return Samples(values=images, labels=labels)


def photographs(digits: IntArray, fonts: IntArray, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw an image of each digit in its font: tilted, shifted, reduced and covered with noise."""
    n = digits.size
    drawings = digits * len(FONTS) + fonts
    tilts = np.deg2rad(rng.normal(0, TILT, n))
    shifts = rng.normal(0, SHIFT, (n, 2))
    noise = rng.normal(0, NOISE, (n, PIXELS, PIXELS))
    images = np.concatenate(
        [
            _photograph(_drawings()[drawings[part]], tilts=tilts[part], shifts=shifts[part])
            for part in (slice(start, start + BATCH) for start in range(0, n, BATCH))
        ]
    )
    return (images + noise).astype(np.float32)


def noisy_labels(digits: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the digits, some of them replaced at random."""
    replaced = rng.random(digits.size) < RELABELLED
    return np.where(replaced, rng.integers(0, 10, digits.size), digits)


@cache
def _drawings() -> NDArray[np.float32]:
    """Return every digit in every font, centred: shape (digits * fonts, CANVAS, CANVAS)."""
    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    fonts = [FT2Font(str(folder / f"{name}.ttf")) for name in FONTS]
    drawings = np.zeros((10 * len(FONTS), CANVAS, CANVAS), np.float32)
    for drawing, (digit, font) in zip(drawings, product("0123456789", fonts), strict=True):
        font.set_size(POINTS, 72)
        font.set_text(digit, 0.0)
        font.draw_glyphs_to_bitmap()
        ink = np.asarray(font.get_image(), np.float32) / 255
        top = (CANVAS - ink.shape[0]) // 2
        left = (CANVAS - ink.shape[1]) // 2
        drawing[top : top + ink.shape[0], left : left + ink.shape[1]] = ink
    return drawings


def _between(drawings: NDArray[np.float32], y: FloatArray, x: FloatArray) -> NDArray[np.float32]:
    """Return the drawings at places between their points, by bilinear interpolation."""
    y = np.clip(y, 0, CANVAS - 1.001)
    x = np.clip(x, 0, CANVAS - 1.001)
    row = y.astype(np.intp)
    column = x.astype(np.intp)
    lower = (y - row).astype(np.float32)
    upper = (x - column).astype(np.float32)
    which = np.arange(len(drawings))[:, None, None]
    above_left = drawings[which, row, column]
    above_right = drawings[which, row, column + 1]
    below_left = drawings[which, row + 1, column]
    below_right = drawings[which, row + 1, column + 1]
    above = (1 - upper) * above_left + upper * above_right
    below = (1 - upper) * below_left + upper * below_right
    rays: NDArray[np.float32] = (1 - lower) * above + lower * below
    return rays


def _photograph(
    drawings: NDArray[np.float32], tilts: FloatArray, shifts: FloatArray
) -> NDArray[np.float32]:
    """Return the drawings tilted, shifted and averaged down to 8 × 8 pixels."""
    across = np.linspace(-0.5, 0.5, PIXELS * RAYS, endpoint=False) + 0.5 / (PIXELS * RAYS)
    down, right = np.meshgrid(across * CANVAS, across * CANVAS, indexing="ij")
    cosine = np.cos(tilts)[:, None, None]
    sine = np.sin(tilts)[:, None, None]
    middle = (CANVAS - 1) / 2
    y = middle + cosine * down - sine * right + shifts[:, 0, None, None]
    x = middle + sine * down + cosine * right + shifts[:, 1, None, None]
    rays = _between(drawings, y, x)
    pixels: NDArray[np.float32] = rays.reshape(-1, PIXELS, RAYS, PIXELS, RAYS).mean((2, 4))
    return pixels
