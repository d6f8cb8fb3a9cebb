"""Images from a small diffusion model."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.extras import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, FloatArray
from leakbound._base.validation import instance, integer
from leakbound.generators.labels import FittedLabeler, Labeler
from leakbound.generators.principal import Principal
from leakbound.generators.protocol import Samples
from leakbound.generators.seeded import SeededSampler
from leakbound.generators.shapes import Shape
from leakbound.generators.tables import read_array, read_labels

if TYPE_CHECKING:
    from leakbound.generators.denoiser import Denoiser

__all__ = ["Diffusion", "FittedDiffusion"]


@dataclass(frozen=True, kw_only=True)
class Diffusion:
    """Images: a diffusion model on principal components, trained on the processor at hand.

    Images become their principal components, each scaled to unit variance; a network of a few
    hundred thousand weights learns to undo noise on them, and samples are noise undone. It starts
    from the normal distribution with the members' mean and covariance, so that training can only
    add to that. With 3,000 images of 8 × 8 pixels it takes less than a minute on one core. For
    photographs take a network made for them, and `FolderOfSamples`.

    Parameters
    ----------
    steps : int
        Steps of training, with batches of 256. Too many, and samples begin to resemble members.
    width : int
        Length of the network's hidden vectors.
    blocks : int
        How many residual blocks the network has.
    components : int
        Most principal components.
    labeler : Labeler
        What labels samples, if the members have labels.
    seed : int
        Seed of the training.
    device : str
        Where to train and to sample, such as ``"cpu"`` or ``"cuda"``.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.random.default_rng(0).normal(size=(100, 4, 4)).astype(np.float32)
    >>> Diffusion(steps=2, width=8).fit(images).sample(10, seed=0)
    Samples(n=10, shape=(4, 4))
    """

    steps: int = 2000
    width: int = 256
    blocks: int = 3
    components: int = 128
    labeler: Labeler = field(default_factory=Labeler)
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("steps", "width", "blocks", "components"):
            integer(getattr(self, name), name, least=1)
        instance(self.labeler, "labeler", Labeler)
        integer(self.seed, "seed", least=0)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> "FittedDiffusion":
        """Train the network.

        Parameters
        ----------
        members : array-like, shape (n, ...)
            At least 20 images, in any layout: finite numbers.
        labels : array-like of shape (n,), optional
            Classes: integers, booleans or strings.

        Returns
        -------
        FittedDiffusion
            What draws samples.

        Raises
        ------
        ArrayTypeError, MembersError, TooFewMembersError
            If the members are not such images.
        ShapeError, LengthMismatchError
            If the labels are not one for each.
        MissingExtraError
            If PyTorch or scikit-learn is not installed.
        """
        array = read_array(members)
        classes = read_labels(labels, len(array))
        with needs("torch", "Diffusion"):
            import torch

            from leakbound.generators.denoiser import train
            from leakbound.torch.placement import reproducible
        flat = array.reshape(len(array), -1).astype(np.float64)
        principal, reduced = Principal.fit(flat, self.components, seed=self.seed, what="Diffusion")
        scale = np.maximum(reduced.std(0), np.finfo(np.float32).tiny)
        data = torch.from_numpy((reduced / scale).astype(np.float32)).to(self.device)
        with reproducible():
            network = train(
                data, steps=self.steps, width=self.width, blocks=self.blocks, seed=self.seed
            )
        labeler = None if classes is None else self.labeler.fit(array, classes)
        return FittedDiffusion(Shape.of(array), principal, scale, network, self.device, labeler)


@dataclass(frozen=True, eq=False)
class FittedDiffusion(SeededSampler):
    """What `Diffusion.fit` returns.

    Parameters
    ----------
    shape : Shape
        Shape, dtype and range of the images.
    principal : Principal
        The components.
    scale : ndarray of float64, shape (components,)
        Standard deviation of each.
    network : torch.nn.Module
        What undoes noise.
    device : str
        Where it is.
    labeler : FittedLabeler or None
        What labels samples.
    """

    shape: Shape
    principal: Principal
    scale: FloatArray
    network: "Denoiser"
    device: str
    labeler: FittedLabeler | None

    def _draw(self, n: int, seed: int) -> Samples:
        rng = Purpose.DIFFUSION_SAMPLES.rng(seed)
        import torch

        from leakbound.generators.denoiser import follow
        from leakbound.torch.placement import reproducible

        noise = rng.standard_normal((n, self.scale.size), dtype=np.float32)
        with reproducible():
            found = follow(self.network, torch.from_numpy(noise).to(self.device))
        reduced = found.cpu().numpy().astype(np.float64) * self.scale
        return self.shape.samples(self.principal.restore(reduced, rng), self.labeler, seed)
