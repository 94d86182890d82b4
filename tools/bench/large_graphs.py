#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time and memory of `sluicec --emit=placed` for graphs of thousands of nodes: large_graphs.py --sluicec build/bin/sluicec [NAME...].
Prints the table of docs/results/robustness.md. Needs the onnx package (tools/setup.sh --references)."""
import argparse
import os
import pathlib
import random
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

root = pathlib.Path(__file__).resolve().parents[2]


class Graph:
    """Nodes on x [4,8] with weights that are made when they are first named."""

    def __init__(self):
        self.nodes, self.weights = [], {}
        self.shared = self.weight("w", 8, 8)

    def weight(self, name, *shape):
        self.weights.setdefault(name, np.zeros(shape, np.float32))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def save(self, path, result):
        self.nodes.append(helper.make_node("Identity", [result], ["y"]))
        x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, d]) for n, d in (("x", 8), ("y", "columns")))
        weights = [numpy_helper.from_array(value, name) for name, value in self.weights.items()]
        model = helper.make_model(helper.make_graph(self.nodes, "g", [x], [y], weights), opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.save(model, path)


def chain(g, n):
    t = g.add("MatMul", "x", g.shared)
    for i in range(n):
        t = g.add(("Relu", "Sigmoid", "Tanh")[i % 3], t)
    return t


def total(g, n):
    return g.add("Sum", *[g.add("MatMul", "x", g.shared)] * n)


def products(g, n):
    t = "x"
    for i in range(n):
        t = g.add("MatMul", t, g.weight(f"w{i}", 8, 8))
    return t


def fan(g, n):
    t = g.add("MatMul", "x", g.shared)
    parts = [g.add("Relu" if i % 2 else "Tanh", t) for i in range(n)]
    return g.add("MatMul", g.add("Concat", *parts, axis=1), g.weight("v", 8 * n, 3))


def residual(g, n):
    t = g.add("MatMul", "x", g.weight("in", 8, 64))
    for i in range(n // 4):
        width = (64, 320, 192, 576)[i % 4]
        inner = g.add("Relu", g.add("MatMul", t, g.weight(f"u{width}", 64, width)))
        t = g.add("Add", g.add("MatMul", inner, g.weight(f"v{width}", width, 64)), t)
    return t


def widths(g, n):
    draw, t, width = random.Random(1), "x", 8
    for _ in range(n):
        wider = 64 * draw.randint(1, 11)
        t = g.add("Relu", g.add("MatMul", t, g.weight(f"w{width}_{wider}", width, wider)))
        width = wider
    return g.add("MatMul", t, g.weight("out", width, 8))


def dense(g, n):
    all_ = [g.add("MatMul", "x", g.shared)]
    for i in range(n):
        all_.append(g.add("Relu", g.add("MatMul", g.add("Concat", *all_, axis=1), g.weight(f"w{i}", 8 * len(all_), 8))))
    return all_[-1]


def slices(g, n):
    t, parts = g.add("MatMul", "x", g.weight("wide", 8, 2 * n)), []
    g.weights["axes"] = np.array([1])
    for i in range(n):
        g.weights[f"b{i}"], g.weights[f"e{i}"] = np.array([2 * i]), np.array([2 * i + 2])
        parts.append(g.add("Relu" if i % 2 else "Tanh", g.add("Slice", t, f"b{i}", f"e{i}", "axes")))
    return g.add("MatMul", g.add("Concat", *parts, axis=1), g.weight("v", 2 * n, 3))


GRAPHS = {
    "10,000 activations, one behind the other": (chain, 10000),
    "Sum of 10,000 operands": (total, 10000),
    "5,000 MatMuls with a parameter each": (products, 5000),
    "5,000 activations of one tensor, joined by one Concat": (fan, 5000),
    "8,000 nodes with residual additions, four widths": (residual, 8000),
    "3,000 layers of uneven widths": (widths, 3000),
    "300 layers, each of which reads all before it": (dense, 300),
    "3,000 slices of one tensor, joined again": (slices, 3000),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sluicec", default=str(root / "build/bin/sluicec"))
    parser.add_argument("names", nargs="*", help="parts of the names of graphs; all without")
    arguments = parser.parse_args()
    print("| graph | processor time | memory |\n|---|---|---|")
    for name, (build, count) in GRAPHS.items():
        if arguments.names and not any(part in name for part in arguments.names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            graph = Graph()
            graph.save(f"{folder}/model.onnx", build(graph, count))
            child = subprocess.Popen([arguments.sluicec, f"{folder}/model.onnx", "--batch=4", "--loss=mse", "--emit=placed", "-o", f"{folder}/out"])
            _, status, used = os.wait4(child.pid, 0)
        end = f"{used.ru_utime + used.ru_stime:.1f} s | {used.ru_maxrss // 1024} MiB" if status == 0 else f"wait status {status} | "
        print(f"| {name} | {end} |", flush=True)


if __name__ == "__main__":
    main()
