# SPDX-License-Identifier: Apache-2.0
"""ConvNeXt (Liu et al., A ConvNet for the 2020s, 2022) and the vision transformer (Dosovitskiy et al., An Image is Worth 16x16 Words, 2021) in small."""
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
    """The last gelu is the one by tanh."""
    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, 2, 2), LayerNormImage(8, 1e-6), ConvNextBlock(8), ConvNextBlock(8),
                         LayerNormImage(8, 1e-6), nn.Conv2d(8, 12, 2, 2), ConvNextBlock(12), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(1), nn.LayerNorm(12), nn.GELU("tanh"), nn.Linear(12, 10))


class Attention(nn.Module):
    """A transformer's encoder layer, normalized first."""
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class Vit(nn.Module):
    """Patches, a class token, learned positions."""
    def __init__(self, width=12):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.token, self.positions = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(1, 5, width))
        self.layers = nn.Sequential(Attention(width, 2), Attention(width, 3), nn.LayerNorm(width))
        self.fc = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.fc(self.layers(x)[:, 0])
