# SPDX-License-Identifier: Apache-2.0
"""The cases of make_gradients.py: every differentiable op with its variants. Values come from one generator in the order of the cases."""
import numpy as np

CASES = {}  # name -> (op, operands, attributes, constants, nhwc); constants: operand index -> array that is not trained: int64, float32 or bool


class Data(np.ndarray):
    """Integers that no compiler knows: the model computes them from its input."""


def data(*values):
    return ints(*values).view(Data)


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
    make_text_cases()
    make_reduction_cases()
    make_group_norm_cases()
    make_padding_cases()
    make_einsum_cases()
    make_indexing_cases()
    make_resize_cases()
    make_recurrent_cases()
    make_line_and_volume_cases()
    make_folding_cases()
    make_grid_cases()
    make_loss_cases()


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
    case("prelu", "PRelu", [spread(*X), normal(3, 1, 1)], nhwc=True)
    for op in ("Max", "Min"):
        case(op.lower(), op, [spread(*X), 0.013 + spread(*X)], nhwc=True)
        case(op.lower() + "_of", op, [spread(*X), 0.013 + spread(3, 1, 5), 0.027 + spread(5)])
        case(op.lower() + "_bound", op, [spread(*X)], {1: np.float32(1)})
    for name, exponent, low in (("root", 0.5, 0.5), ("fifth", 5, 0.5), ("inverse", -2, 0.5), ("fraction", -1.7, 0.5), ("none", 0, -0.5), ("long", 17, -1.4)):
        case("pow_" + name, "Pow", [low + random.random(X)], {1: np.float32(exponent)})
    for op in ("Sin", "Cos", "Atan", "Sinh", "Cosh", "Asinh"):
        case(op.lower(), op, [spread(*X)])
    case("tan", "Tan", [0.35 * spread(*X)])
    for op in ("Asin", "Acos", "Atanh"):
        case(op.lower(), op, [0.24 * spread(*X)])
    case("acosh", "Acosh", [5.1 + spread(*X)])
    case("mod", "Mod", [spread(*X), 1.53 + 0.1 * spread(4, 1)], fmod=1)
    case("pow_tensor", "Pow", [0.5 + random.random(X), normal(4, 1)])


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


def make_reduction_cases():
    for op in ("ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare", "ReduceProd"):
        case(op.lower(), op, [spread(*X)], {1: ints(1, 3)}, nhwc=True, keepdims=0)
        case(op.lower() + "_all", op, [spread(3, 5)])
    case("reducelogsum", "ReduceLogSum", [0.5 + random.random(X)], {1: ints(0, 2)})


def make_group_norm_cases():
    case("instancenorm", "InstanceNormalization", [normal(2, 3, 4, 5), normal(3), normal(3)], nhwc=True)
    case("instancenorm_inner", "InstanceNormalization", [normal(2, 3, 7)], {1: np.ones(3, np.float32), 2: np.zeros(3, np.float32)}, epsilon=1e-3)
    case("groupnorm", "GroupNormalization", [normal(2, 6, 3, 4), normal(6), normal(6)], num_groups=2, nhwc=True)
    case("mvn", "MeanVarianceNormalization", [normal(2, 3, 4, 5)], axes=[0, 2, 3])
    for p in (1, 2):
        case(f"lpnorm_{p}", "LpNormalization", [spread(*X)], axis=1, p=p)
        case(f"lppool_{p}", "LpPool", [spread(*IMAGE)], kernel_shape=[2, 3], strides=[2, 1], pads=[1, 0, 0, 1], p=p)


def make_padding_cases():
    for mode in ("edge", "reflect", "wrap"):
        case("pad_" + mode, "Pad", [normal(*IMAGE)], {1: ints(0, 0, 2, 1, 0, 0, 1, 3)}, mode=mode, nhwc=True)
    case("pad_value", "Pad", [normal(*X)], {1: ints(1, 2, 0, 3), 2: np.float32(1.5), 3: ints(1, -1)})
    case("tile", "Tile", [normal(2, 3, 4)], {1: ints(2, 1, 3)})
    case("slice_step", "Slice", [normal(*IMAGE)], {1: ints(1, 0), 2: ints(5, 6), 3: ints(2, 3), 4: ints(2, 3)}, nhwc=True)
    case("slice_back", "Slice", [normal(*IMAGE)], {1: ints(-1, 4), 2: ints(-99, 0), 3: ints(1, 3), 4: ints(-1, -2)})
    for name, attributes in (("", {}), ("_exclusive", {"exclusive": 1}), ("_reverse", {"reverse": 1, "exclusive": 1})):
        case("cumsum" + name, "CumSum", [normal(*X)], {1: np.int64(1)}, **attributes)
    case("trilu", "Trilu", [normal(2, 4, 5)], {1: np.int64(1)})
    case("trilu_lower", "Trilu", [normal(4, 3)], upper=0)


def make_einsum_cases():
    for name, equation, shapes in (("batch", "bhid, bhjd -> bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("vector", "ij,j->i", [(4, 5), (5,)]),
                                   ("outer", "bi,bj->ijb", [(2, 3), (2, 4)]), ("turn", "bij->jbi", [(2, 3, 4)]), ("sum", "bij->b", [(2, 3, 4)]),
                                   ("ellipsis", "...ij,jk", [(2, 3, 4, 5), (5, 6)]), ("chain", "abc,cd,bde->ae", [(2, 3, 4), (4, 5), (3, 5, 2)])):
        case("einsum_" + name, "Einsum", [normal(*shape) for shape in shapes], equation=equation)


def make_text_cases():
    repeated = ints(3, 0, 3, 6, 3, 0).reshape(2, 3)
    case("embedding", "Gather", [normal(7, 4)], {1: repeated})
    case("embedding_blocks", "Gather", [normal(4, 2, 3)], {1: ints(-1, 0, 0)})
    mask = random.random(X) < 0.5
    case("where", "Where", [spread(*X), spread(*X)], {0: mask}, nhwc=True)
    case("where_broadcast", "Where", [normal(*X), normal(3, 1, 1)], {0: mask[:1, :1]})
    case("where_row", "Where", [normal(1, 4, 1), normal(5)], {0: mask[0]})


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


def make_indexing_cases():
    case("gather_columns", "Gather", [normal(2, 3, 4)], {1: ints(3, 0, 3, 1).reshape(2, 2)}, axis=2)
    case("gather_channels", "Gather", [normal(*IMAGE)], {1: ints(2, 0, -1)}, axis=1, nhwc=True)
    case("gather_elements", "GatherElements", [normal(3, 4)], {1: ints(3, 0, 0, -1, 2, 0).reshape(2, 3)}, axis=1)
    case("gather_nd", "GatherND", [normal(2, 3, 4)], {1: ints(2, 0, 2, 2).reshape(2, 2, 1)}, batch_dims=1)
    places = ints(0, 2, 1, 0).reshape(2, 2)
    case("scatter_nd", "ScatterND", [normal(2, 3, 4), normal(2, 4)], {1: places})
    case("scatter_elements", "ScatterElements", [normal(3, 4), normal(2, 2)], {1: ints(3, 0, -1, 2).reshape(2, 2)}, axis=1)
    twice = ints(1, 2, 1, 0).reshape(2, 2)
    for word in ("mul", "max", "min"):
        case("scatter_elements_" + word, "ScatterElements", [normal(3, 4), normal(2, 2)], {1: twice}, axis=0, reduction=word)
    case("topk", "TopK", [spread(2, 5, 3)], {1: ints(2)}, axis=1)
    case("topk_smallest", "TopK", [spread(3, 7)], {1: ints(4)}, largest=0)
    case("gather_nd_data", "GatherND", [normal(2, 3, 4)], {1: data(2, -3, 2, 1).reshape(2, 2, 1)}, batch_dims=1)
    case("gather_nd_elements_data", "GatherND", [normal(2, 3, 4)], {1: data(1, 2, 3, 0, -1, 0, 1, 2, 3).reshape(3, 3)})
    for word in ("none", "add"):
        case("scatter_nd_data_" + word, "ScatterND", [normal(2, 3, 4), normal(3, 4)], {1: data(0, 2, 1, 0, 0, 2).reshape(3, 2)}, reduction=word)
    for word in ("none", "add", "max", "min"):
        case("scatter_elements_data_" + word, "ScatterElements", [normal(3, 4), normal(2, 2)], {1: data(1, 2, 1, -3).reshape(2, 2)}, axis=0, reduction=word)
    case("scatter_elements_add", "ScatterElements", [normal(3, 4), normal(2, 2)], {1: twice}, axis=0, reduction="add")


def make_folding_cases():
    case("col2im", "Col2Im", [normal(2, 12, 4)], {1: ints(4, 5), 2: ints(2, 3)}, pads=[1, 0, 0, 1], strides=[2, 2], dilations=[1, 1])


def make_resize_cases():
    empty = np.array([], np.float32)
    for name, attributes, target in (("cubic", {"mode": "cubic"}, (1, 1, 6, 5)), ("cubic_down", {"mode": "cubic", "antialias": 1}, (1, 1, 3, 2)),
                                     ("linear_down", {"mode": "linear", "antialias": 1}, (1, 1, 2, 5))):
        case("resize_" + name, "Resize", [normal(1, 1, 4, 5)], {1: empty, 2: empty, 3: ints(*target)}, **attributes)
    case("resize_volume", "Resize", [normal(1, 1, 2, 3, 2)], {1: empty, 2: empty, 3: ints(1, 1, 4, 3, 3)}, mode="linear")


def make_recurrent_cases():
    """`result`: which of the node's results is read."""
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        def operands(directions, steps=3, batch=2, inputs=3, width=2, states=True, batch_first=False):
            x, state = ((batch, steps), (batch, directions)) if batch_first else ((steps, batch), (directions, batch))
            shapes = [(*x, inputs), (directions, gates * width, inputs), (directions, gates * width, width), (directions, 2 * gates * width)]
            return [normal(*shape) for shape in shapes + ([(*state, width)] * (2 if op == "LSTM" else 1) if states else [])], {"hidden_size": width}
        name = op.lower()
        lengths = {4: np.array([3, 3], np.int32)}
        case(name, op, (made := operands(1))[0], lengths, **made[1])
        case(name + "_last", op, (made := operands(1))[0], lengths, **made[1], result=1)
        case(name + "_both", op, (made := operands(2))[0], lengths, **made[1], direction="bidirectional")
        case(name + "_both_last", op, (made := operands(2, states=False))[0], **made[1], direction="bidirectional", result=1)
        case(name + "_reverse", op, (made := operands(1, steps=1, states=False))[0], **made[1], direction="reverse")
        case(name + "_batch_first", op, (made := operands(2, batch_first=True))[0], lengths, **made[1], direction="bidirectional", layout=1)
        case(name + "_plain", op, (made := operands(1, states=False))[0][:3], **made[1])
    for name, result in (("gru_linear", 0), ("gru_linear_last", 1)):
        shapes = ((3, 2, 3), (2, 6, 3), (2, 6, 2), (2, 12))
        case(name, "GRU", [normal(*shape) for shape in shapes], hidden_size=2, linear_before_reset=1, direction="bidirectional", result=result)
    case("gru_linear_plain", "GRU", [normal(3, 2, 3), normal(1, 6, 3), normal(1, 6, 2)], hidden_size=2, linear_before_reset=1)
    case("lstm_cell", "LSTM", [normal(3, 2, 3), normal(2, 8, 3), normal(2, 8, 2), normal(2, 16)], hidden_size=2, direction="bidirectional", result=2)
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        shapes = [(3, 3, 2), (2, gates * 2, 2), (2, gates * 2, 2), (2, 2 * gates * 2), (2, 3, 2)] + ([(2, 3, 2)] if op == "LSTM" else [])
        for result, lengths in enumerate([np.array([2, 3, 1], np.int32), data(3, 1, 2), data(3, 1, 2)][:len(shapes) - 3]):
            case(f"{op.lower()}_lengths_{result}", op, [normal(*shape) for shape in shapes], {4: lengths}, hidden_size=2, direction="bidirectional", result=result)
        unusual = {"LSTM": ["HardSigmoid", "Softsign", "ScaledTanh"], "GRU": ["Sigmoid", "Elu"], "RNN": ["Affine"]}[op]
        numbers = {"activation_alpha": {"LSTM": [0.3, 1.2], "GRU": [0.8], "RNN": [0.7]}[op], "activation_beta": {"LSTM": [0.4, 0.7], "RNN": [0.1]}.get(op)}
        case(f"{op.lower()}_unrolled", op, [normal(*shape) for shape in ((2, 2, 2), (1, gates * 2, 2), (1, gates * 2, 2), (1, 2 * gates * 2))],
             {4: np.array([2, 1], np.int32)}, hidden_size=2, activations=unusual, direction="reverse", clip=0.9,
             **{key: values for key, values in numbers.items() if values})
    case("gru_linear_unrolled", "GRU", [normal(*shape) for shape in ((2, 2, 3), (1, 6, 3), (1, 6, 2), (1, 12))], hidden_size=2,
         linear_before_reset=1, activations=["Sigmoid", "LeakyRelu"])
    shapes = [(2, 2, 3), (1, 8, 3), (1, 8, 2), (1, 16), (1, 2, 2), (1, 2, 2), (1, 6)]
    for name, attributes in (("", {}), ("_cell", {"input_forget": 1, "result": 2})):
        case("lstm_peepholes" + name, "LSTM", [normal(*shape) for shape in shapes], {4: np.array([2, 1], np.int32)}, hidden_size=2, **attributes)
    case("rnn_relu", "RNN", [normal(3, 2, 3), normal(2, 2, 3), normal(2, 2, 2)], hidden_size=2, direction="bidirectional", activations=["Relu", "Tanh"])


def make_line_and_volume_cases():
    volume, small, line = (2, 2, 3, 4, 5), (1, 4, 2, 3, 2), (2, 4, 9)
    for name, shape, attributes in (("conv3d", (3, 2, 2, 3, 2), {"pads": [1, 0, 1, 0, 2, 0], "strides": [1, 2, 1]}),
                                    ("conv3d_dilations", (2, 2, 2, 1, 2), {"dilations": [2, 1, 3], "strides": [1, 1, 2]}),
                                    ("conv3d_groups", (4, 1, 2, 2, 2), {"group": 2, "auto_pad": "SAME_LOWER"})):
        case(name, "Conv", [normal(*volume), normal(*shape), normal(shape[0])], **attributes)
    for name, shape, attributes in (("conv1d", (3, 4, 3), {"pads": [2, 0], "dilations": [2]}), ("conv1d_groups", (8, 1, 2), {"group": 4, "strides": [2]})):
        case(name, "Conv", [normal(*line), normal(*shape), normal(shape[0])], **attributes)
    for name, shape, attributes in (("deconv3d", (4, 2, 2, 3, 2), {"strides": [2, 1, 2], "pads": [1, 1, 0, 0, 1, 0], "output_padding": [1, 0, 0]}),
                                    ("deconv3d_groups", (4, 2, 2, 1, 2), {"group": 2, "dilations": [2, 1, 1]})):
        case(name, "ConvTranspose", [normal(*small), normal(*shape), normal(shape[1] * attributes.get("group", 1))], **attributes)
    case("deconv1d", "ConvTranspose", [normal(2, 4, 5), normal(4, 1, 3), normal(2)], group=2, strides=[3], dilations=[2], output_padding=[2])
    for op, draw in (("MaxPool", spread), ("AveragePool", normal)):
        name = op.lower()
        case(name + "3d", op, [draw(*volume)], nhwc=True, kernel_shape=[2, 3, 2], strides=[1, 2, 2], pads=[1, 1, 0, 0, 1, 1])
        case(name + "3d_dilations", op, [draw(*volume)], kernel_shape=[2, 2, 3], dilations=[2, 1, 2])
        case(name + "1d", op, [draw(*line)], nhwc=True, kernel_shape=[3], strides=[2], pads=[1, 0])
        case("global" + name + "3d", "Global" + op, [draw(*volume)])
    case("averagepool_dilations", "AveragePool", [normal(*IMAGE)], kernel_shape=[2, 3], dilations=[3, 2], pads=[1, 0, 1, 2], count_include_pad=1)
    case("lppool_dilations", "LpPool", [spread(*IMAGE)], kernel_shape=[2, 2], dilations=[2, 3], p=2)
    case("batchnorm3d", "BatchNormalization", [normal(3, 2, 2, 3, 2), normal(2), normal(2)],
         {3: np.zeros(2, np.float32), 4: np.ones(2, np.float32)}, nhwc=True, training_mode=1)
    case("batchnorm1d", "BatchNormalization", [normal(3, 4, 5), normal(4), normal(4)],
         {3: np.zeros(4, np.float32), 4: np.ones(4, np.float32)}, nhwc=True, training_mode=1)
    case("lrn3d", "LRN", [normal(2, 5, 2, 3, 2)], size=3, alpha=0.4, beta=0.75, bias=1.5)
    case("mean3d", "ReduceMean", [normal(*volume)], {1: ints(2, 3, 4)}, nhwc=True, keepdims=0)
    case("add3d", "Add", [normal(*volume), normal(3, 1, 5)], nhwc=True)
    case("add1d", "Add", [normal(*line), normal(4, 9)], nhwc=True)
    empty = np.array([], np.float32)
    for mode in ("nearest", "linear"):
        case("resize3d_" + mode, "Resize", [normal(1, 2, 2, 3, 2)], {1: empty, 2: np.array([1, 1, 2, 1.5, 3], np.float32)}, mode=mode, nhwc=True)


def make_grid_cases():
    """Points beside the image, too. The nearest pixel does not change with the grid, which gets no gradient then."""
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (0, 1):
                grid, steps = 0.37 * spread(2, 2, 3, 2), mode == "nearest"
                case(f"grid_{mode}_{padding}_{corners}", "GridSample", [normal(2, 3, 3, 4)] + ([] if steps else [grid]),
                     {1: np.float32(grid)} if steps else {}, mode=mode, padding_mode=padding, align_corners=corners)
    case("grid_volume", "GridSample", [normal(1, 2, 2, 3, 4), 0.31 * spread(1, 2, 2, 1, 3)], mode="linear", padding_mode="reflection")


def make_loss_cases():
    labels, weights = ints(2, 0, 3, 3, 1, 0).reshape(2, 3), np.float32(random.random(4) + 0.5)
    for reduction in ("none", "sum", "mean"):
        case("entropy_" + reduction, "SoftmaxCrossEntropyLoss", [normal(2, 4, 3)], {1: labels}, reduction=reduction)
        case("entropy_weighted_" + reduction, "SoftmaxCrossEntropyLoss", [normal(2, 4, 3)], {1: labels, 2: weights}, reduction=reduction, ignore_index=3)
        case("likelihood_" + reduction, "NegativeLogLikelihoodLoss", [normal(2, 4, 3)], {1: labels, 2: weights}, reduction=reduction, ignore_index=0)
