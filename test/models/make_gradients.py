#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes test/models/gradients: one model that holds every differentiable op with its variants, one for each loss, and the gradient of each
of their operands by central differences in double precision. Needs the environment of `tools/setup.sh --references`; its results are committed.

    test/models/make_gradients.py

A case is one ONNX node (gradient_cases.py). Operand i of case NAME is the initializer NAME/i and thus a parameter; the first one passes through an addition of
the model's input, which is zero, so that the graph depends on an input, and in the variants that end in `_nhwc` through a 1x1 average pool as
well, which gives it the channels-last layout. All results are flattened and joined; the loss is their mean squared error against random
targets, so a case contributes (2/n) * sum over its outputs of (y - t) dy. onnx.reference computes y in float64."""
import math
import pathlib

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from safetensors.numpy import save_file

from gradient_cases import CASES, Data, make_cases, normal, random

EPSILON = 1e-5
RECURRENT = ("LSTM", "GRU", "RNN")
OPSET = 21


def conv_transpose(x, w, b, strides=None, pads=None, dilations=None, output_padding=None, group=1):
    """By definition; onnx.reference fails on groups."""
    (n, c, *size), (_, o, *kernel) = x.shape, w.shape
    axes = range(len(size))
    ones, zeros = [1] * len(size), [0] * 2 * len(size)
    strides, pads, dilations, output_padding = strides or ones, pads or zeros, dilations or ones, output_padding or zeros
    extent = [(size[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + output_padding[i] for i in axes]
    y = np.zeros((n, group, o, *extent))
    for at in np.ndindex(*kernel):
        place = tuple(slice(at[i] * dilations[i], at[i] * dilations[i] + (size[i] - 1) * strides[i] + 1, strides[i]) for i in axes)
        y[(..., *place)] += np.einsum("ngc...,gco->ngo...", x.reshape(n, group, c // group, *size), w[(..., *at)].reshape(group, c // group, o))
    inside = tuple(slice(pads[i], extent[i] - pads[len(size) + i]) for i in axes)
    return y.reshape(n, group * o, *extent)[(..., *inside)] + b.reshape(1, -1, *ones)


def lrn(x, size, alpha, beta, bias):
    """By definition; onnx.reference counts the channels up to the batch size."""
    before, after = (size - 1) // 2, size // 2
    square = np.stack([np.sum(x[:, max(0, c - before):c + after + 1] ** 2, 1) for c in range(x.shape[1])], 1)
    return x / (bias + alpha / size * square) ** beta


def global_max(x):
    """By definition; onnx.reference leaves out dimensions of volumes."""
    return np.max(x, tuple(range(2, x.ndim)), keepdims=True)


def lp_norm(x, axis, p):
    """By definition; onnx.reference leaves out the magnitude."""
    return x / np.sum(np.abs(x) ** p, axis, keepdims=True) ** (1 / p)


def group_norm(x, scale, bias, num_groups):
    """By definition; onnx.reference computes in float32."""
    groups = x.reshape(x.shape[0], num_groups, -1)
    centred = groups - np.mean(groups, 2, keepdims=True)
    y = (centred / np.sqrt(np.mean(centred ** 2, 2, keepdims=True) + 1e-5)).reshape(x.shape)
    return y * scale.reshape(-1, 1, 1) + bias.reshape(-1, 1, 1)


def mvn(x, axes):
    """By definition; onnx.reference mixes it with float32."""
    centred = x - np.mean(x, tuple(axes), keepdims=True)
    return centred / (np.sqrt(np.mean(centred ** 2, tuple(axes), keepdims=True)) + 1e-9)


def gather_elements(x, index, axis):
    """By definition; onnx.reference wants the operand's extents of the indices."""
    part = tuple(slice(None) if i == axis else slice(extent) for i, extent in enumerate(index.shape))
    return np.take_along_axis(x[part], index, axis)


def grid_sample(x, grid, mode, padding_mode, align_corners=0):
    """By PyTorch, in double; onnx.reference computes in float32."""
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    x, grid = torch.from_numpy(np.array(x)), torch.from_numpy(np.array(grid))
    return torch.nn.functional.grid_sample(x, grid, mode, padding_mode, bool(align_corners)).numpy()


def negative_log_likelihood(scores, labels, weights=None, reduction="mean", ignore_index=None):
    """By definition; onnx.reference computes in float32."""
    weight = (np.ones(scores.shape[1]) if weights is None else weights)[labels] * (labels != ignore_index)
    loss = -np.take_along_axis(scores, labels[:, None], 1)[:, 0] * weight
    return loss if reduction == "none" else np.sum(loss) / (np.sum(weight) if reduction == "mean" else 1)


def softmax_cross_entropy(x, *others, **attributes):
    return negative_log_likelihood(x - np.log(np.sum(np.exp(x), 1, keepdims=True)), *others, **attributes)


def logistic(x):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {"Affine": lambda x, alpha, beta: alpha * x + beta, "Elu": lambda x, alpha, _: np.where(x < 0, alpha * (np.exp(np.minimum(x, 0)) - 1), x),
             "HardSigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), "LeakyRelu": lambda x, *_: np.where(x < 0, 0.01 * x, x),
             "Relu": lambda x, *_: np.maximum(x, 0), "ScaledTanh": lambda x, alpha, beta: alpha * np.tanh(beta * x), "Sigmoid": lambda x, *_: logistic(x),
             "Softsign": lambda x, *_: x / (1 + np.abs(x)), "Tanh": lambda x, *_: np.tanh(x)}


def functions(names, alphas, betas, clip):
    """The activations of all directions, of operands within the limit; numbers go to those that have some, in order."""
    alphas, betas, made = list(alphas), list(betas), []
    for name in names:
        alpha = alphas.pop(0) if alphas and name in ("Affine", "Elu", "HardSigmoid", "ScaledTanh") else 0
        beta = betas.pop(0) if betas and name in ("Affine", "HardSigmoid", "ScaledTanh") else 0
        made.append(lambda x, name=name, alpha=alpha, beta=beta: FUNCTIONS[name](np.clip(x, -clip, clip) if clip else x, alpha, beta))
    return made


def cell_step(op, x, h, c, r, bias, acts, peepholes, linear_before_reset, coupled):
    """h and c after a step; x is the inputs' part of the gates with their bias, bias that of the products with h."""
    parts = np.split(r, {"LSTM": 4, "GRU": 3, "RNN": 1}[op])
    x, biases = np.split(x, len(parts), -1), np.split(bias, len(parts))
    sums = [a + h @ part.T + b for a, part, b in zip(x, parts, biases)]
    if op == "LSTM":
        pi, po, pf = np.split(peepholes, 3)
        i = acts[0](sums[0] + pi * c)
        f = 1 - i if coupled else acts[0](sums[2] + pf * c)
        c = f * c + i * acts[1](sums[3])
        return acts[0](sums[1] + po * c) * acts[2](c), c
    if op == "GRU":
        z, reset = acts[0](sums[0]), acts[0](sums[1])
        inner = reset * (h @ parts[2].T + biases[2]) if linear_before_reset else (reset * h) @ parts[2].T + biases[2]
        return (1 - z) * acts[1](x[2] + inner) + z * h, c
    return acts[0](sums[0]), c


def recurrent(op):
    """By definition; onnx.reference knows one direction."""
    usual = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}[op]

    def compute(x, w, r, b=None, lengths=None, h=None, c=None, p=None, hidden_size=0, direction="forward", layout=0, linear_before_reset=0, activations=(),
                activation_alpha=(), activation_beta=(), clip=0, input_forget=0, result=0):
        x = np.swapaxes(x, 0, 1) if layout else x
        h, c = (np.zeros((w.shape[0], x.shape[1], hidden_size)) if s is None else np.swapaxes(s, 0, 1) if layout else s for s in (h, c))
        b = np.zeros((w.shape[0], 2 * w.shape[1])) if b is None else b
        p = np.zeros((w.shape[0], 3 * hidden_size)) if p is None else p
        lengths = np.full(x.shape[1], x.shape[0]) if lengths is None else lengths
        acts = functions(activations or usual * w.shape[0], activation_alpha, activation_beta, clip)
        y, last, cells = [], [], []
        for d in range(w.shape[0]):
            back, (own, inner) = direction == "reverse" or d == 1, np.split(b[d], 2)
            state, cell, states = h[d], c[d], []
            for t in range(x.shape[0])[::-1 if back else 1]:
                inside = (t < lengths)[:, None]
                new, now = cell_step(op, x[t] @ w[d].T + own, state, cell, r[d], inner, acts[d * len(usual):(d + 1) * len(usual)], p[d],
                                     linear_before_reset, input_forget)
                state, cell = np.where(inside, new, state), np.where(inside, now, cell)
                states.append(np.where(inside, new, 0))
            y.append(np.stack(states[::-1] if back else states))
            last.append(state)
            cells.append(cell)
        results = np.stack(y, 1), np.stack(last), np.stack(cells)
        return (results[result].transpose(2, 0, 1, 3) if not result else np.swapaxes(results[result], 0, 1)) if layout else results[result]
    return compute


DEFINITIONS = {"ConvTranspose": conv_transpose, "GlobalMaxPool": global_max, "LRN": lrn, "LpNormalization": lp_norm, "GroupNormalization": group_norm,
               "MeanVarianceNormalization": mvn, "GatherElements": gather_elements, "GridSample": grid_sample,
               "NegativeLogLikelihoodLoss": negative_log_likelihood, "SoftmaxCrossEntropyLoss": softmax_cross_entropy,
               **{op: recurrent(op) for op in RECURRENT}}
erf = np.vectorize(math.erf)  # onnx.reference rounds it to float32


class Alone:
    """One case as a float64 model of its own."""
    def __init__(self, op, operands, attributes, constants):
        count = len(operands) + len(constants)
        names = [f"in{i}" for i in range(count)]
        node = helper.make_node(op, names, ["y"], **{key: value for key, value in attributes.items() if key != "result"})
        inputs, self.feeds, operands = [], {}, list(operands)
        self.op, self.attributes, self.trained = op, attributes, []
        for i, name in enumerate(names):
            if i in constants:
                array = constants[i]
                if np.asarray(array).dtype == np.float32 and op != "Resize":
                    array = np.asarray(array, np.float64)
            else:
                array = np.asarray(np.float32(operands.pop(0)), np.float64)  # the value that the program has
                self.trained.append((i, name))
            self.feeds[name] = np.array(array)
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(self.feeds[name].dtype), None))
        if op in DEFINITIONS:
            return
        graph = helper.make_graph([node], "alone", inputs, [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)])
        self.evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)]))

    def run(self):
        if own := DEFINITIONS.get(self.op):
            return own(*self.feeds.values(), **self.attributes)
        if self.op == "Erf" or (self.op == "Gelu" and not self.attributes):
            x, = self.feeds.values()
            return erf(x) if self.op == "Erf" else x / 2 * (1 + erf(x / math.sqrt(2)))
        return np.asarray(self.evaluator.run(None, self.feeds)[0], np.float64)

    def differences(self, target):
        """Gradient of sum (y - target)^2 with respect to every trained operand."""
        result = {}
        for i, name in self.trained:
            array = self.feeds[name]
            gradient = np.zeros(array.shape)
            for at in np.ndindex(array.shape):
                middle, sides = array[at], []
                for step in (EPSILON, -EPSILON):
                    array[at] = middle + step
                    sides.append(np.sum((self.run() - target) ** 2))
                array[at] = middle
                gradient[at] = (sides[0] - sides[1]) / (2 * EPSILON)
            result[i] = gradient
        return result


class Joined:
    """All cases in one graph."""
    def __init__(self):
        self.nodes, self.initializers, self.outputs, self.targets, self.gradients = [], [], [], [], {}
        self.constant("flat", np.array([1, -1], np.int64))

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(np.shape(array)), name))
        return name

    def node(self, op, inputs, output, result=0, **attributes):
        outputs = [""] * result + [output] + ([output + "/positions"] if op == "TopK" else [])
        self.nodes.append(helper.make_node(op, inputs, outputs, "/" + output, **attributes))
        return output

    def add(self, name, op, operands, attributes, constants, nhwc):
        alone = Alone(op, operands, attributes, constants)
        inputs = []
        for i, value in enumerate(alone.feeds.values()):
            if isinstance(constants.get(i), Data):
                self.constant(f"{name}/{i}/known", np.float32(constants[i]))
                self.node("Add", [f"{name}/{i}/known", "input"], f"{name}/{i}/sum")
                inputs.append(self.node("Cast", [f"{name}/{i}/sum"], f"{name}/{i}", to=TensorProto.INT32 if op in RECURRENT else TensorProto.INT64))
                continue
            if i in constants:
                inputs.append(self.constant(f"{name}/{i}", constants[i]))
                continue
            inputs.append(self.constant(f"{name}/{i}", np.float32(value)))
            if i == alone.trained[0][0]:
                inputs[i] = self.node("Add", [inputs[i], "input"], f"{name}/enter")
                if nhwc:
                    inputs[i] = self.node("AveragePool", [inputs[i]], f"{name}/turn", kernel_shape=[1] * (np.ndim(value) - 2))
        self.node(op, inputs, f"{name}/op", **attributes)
        self.outputs.append(self.node("Reshape", [f"{name}/op", "flat"], f"{name}/leave"))
        y = alone.run()
        target = np.float32(random.standard_normal(y.shape))
        self.targets.append(target.reshape(1, -1))
        for i, gradient in alone.differences(np.float64(target)).items():
            self.gradients[f"{name}/{i}"] = gradient
        return np.sum((y - target) ** 2)

    def write(self, folder):
        square = sum(self.add(name, *case) for name, case in CASES.items())
        target = np.concatenate(self.targets, 1)
        self.node("Concat", self.outputs, "y", axis=1)
        gradients = {name: gradient / target.size for name, gradient in self.gradients.items()}
        write(folder, self.nodes, self.initializers, target.shape, target, square / target.size, gradients)
        print(f"gradients: {len(CASES)} cases, {len(self.gradients)} operands, {target.size} outputs")


def write(folder, nodes, initializers, shape, target, loss, gradients, input_shape=(1,)):
    graph = helper.make_graph(nodes, "gradients", [helper.make_tensor_value_info("input", TensorProto.FLOAT, list(input_shape))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, list(shape))], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    onnx.checker.check_model(model)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(folder / "model.onnx"))
    np.save(folder / "data" / "input.npy", np.zeros(input_shape, np.float32))
    np.save(folder / "data" / "target.npy", target)
    tensors = {"losses": np.array([loss]), "noise_losses": np.zeros(1)}
    for name, gradient in gradients.items():
        tensors[f"gradient/{name}"] = np.float32(gradient)
        tensors[f"noise/{name}"] = np.zeros(1, np.float32)
    save_file({name: np.ascontiguousarray(t) for name, t in tensors.items()}, folder / "reference.safetensors")


def cross_entropy(x, target):
    logarithm = x - np.log(np.sum(np.exp(x), 1, keepdims=True))
    return -np.mean(np.take_along_axis(logarithm, target[:, None], 1))


def bce_with_logits(x, target):
    return np.mean(np.log1p(np.exp(x)) - x * target)


def mse(x, target):
    return np.mean((x - target) ** 2)


def write_loss(folder, loss, x, target):
    """A model that is nothing but its loss's operand, a parameter; after a 1x1 average pool when it is an image."""
    x = np.float64(np.float32(x))
    nodes = [helper.make_node("Add", ["x", "input"], ["enter"], "/enter")]
    if x.ndim == 4:
        nodes.append(helper.make_node("AveragePool", ["enter"], ["turn"], "/turn", kernel_shape=[1, 1]))
    nodes.append(helper.make_node("Identity", [nodes[-1].output[0]], ["y"], "/y"))
    gradient = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        sides = []
        for step in (EPSILON, -EPSILON):
            moved = x.copy()
            moved[at] += step
            sides.append(loss(moved, target))
        gradient[at] = (sides[0] - sides[1]) / (2 * EPSILON)
    write(folder, nodes, [numpy_helper.from_array(np.float32(x), "x")], x.shape, target, loss(x, target), {"x": gradient}, x.shape[:1] + (1,) * (x.ndim - 1))


def main():
    root = pathlib.Path(__file__).parent / "gradients"
    make_cases()
    Joined().write(root / "ops")
    write_loss(root / "cross_entropy", cross_entropy, normal(4, 7), random.integers(0, 7, 4))
    write_loss(root / "cross_entropy_dense", cross_entropy, normal(2, 3, 4, 5), random.integers(0, 3, (2, 4, 5)))
    write_loss(root / "bce_with_logits", bce_with_logits, normal(4, 3), np.float32(random.random((4, 3))))
    write_loss(root / "mse_dense", mse, normal(2, 3, 4, 5), np.float32(normal(2, 3, 4, 5)))


main()
