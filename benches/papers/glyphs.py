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
CANVAS_PIXELS = 64
"""Pixels across the drawing that an image is taken from."""
FONT_SIZE = 48
"""Size of the font, for a digit about half as high as the canvas."""
IMAGE_PIXELS = 8
RAYS_OF_PIXEL = 4
"""Each pixel is the mean over so many points across and down."""
TILT_DEVIATION = 7.0
"""Standard deviation of the angle, in degrees."""
SHIFT_DEVIATION = 2.4
"""Standard deviation of the shift across and down, in pixels of the canvas."""
NOISE_DEVIATION = 0.08
"""Standard deviation of what is added to every pixel; ink is 1 and paper 0."""
RELABELLED_SHARE = 0.15
"""Share of labels that are replaced at random: a target can only memorise them."""
IMAGES_OF_BATCH = 4096
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
        fonts = rng.integers(0, len(FONTS), n)
        images = photographs(digits, fonts=fonts, rng=rng)
        labels = noisy_labels(digits, rng)
        return Samples(values=images, labels=labels)


def photographs(digits: IntArray, fonts: IntArray, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw an image of each digit in its font: tilted, shifted, reduced and covered with noise."""
    number = digits.size
    drawing_numbers = digits * len(FONTS) + fonts
    tilts = np.deg2rad(rng.normal(0, TILT_DEVIATION, number))
    shifts = rng.normal(0, SHIFT_DEVIATION, (number, 2))
    noise = rng.normal(0, NOISE_DEVIATION, (number, IMAGE_PIXELS, IMAGE_PIXELS))
    all_drawings = _drawings()
    batches = []
    for start in range(0, number, IMAGES_OF_BATCH):
        batch = slice(start, start + IMAGES_OF_BATCH)
        drawings = all_drawings[drawing_numbers[batch]]
        batches.append(_photograph(drawings, tilts=tilts[batch], shifts=shifts[batch]))
    images = np.concatenate(batches)
    return (images + noise).astype(np.float32)


def noisy_labels(digits: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the digits, some of them replaced at random."""
    is_replaced = rng.random(digits.size) < RELABELLED_SHARE
    random_digits = rng.integers(0, 10, digits.size)
    return np.where(is_replaced, random_digits, digits)


@cache
def _drawings() -> NDArray[np.float32]:
    """Return every digit in every font, centred: shape (digits * fonts, 64, 64)."""
    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    fonts = [FT2Font(str(folder / f"{name}.ttf")) for name in FONTS]
    drawings = np.zeros((10 * len(FONTS), CANVAS_PIXELS, CANVAS_PIXELS), np.float32)
    digits_and_fonts = product("0123456789", fonts)
    for drawing, (digit, font) in zip(drawings, digits_and_fonts, strict=True):
        font.set_size(FONT_SIZE, 72)
        font.set_text(digit, 0.0)
        font.draw_glyphs_to_bitmap()
        ink = np.asarray(font.get_image(), np.float32) / 255
        height, width = ink.shape
        top = (CANVAS_PIXELS - height) // 2
        left = (CANVAS_PIXELS - width) // 2
        drawing[top : top + height, left : left + width] = ink
    return drawings


def _interpolated(
    drawings: NDArray[np.float32], rows: FloatArray, columns: FloatArray
) -> NDArray[np.float32]:
    """Return the drawings at places between their points, by bilinear interpolation."""
    rows = np.clip(rows, 0, CANVAS_PIXELS - 1.001)
    columns = np.clip(columns, 0, CANVAS_PIXELS - 1.001)
    row_above = rows.astype(np.intp)
    column_left = columns.astype(np.intp)
    weight_below = (rows - row_above).astype(np.float32)
    weight_right = (columns - column_left).astype(np.float32)
    drawing = np.arange(len(drawings))[:, None, None]
    above_left = drawings[drawing, row_above, column_left]
    above_right = drawings[drawing, row_above, column_left + 1]
    below_left = drawings[drawing, row_above + 1, column_left]
    below_right = drawings[drawing, row_above + 1, column_left + 1]
    above = (1 - weight_right) * above_left + weight_right * above_right
    below = (1 - weight_right) * below_left + weight_right * below_right
    rays: NDArray[np.float32] = (1 - weight_below) * above + weight_below * below
    return rays


def _photograph(
    drawings: NDArray[np.float32], tilts: FloatArray, shifts: FloatArray
) -> NDArray[np.float32]:
    """Return the drawings tilted, shifted and averaged down to 8 × 8 pixels."""
    rays_across = IMAGE_PIXELS * RAYS_OF_PIXEL
    places = np.linspace(-0.5, 0.5, rays_across, endpoint=False) + 0.5 / rays_across
    places_on_canvas = places * CANVAS_PIXELS
    down, right = np.meshgrid(places_on_canvas, places_on_canvas, indexing="ij")
    cosine = np.cos(tilts)[:, None, None]
    sine = np.sin(tilts)[:, None, None]
    centre = (CANVAS_PIXELS - 1) / 2
    shifts_down = shifts[:, 0, None, None]
    shifts_right = shifts[:, 1, None, None]
    # Rotation by the tilt about the centre, then the shift.
    rows = centre + cosine * down - sine * right + shifts_down
    columns = centre + sine * down + cosine * right + shifts_right
    rays = _interpolated(drawings, rows, columns)
    rays_of_pixels = rays.reshape(-1, IMAGE_PIXELS, RAYS_OF_PIXEL, IMAGE_PIXELS, RAYS_OF_PIXEL)
    pixels: NDArray[np.float32] = rays_of_pixels.mean((2, 4))
    return pixels
