#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast large models are read and compiled: import_speed.py [--sluicec build/bin/sluicec] [--work DIR] [--page docs/results/import.md] [PART...]

    nodes     a graph of 10,000 nodes to --emit=forward and --check
    growth    chains and residual blocks of 1,250, 2,500 and 5,000 nodes to --emit=placed
    weights   a model with 2 GB of external data to --emit=forward; needs as much room in DIR

All without. Times are processor time (user and system) and time that passed, memory is the largest resident set, both of the whole command. Needs the
onnx package (tools/setup.sh --references)."""
import argparse
import datetime
import os
import pathlib
import platform
import subprocess
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

root = pathlib.Path(__file__).resolve().parents[2]
SIZES = (1250, 2500, 5000)


class Graph:
    """Nodes on x, with a result of the same shape."""

    def __init__(self, *shape):
        self.shape, self.nodes, self.weights = list(shape), [], {}

    def add(self, op, *inputs, **attributes):
        self.nodes.append(helper.make_node(op, list(inputs), [f"t{len(self.nodes)}"], f"{op.lower()}{len(self.nodes)}", **attributes))
        return self.nodes[-1].output[0]

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        self.weights[name] = np.random.default_rng(len(self.weights)).normal(0, 0.05, shape).astype(np.float32)
        return name

    def save(self, path, result):
        nodes = self.nodes + [helper.make_node("Identity", [result], ["y"])]
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shape) for name in ("x", "y"))
        weights = [numpy_helper.from_array(value, name) for name, value in self.weights.items()]
        graph = helper.make_graph(nodes, "g", [x], [y], weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def conv_relu(nodes):
    g, t = Graph(2, 8, 8, 8), "x"
    for _ in range(nodes // 2):
        t = g.add("Relu", g.add("Conv", t, g.weight(8, 8, 3, 3), pads=[1] * 4))
    return g, t


def matmul_gelu(nodes):
    g, t = Graph(4, 16, 32), "x"
    for _ in range(nodes // 2):
        t = g.add("Gelu", g.add("MatMul", t, g.weight(32, 32)))
    return g, t


def residual(nodes):
    g, t = Graph(2, 8, 8, 8), "x"
    for _ in range(nodes // 5):
        inner = g.add("Relu", g.add("Conv", t, g.weight(8, 8, 3, 3), pads=[1] * 4))
        t = g.add("Relu", g.add("Add", g.add("Conv", inner, g.weight(8, 8, 3, 3), pads=[1] * 4), t))
    return g, t


FAMILIES = {"conv, relu": conv_relu, "matmul, gelu": matmul_gelu, "residual blocks of two convolutions": residual}


def measured(*words):
    """Processor seconds, seconds and bytes resident at most of a command that succeeds."""
    begin = time.monotonic()
    child = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, env={**os.environ, "SLUICE_DEVICE": "host"})
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(f"{' '.join(map(str, words))} ends with status {child.returncode}")
    return used.ru_utime + used.ru_stime, time.monotonic() - begin, used.ru_maxrss * 1024


def nodes(options, folder):
    graph, result = residual(10_000)
    graph.save(folder / "nodes.onnx", result)
    yield "| 10,000 nodes | processor time | passed | memory |\n|---|---|---|---|"
    for flag in ("--emit=forward", "--check"):
        seconds, passed, memory = measured(options.sluicec, folder / "nodes.onnx", "--loss=mse", flag, "-o", folder / "out")
        yield f"| `{flag}` | {seconds:.1f} s | {passed:.1f} s | {memory >> 20} MiB |"


def growth(options, folder):
    yield "| nodes | " + " | ".join(f"{size:,}" for size in SIZES) + " | the last over the first, for 4 times the nodes |\n|---|---|---|---|---|"
    for name, build in FAMILIES.items():
        times = []
        for size in SIZES:
            graph, result = build(size)
            graph.save(folder / "growth.onnx", result)
            times.append(measured(options.sluicec, folder / "growth.onnx", "--loss=mse", "--emit=placed", "-o", folder / "out")[0])
        yield f"| {name} | " + " | ".join(f"{seconds:.1f} s" for seconds in times) + f" | {times[-1] / times[0]:.1f} |"


def weights(options, folder):
    """31 products with matrices of 4096 x 4096, and a file of random numbers after them."""
    count, side = 31, 4096
    g, t = Graph(4, side), "x"
    tensors = []
    for i in range(count):
        t = g.add("Relu", g.add("MatMul", t, f"w{i}"))
        tensor = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[side, side], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "weights.bin"), ("offset", i * side * side * 4), ("length", side * side * 4)):
            tensor.external_data.add(key=key, value=str(value))
        tensors.append(tensor)
    path, data = folder / "weights.onnx", folder / "weights.bin"
    g.save(path, t)
    model = onnx.load(str(path), load_external_data=False)
    model.graph.initializer.extend(tensors)
    onnx.save(model, str(path))
    with open(data, "wb") as file:
        for i in range(count):
            file.write(np.random.default_rng(i).normal(0, 0.01, (side, side)).astype(np.float32).tobytes())
    size = data.stat().st_size
    yield f"| {size:,} bytes of weights | processor time | passed | memory | of the weights |\n|---|---|---|---|---|"
    for flag in ("--emit=forward", "--check"):
        seconds, passed, memory = measured(options.sluicec, path, "--loss=mse", flag, "-o", folder / "out")
        yield f"| `{flag}` | {seconds:.1f} s | {passed:.1f} s | {memory >> 20} MiB | {memory / size:.2f} |"
    data.unlink()


PARTS = {"nodes": nodes, "growth": growth, "weights": weights}


def head():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    flags = next(line for line in open("/proc/cpuinfo") if line.startswith("flags"))
    level = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "neither AVX2 nor AVX-512"
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=root).stdout.strip()
    return (f"# Import\n\n`tools/bench/import_speed.py --page docs/results/import.md`, commit {commit}, {model} ({level}), {os.cpu_count()} cores shared with other work\n"
            f"(load {os.getloadavg()[0]:.0f}), {datetime.date.today()}. Processor time is that of one thread and its system calls.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluicec", default=str(root / "build/bin/sluicec"))
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()), help="where models are written")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    options = parser.parse_args()
    text = head()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        for part in options.parts or PARTS:
            text += "\n"
            for line in PARTS[part](options, pathlib.Path(folder)):
                print(line, flush=True)
                text += line + "\n"
    if options.page:
        options.page.write_text(text)


if __name__ == "__main__":
    main()
