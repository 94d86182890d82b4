# SPDX-License-Identifier: Apache-2.0
"""A model whose file holds its weights in fewer bits, for test/execute/stored-forms.test: each op that brings such weights, with scales and zero points in each way.

    stored_forms.py make FOLDER             writes FOLDER/model.onnx, adapters.safetensors and data/, and models that ONNX Runtime quantized, ort-*.onnx
    stored_forms.py compare FOLDER NAME     that program NAME trains adapters as PyTorch does on the floats that the file stands for: losses, gradients of the
                                            first step, adapters after the last, exports; that its weights are the file's numbers and no floats
    stored_forms.py same FOLDER A B         that two ONNX models give the same
"""
import pathlib
import sys

import numpy as np
import torch
from torch import nn

SAMPLES, TOKENS, BATCH, WORDS, WIDTH, STEPS, RATE, RANK, SCALE = 8, 5, 4, 67, 64, 4, 0.05, 2, 1.5
# Layers by name: inputs, outputs, and whether the matrix lies [outputs, inputs].
LAYERS = {"four": (64, 96, True), "eight": (96, 72, True), "loose": (72, 80, True), "blocks": (80, 72, False), "columns": (72, 64, False), "whole": (64, 65, True), "rows": (65, 67, True)}


def packed(codes):
    """Two numbers of 4 bits a byte, those of a row one after the other, each row from a byte on."""
    codes = np.concatenate([codes, np.zeros((len(codes), codes.shape[1] % 2), codes.dtype)], 1) & 15
    return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)


def spread(groups, block, axis, extent):
    return np.repeat(groups, block, axis).take(np.arange(extent), axis)


class Weights:
    """Initializers of the model, nodes that read them, and the floats that they stand for."""

    def __init__(self):
        self.rng, self.initializers, self.nodes, self.floats = np.random.default_rng(5), [], [], {}

    def number(self, shape, low, high, dtype):
        return self.rng.integers(low, high, shape).astype(dtype)

    def scales(self, shape):
        return (self.rng.uniform(0.02, 0.06, shape) * np.where(self.rng.random(shape) < 0.3, -1, 1)).astype(np.float32)

    def add(self, name, array, kind=None):
        import onnx
        if kind is None:
            self.initializers.append(onnx.numpy_helper.from_array(array, name))
        else:
            flat = array.reshape(1, -1)
            self.initializers.append(onnx.helper.make_tensor(name, kind, array.shape, packed(flat).tobytes(), raw=True))
        return name

    def keep(self, name, codes, zeros, scales):
        self.floats[name] = ((codes.astype(np.float32) - np.asarray(zeros, np.float32)) * scales).astype(np.float32)

    def node(self, op, inputs, output, domain="", **attributes):
        import onnx
        self.nodes.append(onnx.helper.make_node(op, inputs, [output], name=f"{output}_node", domain=domain, **attributes))
        return output

    def product(self, name, x, bits, block, zero=None, bias=None):
        """MatMulNBits with zero points that are absent, packed or floats."""
        inputs, outputs, _ = LAYERS[name]
        blocks = -(-inputs // block)
        codes = self.number((outputs, blocks * block), 0, 2**bits, np.uint8)
        scales = self.scales((outputs, blocks))
        zeros = np.full((outputs, blocks), 2**(bits - 1))
        operands = [x, self.add(f"{name}.weight_Q{bits}", (packed(codes) if bits == 4 else codes).reshape(outputs, blocks, -1)), self.add(f"{name}.scales", scales.reshape(-1))]
        if zero == "packed":
            zeros = self.number((outputs, blocks), 0, 2**bits, np.uint8)
            operands.append(self.add(f"{name}.zeros", (packed(zeros) if bits == 4 else zeros).reshape(-1)))
        elif zero == "floats":
            zeros = self.rng.uniform(0, 2**bits, (outputs, blocks)).astype(np.float32)
            operands.append(self.add(f"{name}.zeros", zeros.reshape(-1)))
        if bias is not None:
            operands += [""] * (5 - len(operands)) + [self.add(f"{name}.bias", bias)]
        self.keep(f"{name}.weight", codes[:, :inputs], spread(zeros, block, 1, inputs), spread(scales, block, 1, inputs))
        return self.node("MatMulNBits", operands, f"{name}_y", "com.microsoft", K=inputs, N=outputs, bits=bits, block_size=block)

    def dequantized(self, name, kind, shape_of_scales, zero, **attributes):
        """DequantizeLinear of the matrix of a layer, by hand."""
        from onnx import TensorProto as T
        inputs, outputs, turned = LAYERS[name]
        shape = (outputs, inputs) if turned else (inputs, outputs)
        low, high = {T.INT8: (-128, 128), T.UINT8: (0, 256), T.INT4: (-8, 8), T.UINT4: (0, 16)}[kind]
        dtype = np.int8 if low < 0 else np.uint8
        halves = kind if kind in (T.INT4, T.UINT4) else None
        codes, scales = self.number(shape, low, high, dtype), self.scales(shape_of_scales)
        operands = [self.add(f"{name}.weight_quantized", codes, halves), self.add(f"{name}.scale", scales)]
        zeros = self.number(shape_of_scales, low, high, dtype) if zero else np.zeros(shape_of_scales, dtype)
        if zero:
            operands.append(self.add(f"{name}.zero", zeros, halves))
        axis, block = attributes.get("axis", 1), attributes.get("block_size", 0)

        def whole(part):
            if block:
                return spread(part, block, axis, shape[axis])
            return part.reshape([-1 if i == axis else 1 for i in range(2)]) if part.ndim == 1 else part
        self.keep(f"{name}.weight", codes, whole(zeros), whole(scales))
        return self.node("DequantizeLinear", operands, f"{name}_w", **attributes)

    def table(self, ids):
        """GatherBlockQuantized of bytes with two numbers each."""
        block, blocks = 16, WIDTH // 16
        codes, zeros, scales = self.number((WORDS, WIDTH), 0, 16, np.uint8), self.number((WORDS, blocks), 0, 16, np.uint8), self.scales((WORDS, blocks))
        operands = [self.add("words.weight_Q4", packed(codes)), ids, self.add("words.scales", scales), self.add("words.zeros", packed(zeros))]
        self.keep("words.weight", codes, spread(zeros, block, 1, WIDTH), spread(scales, block, 1, WIDTH))
        return self.node("GatherBlockQuantized", operands, "words_y", "com.microsoft", gather_axis=0, quantize_axis=1, block_size=block, bits=4)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        for name, (inputs, outputs, turned) in LAYERS.items():
            setattr(self, name, nn.Linear(inputs, outputs, bias=name in ("eight", "rows")))

    def forward(self, ids):
        x = self.words(ids)
        for name in LAYERS:
            x = getattr(self, name)(x * 0.1)
            x = torch.tanh(x) if name != "rows" else x
        return x


def make(folder):
    import onnx
    from onnx import TensorProto as T
    from safetensors.torch import save_file
    weights = Weights()
    rng = weights.rng
    bias = {name: rng.normal(size=LAYERS[name][1]).astype(np.float32) for name in ("eight", "rows")}
    tenth = weights.add("tenth", np.array(0.1, np.float32))
    x = weights.table("input")
    for name in LAYERS:
        x = weights.node("Mul", [x, tenth], f"{name}_x")
        if name == "four":
            y = weights.product(name, x, 4, 16, "packed")
        elif name == "eight":
            y = weights.product(name, x, 8, 32, None, bias[name])
        elif name == "loose":
            y = weights.product(name, x, 4, 32, "floats")
        elif name == "blocks":
            y = weights.node("MatMul", [x, weights.dequantized(name, T.UINT4, (5, 72), True, axis=0, block_size=16)], f"{name}_y")
        elif name == "columns":
            y = weights.node("MatMul", [x, weights.dequantized(name, T.INT8, (64,), False, axis=-1 % 2)], f"{name}_y")
        elif name == "whole":
            turned = weights.node("Transpose", [weights.dequantized(name, T.UINT8, (), True)], f"{name}_t", perm=[1, 0])
            y = weights.node("MatMul", [x, turned], f"{name}_y")
        else:
            flat = weights.node("Reshape", [x, weights.add("flat", np.array([-1, 65]))], "rows_flat")
            product = weights.node("Gemm", [flat, weights.dequantized(name, T.INT4, (67,), True, axis=0), weights.add("rows.bias", bias[name])], "rows_gemm", transB=1)
            y = weights.node("Reshape", [product, weights.add("deep", np.array([-1, TOKENS, WORDS]))], "output")
        x = weights.node("Tanh", [y], f"{name}_tanh") if name != "rows" else y
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(weights.nodes, "stored", [info("input", T.INT64, ["batch", TOKENS])], [info("output", T.FLOAT, ["batch", TOKENS, WORDS])], weights.initializers)
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), str(folder / "model.onnx"))
    np.savez(folder / "floats.npz", **weights.floats, **{f"{name}.bias": value for name, value in bias.items()})
    torch.manual_seed(3)
    save_file({f"{name}.lora_{part}.weight": torch.randn((RANK, inputs) if part == "A" else (outputs, RANK)) * 0.2
               for name, (inputs, outputs, _) in LAYERS.items() for part in "AB"}, folder / "adapters.safetensors")
    (folder / "data").mkdir()
    np.save(folder / "data/input.npy", rng.integers(WORDS, size=(SAMPLES, TOKENS)))
    np.save(folder / "data/target.npy", rng.integers(WORDS, size=(SAMPLES, TOKENS)))
    quantize(folder)


def quantize(folder):
    """A model of two products as ONNX Runtime's own quantizer leaves it, in each of its ways."""
    import onnx
    from onnx import TensorProto as T
    from onnxruntime.quantization import matmul_nbits_quantizer as quantizers
    from onnxruntime.quantization.quant_utils import QuantFormat
    rng = np.random.default_rng(4)
    info, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    tensors = [onnx.numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name) for name, shape in (("first.weight", (72, 96)), ("second.weight", (96, 33)))]
    nodes = [node("MatMul", ["input", "first.weight"], ["a"], "one"), node("Tanh", ["a"], ["b"], "two"), node("MatMul", ["b", "second.weight"], ["output"], "three")]
    graph = onnx.helper.make_graph(nodes, "ort", [info("input", T.FLOAT, ["batch", 72])], [info("output", T.FLOAT, ["batch", 33])], tensors)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    (folder / "ort-data").mkdir()
    np.save(folder / "ort-data/input.npy", rng.normal(size=(8, 72)).astype(np.float32))
    np.save(folder / "ort-data/target.npy", rng.normal(size=(8, 33)).astype(np.float32))
    for name, bits, symmetric, form in (("op4", 4, False, QuantFormat.QOperator), ("op4s", 4, True, QuantFormat.QOperator), ("op8", 8, False, QuantFormat.QOperator), ("dq4", 4, False, QuantFormat.QDQ)):
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        config = quantizers.DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=symmetric, bits=bits, quant_format=form)
        quantizer = quantizers.MatMulNBitsQuantizer(copy, algo_config=config)
        quantizer.process()
        onnx.save(quantizer.model.model, str(folder / f"ort-{name}.onnx"))


def session(path):
    """ONNX Runtime without its optimizer, which computes products of weights in fewer bits with rounded activations."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def reference(folder):
    """The model with the file's floats, which ONNX Runtime's outputs agree with."""
    model, stored = Model(), dict(np.load(folder / "floats.npz"))
    for name, (_, _, turned) in LAYERS.items():
        stored[f"{name}.weight"] = stored[f"{name}.weight"] if turned else stored[f"{name}.weight"].T.copy()
    model.load_state_dict({key: torch.from_numpy(value) for key, value in stored.items()})
    ids = np.load(folder / "data/input.npy")
    outputs = session(folder / "model.onnx").run(None, {"input": ids})[0]
    np.testing.assert_allclose(model(torch.from_numpy(ids)).detach().numpy(), outputs, rtol=1e-4, atol=1e-5)
    return model


def compare(folder, name):
    from adapters import adapt, train_alike
    from safetensors import safe_open
    from safetensors.torch import load_file
    stored = dict(np.load(folder / "floats.npz"))
    with safe_open(folder / f"{name}.safetensors", "pt") as file:
        held = {key: file.get_tensor(key) for key in file.keys()}
    for key in stored:
        if key.endswith(".weight"):
            assert held[key].dtype == torch.uint8 and held[key].numel() < 2.3 * stored[key].size, key
    exported = load_file(folder / f"{name}-whole.safetensors")
    for key, value in stored.items():
        np.testing.assert_array_equal(exported[key].numpy(), value, err_msg=key)
    model = reference(folder)
    trained = adapt(model, load_file(folder / "adapters.safetensors"), LAYERS, RANK, SCALE)
    x = train_alike(folder, name, model, trained, BATCH, STEPS, RATE)
    tuned = load_file(folder / f"{name}-adapters.safetensors")
    for key, value in trained.items():
        np.testing.assert_allclose(tuned[key].numpy(), value.detach().numpy(), rtol=1e-4, atol=1e-6, err_msg=key)
    wanted = model.eval()(x[:BATCH]).detach().numpy()
    for path in (f"{name}-tuned.onnx", f"{name}-merged.onnx"):
        np.testing.assert_allclose(session(folder / path).run(None, {"input": x[:BATCH].numpy()})[0], wanted, rtol=1e-4, atol=1e-5, err_msg=path)


def same(folder, *paths):
    x = np.load(folder / "ort-data/input.npy")
    a, b = (session(folder / path).run(None, {"input": x})[0] for path in paths)
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(a).max())


if __name__ == "__main__":
    {"make": make, "compare": compare, "same": same}[sys.argv[1]](pathlib.Path(sys.argv[2]), *sys.argv[3:])
