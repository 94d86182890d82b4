#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports model.onnx, a small GPT over bytes: scores of the next byte after each of 64. Needs PyTorch and the package onnx. Larger:
model.py LAYERS WIDTH HEADS CONTEXT, as model.py 6 384 6 256"""
import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, 2))
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, context: int, vocabulary: int = 256) -> None:
        super().__init__()
        self.bytes, self.positions = nn.Embedding(vocabulary, width), nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.bytes.weight, std=0.02)
        self.head.weight = self.bytes.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.bytes(ids) + self.positions)))


layers, width, heads, context = [int(word) for word in sys.argv[1:]] or (2, 48, 4, 64)
torch.manual_seed(1)
torch.onnx.export(Gpt(layers, width, heads, context).train(), torch.zeros(2, context, dtype=torch.int64), "model.onnx", dynamo=False,
                  training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, opset_version=17, input_names=["text"], output_names=["scores"],
                  dynamic_axes={"text": {0: "batch"}, "scores": {0: "batch"}})
