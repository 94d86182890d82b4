# SPDX-License-Identifier: Apache-2.0
"""Classifiers of text by recurrent layers (Hochreiter and Schmidhuber, Long Short-Term Memory, 1997; Cho et al., 2014; Elman, 1990) in small."""
import torch
from torch import nn


class Lstm(nn.Module):
    """Two layers in both directions; a class for each text by the last states, one of them that of a cell."""
    def __init__(self, vocabulary=19, width=8, hidden=10):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(3 * hidden, 3)

    def forward(self, ids):
        _, (h, c) = self.lstm(self.tokens(ids))
        return self.fc(torch.cat([h[-2], h[-1], c[0]], 1))


class Gru(nn.Module):
    """A GRU with time in front and a state to begin with that is learned, after it a plain recurrence; a class by the last output."""
    def __init__(self, vocabulary=19, width=8, hidden=9):
        super().__init__()
        self.tokens, self.start = nn.Embedding(vocabulary, width), nn.Parameter(torch.randn(1, 1, hidden))
        self.gru = nn.GRU(width, hidden)
        self.rnn = nn.RNN(hidden, 7, batch_first=True)
        self.fc = nn.Linear(7, 3)

    def forward(self, ids):
        y, _ = self.gru(self.tokens(ids).transpose(0, 1), self.start.expand(-1, ids.shape[0], -1).contiguous())
        y, _ = self.rnn(y.transpose(0, 1))
        return self.fc(y[:, -1])
