#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes test/models/gradients: one model that holds every differentiable op with its variants, one for each loss, and the gradient of each
of their operands by central differences in double precision. Needs the environment of `tools/setup.sh --references`; its results are committed.

    test/models/make_gradients.py

A case is one ONNX node. Operand i of case NAME is the initializer NAME/i and thus a parameter; the first one passes through an addition of
the model's input, which is zero, so that the graph depends on an input, and in the variants that end in `_nhwc` through a 1x1 average pool as
well, which gives it the channels-last layout. All results are flattened and joined; the loss is their mean squared error against random
targets, so a case contributes (2/n) * sum over its outputs of (y - t) dy. onnx.reference computes y in float64."""
import math
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from safetensors.numpy import save_file

EPSILON = 1e-5
OPSET = 20
CASES = {}  # name -> (op, operands, attributes, constants, nhwc); constants: operand index -> int64 or float32 array that is not trained
random = np.random.default_rng(7)


def normal(*shape):
    return random.standard_normal(shape)


def spread(*shape):
    """Values whose distances leave room for the difference quotient: no ties for a maximum, nothing at a kink (0, -1, 1, 3, -3)."""
    count = int(np.prod(shape))
    values = np.linspace(-3.87, 3.91, count)
    values = np.where(np.min(np.abs(values[:, None] - np.array([0.0, -1, 1, 3, -3])), 1) < 5e-3, values + 0.011, values)
    return random.permutation(values).reshape(shape)


def case(name, op, operands, constants=None, nhwc=False, **attributes):
    CASES[name] = (op, operands, attributes, constants or {}, False)
    if nhwc:
        CASES[name + "_nhwc"] = (op, operands, attributes, constants or {}, True)


def ints(*values):
    return np.array(values, np.int64)


X, IMAGE = (2, 3, 4, 5), (2, 4, 5, 6)


def make_cases():
    make_elementwise_cases()
    make_convolution_cases()
    make_pool_and_norm_cases()
    make_product_cases()
    make_shape_cases()
    make_transformer_cases()


def make_elementwise_cases():
    for op in ("Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Neg", "LeakyRelu", "Identity"):
        case(op.lower(), op, [spread(*X)], nhwc=True)
    case("leakyrelu_zero", "LeakyRelu", [spread(*X)], alpha=0.0)
    case("leakyrelu_negative", "LeakyRelu", [spread(*X)], alpha=-0.3)
    case("clip", "Clip", [spread(*X)], {1: np.float32(-1), 2: np.float32(1)}, nhwc=True)
    case("square", "Pow", [spread(*X)], {1: np.float32(2)})
    for op in ("Add", "Sub", "Mul", "Div"):
        full = spread(*X) + (np.sign(spread(*X)) if op != "Div" else 0)
        divisor = 1.5 + random.random(X) if op == "Div" else spread(*X)
        case(op.lower(), op, [full, divisor], nhwc=True)
        case(op.lower() + "_channel", op, [full, divisor[:1, :, :1, :1]], nhwc=True)
        case(op.lower() + "_row", op, [full, divisor[0, 0, 0]], nhwc=True)
        case(op.lower() + "_scalar", op, [full, divisor[0, 0, 0, 0]])
        case(op.lower() + "_both", op, [full[:, :1, :, :1], divisor[:1, :, :1]])
    case("sum", "Sum", [normal(*X), normal(1, 3, 1, 5), normal(5)])


def make_convolution_cases():
    pads = {"pads": [1, 0, 2, 1]}
    for name, shape, attributes in (("conv", (6, 4, 3, 3), pads), ("conv_strides", (3, 4, 2, 3), {"strides": [2, 3]}),
                                    ("conv_dilations", (3, 4, 2, 2), {"dilations": [2, 3], "pads": [2, 1, 0, 1]}),
                                    ("conv_groups", (6, 2, 3, 3), {"group": 2, "strides": [2, 1], **pads}),
                                    ("conv_depthwise", (8, 1, 3, 2), {"group": 4, **pads}), ("conv_pointwise", (5, 4, 1, 1), {}),
                                    ("conv_same", (3, 4, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]})):
        case(name, "Conv", [normal(*IMAGE), normal(*shape), normal(shape[0])], **attributes)
        case(name + "_plain", "Conv", [normal(*IMAGE), normal(*shape)], **attributes)
    small = (2, 4, 3, 4)
    for name, shape, attributes in (("deconv", (4, 3, 3, 3), {"strides": [2, 2], "pads": [1, 1, 0, 1]}),
                                    ("deconv_output_padding", (4, 3, 2, 2), {"strides": [3, 2], "output_padding": [1, 1]}),
                                    ("deconv_groups", (4, 2, 2, 3), {"group": 2, "strides": [2, 2]}),
                                    ("deconv_dilations", (4, 2, 2, 2), {"dilations": [2, 2]})):
        group = attributes.get("group", 1)
        case(name, "ConvTranspose", [normal(*small), normal(*shape), normal(shape[1] * group)], **attributes)


def make_pool_and_norm_cases():
    for name, attributes in (("pool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
                             ("pool_pads", {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 1, 0, 1]}),
                             ("pool_ceil", {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1})):
        case("max" + name, "MaxPool", [spread(*IMAGE)], **attributes)
        if "ceil_mode" not in attributes:
            case("average" + name, "AveragePool", [normal(*IMAGE)], **attributes)
    case("maxpool_dilations", "MaxPool", [spread(*IMAGE)], kernel_shape=[2, 2], dilations=[2, 3])
    case("averagepool_include", "AveragePool", [normal(*IMAGE)], kernel_shape=[3, 2], pads=[1, 1, 1, 0], count_include_pad=1)
    case("globalaverage", "GlobalAveragePool", [normal(*IMAGE)])
    case("globalmax", "GlobalMaxPool", [spread(*IMAGE)])
    case("mean", "ReduceMean", [normal(*IMAGE)], {1: ints(1, 3)}, nhwc=True, keepdims=0)
    case("reducesum", "ReduceSum", [normal(*IMAGE)], {1: ints(-1)}, keepdims=1)
    case("lrn", "LRN", [normal(2, 7, 3, 4)], size=3, alpha=0.4, beta=0.75, bias=1.5)
    case("lrn_wide", "LRN", [normal(2, 7, 2, 3)], size=5, alpha=0.9, beta=0.5, bias=2.0)
    case("batchnorm", "BatchNormalization", [normal(3, 4, 3, 5), normal(4), normal(4)],
         {3: np.zeros(4, np.float32), 4: np.ones(4, np.float32)}, training_mode=1)
    case("batchnorm_2d", "BatchNormalization", [normal(6, 5), normal(5), normal(5)],
         {3: np.zeros(5, np.float32), 4: np.ones(5, np.float32)}, training_mode=1)


def make_transformer_cases():
    case("layernorm", "LayerNormalization", [normal(3, 4, 6), normal(6), normal(6)])
    case("layernorm_image", "LayerNormalization", [normal(2, 3, 4, 5), normal(3, 4, 5), normal(3, 4, 5)], axis=1, epsilon=1e-3)
    case("layernorm_scale", "LayerNormalization", [normal(4, 5), normal(5)], axis=-1)
    for op in ("Exp", "Abs", "Softplus", "Elu", "Selu", "Softsign"):
        case(op.lower(), op, [spread(*X)], nhwc=op == "Softplus")
    for op in ("Log", "Sqrt", "Reciprocal"):
        case(op.lower(), op, [0.5 + random.random(X)])
    case("celu", "Celu", [spread(*X)], alpha=2.0)
    case("mish", "Mish", [spread(*X)])
    case("mean_of", "Mean", [normal(*X), normal(1, 3, 1, 5), normal(5)])
    for op in ("Erf", "Gelu"):
        case(op.lower(), op, [spread(*X)], nhwc=True)
    case("gelu_tanh", "Gelu", [spread(*X)], approximate="tanh")


def make_product_cases():
    case("gemm", "Gemm", [normal(4, 6), normal(6, 3), normal(3)])
    case("gemm_transposed", "Gemm", [normal(6, 4), normal(3, 6), normal(4, 1)], transA=1, transB=1, alpha=0.5, beta=1.5)
    case("gemm_plain", "Gemm", [normal(4, 6), normal(3, 6)], transB=1)
    case("matmul", "MatMul", [normal(4, 6), normal(6, 3)])
    case("matmul_rows", "MatMul", [normal(2, 3, 4, 6), normal(6, 5)])
    case("matmul_batch", "MatMul", [normal(2, 3, 4, 6), normal(2, 3, 6, 5)])
    case("matmul_broadcast", "MatMul", [normal(2, 1, 4, 3), normal(3, 3, 2)])
    for op in ("Softmax", "LogSoftmax"):
        case(op.lower(), op, [normal(4, 7)], axis=1)
        case(op.lower() + "_channels", op, [normal(*X)], axis=1, nhwc=True)
        case(op.lower() + "_rows", op, [normal(*X)], axis=-1)


def make_shape_cases():
    case("concat", "Concat", [normal(2, 3, 4, 5), normal(2, 2, 4, 5), normal(2, 1, 4, 5)], axis=1, nhwc=True)
    case("concat_rows", "Concat", [normal(2, 3, 4, 5), normal(2, 3, 4, 2)], axis=3, nhwc=True)
    case("slice", "Slice", [normal(*IMAGE)], {1: ints(1, 2), 2: ints(3, 6), 3: ints(1, 3)}, nhwc=True)
    case("gather", "Gather", [normal(*IMAGE)], {1: ints(2)}, axis=1)
    case("pad", "Pad", [normal(*X)], {1: ints(0, 1, 2, 0, 0, 0, 1, 3)}, nhwc=True)
    case("reshape", "Reshape", [normal(*X)], {1: ints(3, -1)}, nhwc=True)
    case("flatten", "Flatten", [normal(*X)], nhwc=True)
    case("transpose", "Transpose", [normal(*X)], perm=[2, 0, 3, 1], nhwc=True)
    case("squeeze", "Squeeze", [normal(2, 1, 5, 1)], {1: ints(1, 3)}, nhwc=True)
    case("unsqueeze", "Unsqueeze", [normal(3, 5)], {1: ints(0, 2)})
    case("expand", "Expand", [normal(3, 1, 5)], {1: ints(2, 1, 4, 1)})
    case("depth_to_space", "DepthToSpace", [normal(2, 8, 2, 3)], blocksize=2, nhwc=True)
    case("depth_to_space_crd", "DepthToSpace", [normal(2, 8, 2, 3)], blocksize=2, mode="CRD")
    case("space_to_depth", "SpaceToDepth", [normal(2, 3, 4, 6)], blocksize=2)
    empty = np.array([], np.float32)
    for mode, transformation in (("nearest", "asymmetric"), ("nearest", "half_pixel"), ("linear", "half_pixel"), ("linear", "align_corners"),
                                 ("linear", "pytorch_half_pixel")):
        attributes = {"mode": mode, "coordinate_transformation_mode": transformation}
        if mode == "nearest":
            attributes["nearest_mode"] = "floor" if transformation == "asymmetric" else "round_prefer_floor"
        case(f"resize_{mode}_{transformation}", "Resize", [normal(2, 3, 4, 5)], {1: empty, 2: np.array([1, 1, 2, 3], np.float32)}, **attributes)
        case(f"resize_{mode}_{transformation}_down", "Resize", [normal(2, 2, 6, 7)], {1: empty, 2: empty, 3: ints(2, 2, 4, 3)}, **attributes)


def conv_transpose(x, w, b, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), output_padding=(0, 0), group=1):
    """By definition; onnx.reference fails on groups."""
    (n, c, *size), (_, o, *kernel) = x.shape, w.shape
    extent = [(size[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + output_padding[i] for i in (0, 1)]
    y = np.zeros((n, group, o, *extent))
    for at in np.ndindex(*kernel):
        rows, columns = (slice(at[i] * dilations[i], at[i] * dilations[i] + (size[i] - 1) * strides[i] + 1, strides[i]) for i in (0, 1))
        y[..., rows, columns] += np.einsum("ngchw,gco->ngohw", x.reshape(n, group, c // group, *size), w[(..., *at)].reshape(group, c // group, o))
    y = y.reshape(n, group * o, *extent)[:, :, pads[0]:extent[0] - pads[2], pads[1]:extent[1] - pads[3]]
    return y + b.reshape(1, -1, 1, 1)


def lrn(x, size, alpha, beta, bias):
    """By definition; onnx.reference counts the channels up to the batch size."""
    before, after = (size - 1) // 2, size // 2
    square = np.stack([np.sum(x[:, max(0, c - before):c + after + 1] ** 2, 1) for c in range(x.shape[1])], 1)
    return x / (bias + alpha / size * square) ** beta


erf = np.vectorize(math.erf)  # onnx.reference rounds it to float32


class Alone:
    """One case as a float64 model of its own."""
    def __init__(self, op, operands, attributes, constants):
        count = max([len(operands), *(i + 1 for i in constants)])
        names = [f"in{i}" for i in range(count)]
        node = helper.make_node(op, names, ["y"], **attributes)
        inputs, self.feeds, operands = [], {}, list(operands)
        self.op, self.attributes, self.trained = op, attributes, []
        for i, name in enumerate(names):
            if i in constants:
                array = constants[i]
                if op in ("Clip", "Pow", "BatchNormalization"):
                    array = np.asarray(array, np.float64)
            else:
                array = np.asarray(np.float32(operands.pop(0)), np.float64)  # the value that the program has
                self.trained.append((i, name))
            self.feeds[name] = np.array(array)
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(self.feeds[name].dtype), None))
        graph = helper.make_graph([node], "alone", inputs, [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)])
        self.evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)]))

    def run(self):
        if self.op == "ConvTranspose":
            return conv_transpose(*self.feeds.values(), **self.attributes)
        if self.op == "LRN":
            return lrn(*self.feeds.values(), **self.attributes)
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

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], "/" + output, **attributes))
        return output

    def add(self, name, op, operands, attributes, constants, nhwc):
        alone = Alone(op, operands, attributes, constants)
        inputs = []
        for i, value in enumerate(alone.feeds.values()):
            if i in constants:
                inputs.append(self.constant(f"{name}/{i}", constants[i]))
                continue
            inputs.append(self.constant(f"{name}/{i}", np.float32(value)))
            if i == 0:
                inputs[0] = self.node("Add", [inputs[0], "input"], f"{name}/enter")
                if nhwc:
                    inputs[0] = self.node("AveragePool", [inputs[0]], f"{name}/turn", kernel_shape=[1, 1])
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
    """A model that is nothing but its loss's operand, a parameter; behind a 1x1 average pool when it is an image."""
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
