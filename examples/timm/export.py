#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports a model of timm with a new head for the classes of a folder: model.onnx, its weights as model.safetensors, and model.toml, a recipe for the program with
the mean and deviation that the model was trained with, and a tenth of the rate for all but the head. Needs PyTorch, timm and the package onnx.

    export.py FOLDER [--model NAME] [--size PIXELS] [--pretrained]    FOLDER has a folder for each class; --pretrained downloads weights"""
import argparse
import pathlib

import timm
import torch
from safetensors.torch import save_file

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--model", default="test_resnet")
parser.add_argument("--size", type=int, default=96)
parser.add_argument("--pretrained", action="store_true")
options = parser.parse_args()

classes = [path for path in options.folder.iterdir() if path.is_dir()]
torch.manual_seed(1)
net = timm.create_model(options.model, pretrained=options.pretrained, num_classes=len(classes), exportable=True).train()
save_file(net.state_dict(), "model.safetensors")  # before the export, which moves running statistics
torch.onnx.export(net, torch.zeros(2, 3, options.size, options.size), "model.onnx", dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                  do_constant_folding=False, input_names=["images"], dynamic_axes={"images": {0: "batch"}})
mean, std = (",".join(map(str, net.pretrained_cfg[name])) for name in ("mean", "std"))
head = net.pretrained_cfg["classifier"]
pathlib.Path("model.toml").write_text(f'mean = "{mean}"\nstd = "{std}"\ngroup = [".*:lr=0.1", "{head}[.].*:lr=1"]\n')
print(f"{options.model}: {sum(value.numel() for value in net.parameters())} parameters, {len(classes)} classes, head {head}")
