#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models at the kinks of their functions, with the gradients that PyTorch has there: of PReLU at 0 that of its slope, of a maximum of equal numbers half for
each. In TensorFlow, of whose exporter `first` has the name, the first takes all.

    test/models/make_kinks.py        writes test/models/kinks/{data,NAME}"""
import pathlib

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

OPS = {"prelu": ("PRelu", torch.nn.functional.prelu), "maximum": ("Max", torch.maximum), "minimum": ("Min", torch.minimum), "first": ("Max", lambda a, b: torch.where(a >= b, a, b))}
A, B = np.array([0, 2, -1], np.float32), np.array([0.25, 2, 3], np.float32)
ROOT = pathlib.Path(__file__).resolve().parent / "kinks"


def model(name):
    nodes = [helper.make_node("Add", ["x", "m.a"], ["h"]), helper.make_node(OPS[name][0], ["h", "m.b"], ["y"])]
    value = lambda key: helper.make_tensor_value_info(key, TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")], [numpy_helper.from_array(A, "m.a"), numpy_helper.from_array(B, "m.b")])
    return helper.make_model(graph, producer_name="tf2onnx" if name == "first" else "pytorch", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


x, target = np.zeros((2, 3), np.float32), np.full((2, 3), 5, np.float32)
(ROOT / "data").mkdir(parents=True, exist_ok=True)
np.save(ROOT / "data/input.npy", x)
np.save(ROOT / "data/target.npy", target)
for name, (_, function) in OPS.items():
    a, b = (torch.tensor(value, requires_grad=True) for value in (A, B))
    loss = torch.nn.functional.mse_loss(function(torch.tensor(x) + a, b), torch.tensor(target))
    loss.backward()
    (ROOT / name).mkdir(exist_ok=True)
    onnx.save(model(name), ROOT / name / "model.onnx")
    tensors = {"losses": np.array([loss.item()]), "noise_losses": np.zeros(1)}
    for key, gradient in (("m.a", a.grad), ("m.b", b.grad)):
        tensors |= {f"gradient/{key}": gradient.numpy(), f"noise/{key}": np.zeros(1, np.float32)}
    save_file(tensors, ROOT / name / "reference.safetensors")
