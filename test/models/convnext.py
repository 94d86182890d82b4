# SPDX-License-Identifier: Apache-2.0
"""ConvNeXt (Liu et al., A ConvNet for the 2020s, 2022) in small."""
import torch
import torch.nn.functional as F
from torch import nn


class LayerNormImage(nn.LayerNorm):
    """Of the channels of NCHW images, as torchvision writes it."""
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    """Depthwise convolution, layer normalization, two linear layers with gelu on [N,H,W,C], a scale per channel."""
    def __init__(self, width):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width, 1e-6)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width, 1, 1), 0.5))

    def forward(self, x):
        y = self.norm(self.conv(x).permute(0, 2, 3, 1))
        return x + self.scale * self.narrow(F.gelu(self.wide(y))).permute(0, 3, 1, 2)


class ConvNext(nn.Sequential):
    """Liu et al., A ConvNet for the 2020s, in small; the last gelu is the one by tanh."""
    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, 2, 2), LayerNormImage(8, 1e-6), ConvNextBlock(8), ConvNextBlock(8),
                         LayerNormImage(8, 1e-6), nn.Conv2d(8, 12, 2, 2), ConvNextBlock(12), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(1), nn.LayerNorm(12), nn.GELU("tanh"), nn.Linear(12, 10))
