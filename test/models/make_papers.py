#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the papers' networks into papers/NAME.onnx, beside this script or below --out. Needs the Python package `onnx` only.

    test/models/make_papers.py [--out DIR] [--size PIXELS] [NAME ...]

Weights come out of ConstantOfShape nodes, as in ONNX's light_* models, so that files hold the graph and no numbers: compile with --init=kaiming.
The batch is left open: --batch=N. `--size` is for vgg and resnet, whose tensors have the same names at any.

    alexnet        in one tower, without local response normalization, as in vDNN++'s code (227x227)
    vgg16          without dropout; vgg116, vgg191: with 20 and 35 convolutions more in every group (vDNN++, Table IV; 224x224)
    inception_v3   Szegedy et al. 2016 as torchvision has it, without the auxiliary head (299x299)
    resnet50       as torchvision has it; resnet256: bottlenecks 3, 8, 70, 3, which with both pools are 256 layers, as FreeLunch names no blocks (224x224)"""
import argparse
import pathlib

from onnx import TensorProto, checker, helper

OPSET = 17


class Graph:
    """Nodes in order; a weight is a ConstantOfShape node, all of one shape share an initializer."""
    def __init__(self, size):
        self.size, self.nodes, self.shapes, self.counts = size, [], {}, {}

    def name(self, kind):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return f"{kind}{self.counts[kind]}"

    def node(self, op, inputs, **attributes):
        output = self.name(op.lower())
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def weight(self, *shape, value=0.0):
        key = self.shapes.setdefault(shape, "shape_" + "_".join(map(str, shape)))
        output = self.name("w")
        filled = {} if value == 0 else {"value": helper.make_tensor("value", TensorProto.FLOAT, [1], [value])}
        self.nodes.append(helper.make_node("ConstantOfShape", [key], [output], **filled))
        return output

    def conv(self, x, inputs, outputs, kernel, stride=1, pads=None, bias=True):
        kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        ph, pw = (kh // 2, kw // 2) if pads is None else (pads, pads)
        operands = [x, self.weight(outputs, inputs, kh, kw)] + ([self.weight(outputs)] if bias else [])
        return self.node("Conv", operands, kernel_shape=[kh, kw], strides=[stride, stride], pads=[ph, pw, ph, pw])

    def norm(self, x, channels, epsilon=1e-5):
        return self.node("BatchNormalization", [x, self.weight(channels, value=1.0), self.weight(channels), self.weight(channels),
                                                self.weight(channels, value=1.0)], epsilon=epsilon)

    def relu(self, x):
        return self.node("Relu", [x])

    def pool(self, x, kind, kernel, stride, pad=0, **attributes):
        return self.node(kind, [x], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, **attributes)

    def linear(self, x, inputs, outputs):
        return self.node("Gemm", [x, self.weight(outputs, inputs), self.weight(outputs)], transB=1)

    def model(self, output):
        self.nodes[-1].output[0] = "scores"
        initializers = [helper.make_tensor(name, TensorProto.INT64, [len(shape)], shape) for shape, name in self.shapes.items()]
        value = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])
        graph = helper.make_graph(self.nodes, "step", [value("images", 3, self.size, self.size)], [value("scores", output)], initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def alexnet():
    g, x = Graph(227), "images"
    for inputs, outputs, kernel, stride, pad, pooled in ((3, 96, 11, 4, 0, True), (96, 256, 5, 1, 2, True), (256, 384, 3, 1, 1, False),
                                                         (384, 384, 3, 1, 1, False), (384, 256, 3, 1, 1, True)):
        x = g.relu(g.conv(x, inputs, outputs, kernel, stride, pad))
        x = g.pool(x, "MaxPool", 3, 2) if pooled else x
    x = g.node("Flatten", [x])
    for inputs in (9216, 4096):
        x = g.relu(g.linear(x, inputs, 4096))
    g.linear(x, 4096, 1000)
    return g.model(1000)


def vgg(more, size=224):
    g, x, inputs = Graph(size), "images", 3
    for outputs, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(convolutions + more):
            x, inputs = g.relu(g.conv(x, inputs, outputs, 3)), outputs
        x = g.pool(x, "MaxPool", 2, 2)
    x = g.node("Flatten", [x])
    for inputs in (512 * (size // 32) ** 2, 4096):
        x = g.relu(g.linear(x, inputs, 4096))
    g.linear(x, 4096, 1000)
    return g.model(1000)


def resnet(blocks, size=224):
    g, inputs = Graph(size), 64
    def conv_norm(x, *arguments):
        return g.norm(g.conv(x, *arguments, bias=False), arguments[1])
    x = g.pool(g.relu(conv_norm("images", 3, 64, 7, 2)), "MaxPool", 3, 2, 1)
    for group, repeats in enumerate(blocks):
        width = 64 << group
        for i in range(repeats):
            stride = 2 if group and not i else 1
            y = g.relu(conv_norm(x, inputs, width, 1))
            y = conv_norm(g.relu(conv_norm(y, width, width, 3, stride)), width, 4 * width, 1)
            x = g.relu(g.node("Add", [y, x if i else conv_norm(x, inputs, 4 * width, 1, stride)]))
            inputs = 4 * width
    g.linear(g.node("Flatten", [g.node("GlobalAveragePool", [x])]), inputs, 1000)
    return g.model(1000)


def inception_v3():
    g = Graph(299)
    def cbr(x, inputs, *layers):
        """Convolutions, each (outputs, kernel[, stride[, padding]]), with BatchNorm and ReLU."""
        for outputs, *how in layers:
            x, inputs = g.relu(g.norm(g.conv(x, inputs, outputs, *how, bias=False), outputs, 1e-3)), outputs
        return x
    concat = lambda *parts: g.node("Concat", parts, axis=1)
    largest = lambda x: g.pool(x, "MaxPool", 3, 2)
    mean = lambda x: g.pool(x, "AveragePool", 3, 1, 1, count_include_pad=1)
    x = largest(cbr("images", 3, (32, 3, 2, 0), (32, 3, 1, 0), (64, 3)))
    x = largest(cbr(x, 64, (80, 1), (192, 3, 1, 0)))
    c = 192
    for pooled in (32, 64, 64):
        x = concat(cbr(x, c, (64, 1)), cbr(x, c, (48, 1), (64, 5)), cbr(x, c, (64, 1), (96, 3), (96, 3)), cbr(mean(x), c, (pooled, 1)))
        c = 224 + pooled
    x, c = concat(cbr(x, c, (384, 3, 2, 0)), cbr(x, c, (64, 1), (96, 3), (96, 3, 2, 0)), largest(x)), 768
    row, column = (1, 7), (7, 1)
    for w in (128, 160, 160, 192):
        x = concat(cbr(x, c, (192, 1)), cbr(x, c, (w, 1), (w, row), (192, column)),
                   cbr(x, c, (w, 1), (w, column), (w, row), (w, column), (192, row)), cbr(mean(x), c, (192, 1)))
    x = concat(cbr(x, c, (192, 1), (320, 3, 2, 0)), cbr(x, c, (192, 1), (192, row), (192, column), (192, 3, 2, 0)), largest(x))
    c = 1280
    for _ in range(2):
        a, d = cbr(x, c, (384, 1)), cbr(x, c, (448, 1), (384, 3))
        x = concat(cbr(x, c, (320, 1)), *(cbr(v, 384, (384, kernel)) for v in (a, d) for kernel in ((1, 3), (3, 1))), cbr(mean(x), c, (192, 1)))
        c = 2048
    g.linear(g.node("Flatten", [g.node("GlobalAveragePool", [x])]), c, 1000)
    return g.model(1000)


MODELS = {"alexnet": alexnet, "vgg16": lambda **size: vgg(0, **size), "vgg116": lambda **size: vgg(20, **size), "vgg191": lambda **size: vgg(35, **size),
          "inception_v3": inception_v3, "resnet50": lambda **size: resnet((3, 4, 6, 3), **size), "resnet256": lambda **size: resnet((3, 8, 70, 3), **size)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=pathlib.Path(__file__).parent / "papers", type=pathlib.Path)
    parser.add_argument("--size", type=int)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names:
        model = MODELS[name](**({"size": options.size} if options.size else {}))
        checker.check_model(model)
        (options.out / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))
        print(f"{options.out / name}.onnx: {len(model.graph.node)} nodes")


if __name__ == "__main__":
    main()
