# SPDX-License-Identifier: Apache-2.0
"""Attention after the masks that models write out, on texts of which some have no token that a mask shows."""
import torch
from torch import nn

LOW = torch.finfo(torch.float32).min


def added(number):
    """Added to the scores of hidden keys, as BERT does."""
    return lambda scores, mask: scores + (1.0 - mask[:, None, None, :].float()) * number


def filled(number):
    """In place of the scores of hidden keys."""
    return lambda scores, mask: scores.masked_fill(mask[:, None, None, :] == 0, number)


def pairs(scores, mask):
    """A number in place of the scores of hidden keys and of hidden rows."""
    return scores.masked_fill((mask[:, None, :, None] * mask[:, None, None, :]) == 0, -1e9)


def padded_causal(low):
    """As GPT-2 does: a number in place of what lies above the diagonal, and one that is added for padding. With padding on the left, first
    rows see neither."""
    def apply(scores, mask):
        t = scores.shape[-1]
        scores = torch.where(torch.ones(t, t, dtype=torch.bool).tril(), scores, low)
        return scores + (1.0 - mask.flip(1)[:, None, None, :].float()) * low
    return apply


def scaled_after(scores, mask):
    """A factor after the mask, which is the mask's too, and positions that are a constant."""
    t = scores.shape[-1]
    distance = (torch.arange(t)[None, :] - torch.arange(t)[:, None]).float()
    return (scores + (1.0 - mask[:, None, None, :].float()) * -1e4) * 0.5 - distance.abs() * 0.25


def positions_causal(scores, mask):
    """A constant of positions, then the least number above the diagonal, which hides since nothing else does."""
    t = scores.shape[-1]
    distance = (torch.arange(t)[None, :] - torch.arange(t)[:, None]).float()
    return (scores + distance * 0.125).masked_fill(torch.ones(t, t).triu(1) > 0, LOW)


class Heads(nn.Module):
    def __init__(self, width, heads, apply):
        super().__init__()
        self.heads, self.apply_mask = heads, apply
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask):
        b, t, width = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.mix(x).split(width, 2))
        scores = self.apply_mask(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, mask)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, width))


class Joined(nn.Module):
    """PyTorch's own, which joins batch and heads where weights may be asked for, and one that does so for bmm."""
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.own = heads, nn.MultiheadAttention(width, heads, batch_first=True)
        self.query, self.both = nn.Linear(width, width), nn.Linear(width, 2 * width)

    def forward(self, x, mask):
        b, t, width = x.shape
        x = x + self.own(x, x, x, key_padding_mask=mask == 0)[0]
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2).reshape(b * self.heads, t, -1)
                   for part in (self.query(x), *self.both(x).split(width, 2)))
        y = torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v)
        return y.view(b, self.heads, t, -1).transpose(1, 2).reshape(b, t, width)


class Masks(nn.Module):
    """A class for each text. All tokens of texts of up to four are hidden, but for the last layers."""
    def __init__(self, vocabulary=29, width=12):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        kinds = (added(LOW), added(-1e9), added(-1e4), filled(-1e9), filled(-1e4), filled(-1.0), pairs, padded_causal(LOW),
                 padded_causal(-1e4), scaled_after, positions_causal)
        self.layers = nn.ModuleList(Heads(width, 3, kind) for kind in kinds)
        self.joined, self.fc = Joined(width, 3), nn.Linear(width, 3)

    def forward(self, input_ids, attention_mask):
        x, mask = self.words(input_ids), attention_mask * attention_mask[:, 4:5]
        for layer in self.layers:
            x = x + layer(x, mask)
        return self.fc((x + self.joined(x, attention_mask)).mean(1))
