# SPDX-License-Identifier: Apache-2.0
"""Writes scikit-learn's digits (1,797 real 8x8 scans, carried by its package) as training data, and two small CNNs for them.

    python digits.py DIR [--batch N]

DIR/train and DIR/test get input.npy (N,1,8,8 float32 in [0,1]) and target.npy (N int64); every fifth image is held out. DIR/digits.onnx is
a residual network with BatchNormalization in inference form, DIR/plain.onnx a row of convolutions and ReLUs as in VGG; their weights are
zeros, to be drawn with --init=kaiming.
"""
import argparse
import importlib.util
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


IMAGE = (1, 8, 8)  # channels, height, width


def load_digits():
    """Images (N, 8, 8) in 0..16 and labels, from the file in scikit-learn's package, which needs none of what scikit-learn needs."""
    package = pathlib.Path(importlib.util.find_spec("sklearn").submodule_search_locations[0])
    table = np.loadtxt(package / "datasets/data/digits.csv.gz", delimiter=",")
    return table[:, :64].reshape(-1, 8, 8), table[:, 64]


class Network:
    """Collects nodes and initializers of an ONNX graph."""

    def __init__(self):
        self.nodes, self.initializers = [], []

    def weight(self, name, shape, value=0.0):
        self.initializers.append(numpy_helper.from_array(np.full(shape, value, np.float32), name))
        return name

    def node(self, op, name, inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name + "_out"], name=name, **attributes))
        return name + "_out"

    def conv_bn(self, name, x, c_in, c_out, kernel, stride=1, relu=True):
        pad = kernel // 2
        w = self.weight(name + ".weight", (c_out, c_in, kernel, kernel))
        y = self.node("Conv", f"{name}/Conv", [x, w], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
        statistics = [self.weight(f"{name}.bn.{part}", (c_out,), v) for part, v in
                      (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1))]
        y = self.node("BatchNormalization", f"{name}/BatchNormalization", [y, *statistics], epsilon=1e-5, momentum=0.9)
        return self.node("Relu", f"{name}/Relu", [y]) if relu else y

    def conv_relu(self, name, x, c_in, c_out):
        w, b = self.weight(name + ".weight", (c_out, c_in, 3, 3)), self.weight(name + ".bias", (c_out,))
        return self.node("Relu", f"{name}/Relu", [self.node("Conv", f"{name}/Conv", [x, w, b], kernel_shape=[3, 3], pads=[1] * 4)])

    def block(self, name, x, c_in, c_out, stride):
        y = self.conv_bn(name + "/conv1", x, c_in, c_out, 3, stride)
        y = self.conv_bn(name + "/conv2", y, c_out, c_out, 3, relu=False)
        if stride != 1 or c_in != c_out:
            x = self.conv_bn(name + "/shortcut", x, c_in, c_out, 1, stride, relu=False)
        return self.node("Relu", name + "/Relu", [self.node("Add", name + "/Add", [y, x])])


def residual_cnn():
    net = Network()
    x = net.conv_bn("stem", "images", 1, 16, 3)
    x = net.block("layer1", x, 16, 16, 1)
    x = net.block("layer2", x, 16, 32, 2)
    x = net.block("layer3", x, 32, 64, 2)
    return finished(net, net.node("GlobalAveragePool", "pool", [x]), 64)


def plain_cnn(shape=IMAGE, classes=10):
    """For images of this shape, whose height and width eight divides."""
    net, x, c_in = Network(), "images", shape[0]
    for stage, channels in enumerate((16, 32, 64), 1):
        for layer in (1, 2):
            x = net.conv_relu(f"stage{stage}/conv{layer}", x, c_in, channels)
            c_in = channels
        x = net.node("MaxPool", f"stage{stage}/pool", [x], kernel_shape=[2, 2], strides=[2, 2])
    return finished(net, x, shape[1] * shape[2], shape, classes)  # 64 channels, an eighth of either extent


def finished(net, x, features, shape=IMAGE, classes=10):
    """The model whose last layer makes a score a class of `features` values an image."""
    x = net.node("Flatten", "flatten", [x])
    w, b = net.weight("fc.weight", (classes, features)), net.weight("fc.bias", (classes,))
    net.nodes.append(helper.make_node("Gemm", [x, w, b], ["scores"], name="fc", transB=1))
    graph = helper.make_graph(net.nodes, "digits", [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", *shape])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", classes])], net.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=pathlib.Path)
    folder = parser.parse_args().dir
    images, labels = load_digits()
    images = (images / 16).astype(np.float32)[:, None]
    held_out = np.arange(len(images)) % 5 == 0
    for name, chosen in (("train", ~held_out), ("test", held_out)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        np.save(folder / name / "input.npy", images[chosen])
        np.save(folder / name / "target.npy", labels[chosen].astype(np.int64))
        print(f"{folder / name}: {chosen.sum()} images")
    onnx.save(residual_cnn(), folder / "digits.onnx")
    onnx.save(plain_cnn(), folder / "plain.onnx")


if __name__ == "__main__":
    main()
