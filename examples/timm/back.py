#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes what was trained back into timm, and asks it about photos: how many are right, by PyTorch.

    back.py WEIGHTS FOLDER [--model NAME] [--size PIXELS]    FOLDER has a folder for each class"""
import argparse
import pathlib

import numpy as np
import timm
import torch
from PIL import Image
from safetensors.torch import load_file

parser = argparse.ArgumentParser()
parser.add_argument("weights")
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--model", default="test_resnet")
parser.add_argument("--size", type=int, default=96)
options = parser.parse_args()

classes = sorted(path for path in options.folder.iterdir() if path.is_dir())
net = timm.create_model(options.model, num_classes=len(classes)).eval()
net.load_state_dict(load_file(options.weights))  # strict: nothing is missing, nothing left over
mean, std = (np.array(net.pretrained_cfg[name], np.float32) for name in ("mean", "std"))


def pixels(path: pathlib.Path) -> torch.Tensor:
    image = Image.open(path).convert("RGB").resize((options.size, options.size), Image.Resampling.BILINEAR)
    return torch.from_numpy(((np.asarray(image, np.float32) / 255 - mean) / std).transpose(2, 0, 1))


photos = [(path, number) for number, folder in enumerate(classes) for path in sorted(folder.iterdir())]
with torch.inference_mode():
    answers = net(torch.stack([pixels(path) for path, _ in photos])).argmax(1)
print(f"PyTorch: accuracy {(answers == torch.tensor([number for _, number in photos])).float().mean():.4f} on {len(photos)} photos")
