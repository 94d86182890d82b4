# SPDX-License-Identifier: Apache-2.0
"""Networks of convolutions over one and over three spatial dimensions."""
import torch
from torch import nn
import torch.nn.functional as F


class Wave(nn.Module):
    """Dilated convolutions over time with gates and residuals, normalized each in another way; pools and a resize of lines."""
    def __init__(self, width=8, layers=3):
        super().__init__()
        self.enter = nn.Conv1d(2, width, 4, stride=2, padding="valid")
        self.norms = nn.ModuleList([nn.BatchNorm1d(width), nn.GroupNorm(2, width), nn.InstanceNorm1d(width, affine=True)])
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2 ** i) for i in range(layers))
        self.mixes = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))
        self.depthwise = nn.Conv1d(width, 2 * width, 3, padding="same", groups=width)
        self.up = nn.ConvTranspose1d(2 * width, 6, 4, stride=3, padding=1, output_padding=1, groups=2)
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        x = self.enter(x)
        for i, (norm, gate, mix) in enumerate(zip(self.norms, self.gates, self.mixes)):
            a, b = gate(F.pad(norm(x), (2 ** i, 0))).chunk(2, 1)
            x = x + mix(torch.tanh(a) * torch.sigmoid(b))
        x = F.avg_pool1d(F.relu(self.depthwise(x)), 3, 2, 1) + F.max_pool1d(torch.cat([x, x], 1), 2, 2, dilation=1)[..., :1]
        x = F.interpolate(self.up(x), scale_factor=2)
        return self.head(F.adaptive_avg_pool1d(x, 1).flatten(1))


def conv_bn_3d(inputs, outputs, kernel=3, stride=1, padding=1):
    return nn.Sequential(nn.Conv3d(inputs, outputs, kernel, stride, padding, bias=False), nn.BatchNorm3d(outputs), nn.ReLU())


class Volume(nn.Module):
    """A U-Net of volumes: both norms, factored convolutions as in video networks, every pool, transposed convolution, both resizes; a map per
    class."""
    def __init__(self, width=6):
        super().__init__()
        self.enter = conv_bn_3d(2, width)
        self.down = nn.Sequential(conv_bn_3d(width, width, (1, 3, 3), 1, (0, 1, 1)), conv_bn_3d(width, 8, (3, 1, 1), (2, 1, 1), (1, 0, 0)))
        self.bottom = nn.Sequential(nn.Conv3d(8, 8, 3, padding=2, dilation=2, groups=2), nn.GroupNorm(2, 8), nn.ReLU())
        self.gate = nn.Linear(8, 8)
        self.up = nn.ConvTranspose3d(8, 5, (4, 2, 3), stride=2, padding=(1, 0, 1), output_padding=(0, 0, 1))
        self.merge = conv_bn_3d(width + 5, width)
        self.head = nn.Conv3d(width, 3, 1)

    def forward(self, x):
        x = self.enter(x)
        y = self.bottom(self.down(F.max_pool3d(x, (1, 2, 2)) + F.avg_pool3d(x, (1, 3, 3), (1, 2, 2), (0, 1, 1))))
        y = y * torch.sigmoid(self.gate(F.adaptive_avg_pool3d(y, 1).flatten(1)))[..., None, None, None]
        y = F.max_pool3d(y, 3, 1, 1) + F.interpolate(F.avg_pool3d(y, 2), scale_factor=2, mode="trilinear")
        y = self.up(y) + F.interpolate(y[:, :5], scale_factor=2, mode="nearest")
        return self.head(self.merge(torch.cat([x, y], 1)))


class Signal(nn.Module):
    """One spatial dimension, so that the first op reads the input as another shape than its file has; parameters with names that the
    emitted program uses itself."""
    def __init__(self):
        super().__init__()
        self.target = nn.Parameter(torch.full((6, 1), 0.5))
        self.DataType = nn.Parameter(torch.zeros(6, 1))
        self.M_PI = nn.Parameter(torch.ones(4))
        self.device = nn.Conv1d(3, 6, 5, stride=2, padding=3)
        self.exponential = nn.BatchNorm1d(6)
        self.up = nn.ConvTranspose1d(6, 4, 3, stride=2, padding=1, output_padding=1)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        x = F.relu(self.exponential(self.device(x))) * self.target + self.DataType
        x = self.up(F.max_pool1d(x, 3, 2, 1, ceil_mode=True))
        return self.fc(x.mean(2) * self.M_PI)
