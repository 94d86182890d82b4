#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports a decoder of GPT-2's sizes (124M parameters: 12 layers of 768 columns and 12 heads, 1024 tokens, 50257 words, the head's weights are the
embedding's) into a folder outside the repository: DIR/gpt2-124m, with dropout DIR/gpt2-124m-dropout.

    test/models/make_gpt2.py [--out DIR] [--dropout P]"""
import argparse
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench"))
from reference import export  # noqa: E402
from zoo_own import Decoder  # noqa: E402

VOCABULARY, CONTEXT = 50257, 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=pathlib.Path.home() / ".cache/sluice/models", type=pathlib.Path)
    parser.add_argument("--dropout", default=0.0, type=float)
    arguments = parser.parse_args()
    folder = arguments.out / ("gpt2-124m-dropout" if arguments.dropout else "gpt2-124m")
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    model = Decoder(VOCABULARY, CONTEXT, width=768, heads=12, layers=12, dropout=arguments.dropout)
    export(model, torch.randint(0, VOCABULARY, (2, CONTEXT)), folder / "model.onnx")
    print(folder)


main()
