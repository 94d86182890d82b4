#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small models of the core test suite with their PyTorch references: test/models/tiny/NAME, and the deeper ones without:
test/models/deep/NAME. Needs the environment of
`tools/setup.sh --references`; its results are committed, so the tests do not.

    test/models/make_tiny.py [NAME ...]"""
import pathlib
import sys

import torch

from networks import DEEP, NETWORKS
from reference import HYPERPARAMETERS, export, make_data, record

STEPS = 5


def main():
    torch.set_num_threads(1)
    root = pathlib.Path(__file__).parent / "tiny"
    for name in sys.argv[1:] or NETWORKS:
        module, shape, targets, batch = NETWORKS[name]
        torch.manual_seed(1)
        model = module()
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        size = shape[1:] if name == "unet" else None
        x, target = make_data(shape, targets, batch, STEPS, size)
        export(model, x[:batch], folder / "model.onnx")
        hyperparameters = dict(HYPERPARAMETERS, lr=0.1 if name == "mlp" else 0.01)
        losses = record(model, x, target, batch, folder, hyperparameters)
        total = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
        print(f"{name}: losses {' '.join(f'{v:.6f}' for v in losses)}; {total // 1024} KiB")
    if not sys.argv[1:]:
        make_deep()


def make_deep():
    for name, (module, shape) in DEEP.items():
        torch.manual_seed(1)
        folder = pathlib.Path(__file__).parent / "deep" / name
        folder.mkdir(parents=True, exist_ok=True)
        export(module(), torch.randn(4, *shape), folder / "model.onnx")


main()
