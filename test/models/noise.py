# SPDX-License-Identifier: Apache-2.0
"""Models with noise of their own, and one with fake quantization, in small."""
import torch
from torch import nn


class Vae(nn.Module):
    """A variational autoencoder (Kingma and Welling 2013): a code of means plus noise by deviations, both computed."""

    def __init__(self, width=16, code=4):
        super().__init__()
        self.encode, self.decode = nn.Linear(width, 2 * code), nn.Linear(code, width)

    def forward(self, x):
        mean, logarithm = self.encode(x).chunk(2, 1)
        return self.decode(torch.tanh(mean + torch.randn_like(mean) * torch.exp(0.5 * logarithm)))


class Draws(nn.Module):
    """Random numbers of all kinds times one parameter: normal ones, uniform ones from [-1, 3), ones and zeros by computed probabilities, and those of an unscaled mask."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.full((1, 1), 0.5))

    def forward(self, x):
        uniform = torch.rand_like(x) * 4 - 1
        marks = torch.bernoulli(torch.sigmoid(x))
        mask = (torch.rand_like(x) < 0.25).float()
        return self.gain * torch.cat([torch.randn_like(x), uniform, marks, mask], 1)


class Quantized(nn.Module):
    """Fake quantization of activations (one scale, uint8) and of weights (a scale for each output, int8), some of which lie outside of the grid."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 12), nn.Linear(12, 5)
        self.scale = torch.linspace(0.0008, 0.0021, 12)

    def forward(self, x):
        x = torch.fake_quantize_per_tensor_affine(x, 0.0125, 117, 0, 255)
        w = torch.fake_quantize_per_channel_affine(self.a.weight, self.scale, torch.zeros(12, dtype=torch.int32), 0, -128, 127)
        return self.b(torch.relu(nn.functional.linear(x, w, self.a.bias)))
