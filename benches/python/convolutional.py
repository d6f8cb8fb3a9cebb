"""The convolutional network of benches on images of 32 by 32 pixels: 66,000 parameters."""

from itertools import pairwise

from torch import nn

__all__ = ["convolutional_network"]


def convolutional_network(classes: int, widths: tuple[int, ...] = (32, 64, 64)) -> nn.Module:
    """Return a network whose layers have these widths, each followed by pooling of 2 by 2."""
    layers: list[nn.Module] = []
    for in_channels, out_channels in pairwise((3, *widths)):
        convolution = nn.Conv2d(
            in_channels=in_channels, out_channels=out_channels, kernel_size=3, padding=1
        )
        layers += [convolution, nn.ReLU(), nn.MaxPool2d(2)]
    # Each pooling halves the sides.
    final_side = 32 >> len(widths)
    final_size = widths[-1] * final_side**2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(final_size, classes))
