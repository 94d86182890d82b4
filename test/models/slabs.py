# SPDX-License-Identifier: Apache-2.0
"""A network of slices that lie in one piece."""
import torch
import torch.nn.functional as F
from torch import nn


class Slabs(nn.Module):
    """Slices that are pieces of what they are taken from: rows of parameters, halves of a sequence with time in front, and of the gradient of their join."""
    def __init__(self, width=16, length=8):
        super().__init__()
        self.length, self.positions = length, nn.Parameter(torch.randn(1, 3 * length, width))
        self.mix, self.fc = nn.Parameter(torch.randn(2 * width, width) / 4), nn.Linear(width, 10)

    def forward(self, x):
        x = x + self.positions[:, :self.length] * self.positions[:, 2 * self.length:]
        rows = len(self.mix) // 2
        y = torch.tanh(F.linear(x, self.mix[:rows])) * F.linear(x, self.mix[rows:])
        first, second = y.transpose(0, 1).split(self.length // 2, 0)
        return self.fc((torch.cat([torch.tanh(second) * first, F.relu(first)], 0) + y.transpose(0, 1)).mean(0))
