#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports model.onnx, a small ResNet for pictures of 32 x 32 as He et al. (2016) have it: three groups of blocks at 12, 24 and 48 channels. Needs PyTorch
and the package onnx. For twenty layers, as in the paper: model.py 16 3"""
import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.short = nn.Identity() if inputs == outputs else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(inner)) + self.short(x))


class ResNet(nn.Module):
    def __init__(self, width: int, blocks: int, classes: int = 10) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        shapes = [(width * 2**group, 2 if group and not i else 1) for group in range(3) for i in range(blocks)]
        inputs = [width] + [outputs for outputs, _ in shapes]
        self.blocks = nn.Sequential(*(Block(before, outputs, stride) for before, (outputs, stride) in zip(inputs, shapes)))
        self.head = nn.Linear(inputs[-1], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(torch.relu(self.norm(self.conv(x)))).mean((2, 3)))


width, blocks = [int(word) for word in sys.argv[1:]] or (12, 1)
torch.manual_seed(1)
torch.onnx.export(ResNet(width, blocks).train(), torch.zeros(2, 3, 32, 32), "model.onnx", dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                  do_constant_folding=False, input_names=["images"], output_names=["scores"], dynamic_axes={"images": {0: "batch"}})
