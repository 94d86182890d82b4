#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports torchvision models at small image sizes with references of five SGD steps, into a folder outside the repository.

    test/models/make_torchvision.py [--out DIR] [--size PIXELS] [--batch N] [--seed N] [NAME ...]

`--export-only` skips the reference run (for 224x224). Dropout is off in the references: compile with --dropout=off."""
import argparse
import pathlib

import torch
import torchvision

from networks import DeepUNet
from reference import HYPERPARAMETERS, export, make_data, record

# name: image size; the adaptive pool of alexnet exports at 224 only
MODELS = {"resnet18": 64, "resnet50": 64, "vgg16": 224, "alexnet": 224, "densenet121": 64, "mobilenet_v2": 64,
          "leaky_resnet18": 64, "unet": 64}


def leaky_resnet18():
    """ResNet-18 whose ReLUs are leaky."""
    model = torchvision.models.resnet18()
    for module in list(model.modules()):
        if hasattr(module, "relu"):
            module.relu = torch.nn.LeakyReLU(0.1)
    return model


def vgg16(size):
    """VGG-16; for images other than 224x224, whose adaptive pool does not export, without that pool."""
    model = torchvision.models.vgg16()
    if size != 224:
        model.avgpool = torch.nn.Identity()
        model.classifier[0] = torch.nn.Linear(512 * (size // 32) ** 2, 4096)
    return model


OWN = {"leaky_resnet18": lambda size: leaky_resnet18(), "unet": lambda size: DeepUNet(3, 32, 2, 4), "vgg16": vgg16,
       "vit_b_16": lambda size: torchvision.models.vit_b_16(image_size=size)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=pathlib.Path.home() / ".cache/sluice/models", type=pathlib.Path)
    parser.add_argument("--size", type=int)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="of the weights")
    parser.add_argument("--export-only", action="store_true")
    parser.add_argument("names", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    for name in options.names:
        size = options.size or MODELS.get(name, 224)
        torch.manual_seed(options.seed)
        model = OWN[name](size) if name in OWN else getattr(torchvision.models, name)()
        folder = options.out / f"{name}-{size}"
        folder.mkdir(parents=True, exist_ok=True)
        classes, maps = (4, (size, size)) if name == "unet" else (1000, None)
        x, target = make_data((3, size, size), classes, options.batch, options.steps, maps)
        export(model, x[:options.batch], folder / "model.onnx")
        if options.export_only:
            print(f"{folder}")
            continue
        losses = record(model, x, target, options.batch, folder, HYPERPARAMETERS, keep_final=False)
        print(f"{folder}: losses {' '.join(f'{v:.6f}' for v in losses)}", flush=True)


main()
