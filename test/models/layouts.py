# SPDX-License-Identifier: Apache-2.0
"""Models whose inputs do not begin with the batch, in small: a tagger with time in front, states and inputs that all samples share, and a classifier without a batch."""
import torch
from torch import nn

STEPS, LAYERS, WIDTH = 7, 2, 6
SHARED = {"order": torch.tensor([6, 2, 4, 0, 1, 5, 3]), "scale": torch.tensor(0.75)}


class TimeFirst(nn.Module):
    """A class for each step of a sequence, whose steps are taken in an order that all samples share: [time, batch, 3] and states [layers, batch, width]."""
    classes_last = True

    def __init__(self):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(3, WIDTH, LAYERS), nn.Linear(WIDTH, 4)

    def forward(self, x, h0, c0, order, scale):
        y, _ = self.lstm(x[order] * scale, (h0, c0))
        return self.fc(y)


class BatchFirst(TimeFirst):
    """The same, as data files hold it."""

    def forward(self, x, h0, c0):
        first = (part.transpose(0, 1).contiguous() for part in (x, h0, c0))
        return super().forward(*first, *SHARED.values()).transpose(0, 1)


class OneSample(nn.Module):
    """Of one sample, [16] to [5]; of a batch as well."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 12), nn.Linear(12, 5)

    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))
