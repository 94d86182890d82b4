#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports model.onnx, a small U-Net (Ronneberger et al. 2015, with BatchNorm and padding) for pictures of 64 x 64 and three classes of pixels. Needs PyTorch
and the package onnx. Wider, larger, with more classes: model.py WIDTH PIXELS CLASSES, as model.py 32 256 21"""
import sys

import torch
from torch import nn


def convs(inputs: int, outputs: int) -> nn.Sequential:
    pairs = ((inputs, outputs), (outputs, outputs))
    return nn.Sequential(*(layer for a, b in pairs for layer in (nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU())))


class UNet(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = convs(3, width), convs(width, 2 * width), convs(2 * width, 4 * width)
        self.pool = nn.MaxPool2d(2)
        self.grow2, self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), convs(4 * width, 2 * width)
        self.grow1, self.up1 = nn.ConvTranspose2d(2 * width, width, 2, 2), convs(2 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.up2(torch.cat([b, self.grow2(self.bottom(self.pool(b)))], 1))
        return self.head(self.up1(torch.cat([a, self.grow1(c)], 1)))


width, pixels, classes = [int(word) for word in sys.argv[1:]] or (8, 64, 3)
torch.manual_seed(1)
torch.onnx.export(UNet(width, classes).train(), torch.zeros(2, 3, pixels, pixels), "model.onnx", dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                  do_constant_folding=False, input_names=["images"], output_names=["scores"], dynamic_axes={"images": {0: "batch"}, "scores": {0: "batch"}})
