#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks single ops against the reference outputs of ONNX's backend node tests, many in one program.

    backend_ops.py make NODE_TESTS OUT SLUICEC     writes OUT/opsetK and OUT/evaluate-opsetK: model.onnx and data/, and OUT/refused.txt
    backend_ops.py check OUT/opsetK GRADIENTS      names the tests whose output in a training step is wrong
    backend_ops.py check-evaluate OUT/evaluate-opsetK LOG      whether the outputs of an evaluation are right, by their loss alone

Every test's inputs become initializers (the first float one plus a zero input, so that the graph depends on an input), its output is flattened
and gets a zero bias named after the test; all are joined and compared with the expected values by a mean squared error. The gradient of
a bias is then 2/n times the error of that test's output, element by element. An evaluation has no gradients: its loss, the mean squared
error, must be next to nothing beside the mean square of what is expected. BatchNormalization takes the batch's statistics in a step and
the running ones in an evaluation, whatever its form: each form is in the models where it is right."""
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import compare

OPS = """Abs Acos Acosh Add Asin Asinh Atan Atanh AveragePool BatchNormalization Ceil Celu Clip Col2Im Concat Conv ConvTranspose Cos Cosh CumSum
DFT DepthToSpace Div Einsum Elu Erf Exp Expand Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalMaxPool GridSample
GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization LRN LSTM LayerNormalization LeakyRelu Log LogSoftmax LpNormalization
LpPool MatMul Max MaxPool Mean MeanVarianceNormalization Min Mish Mod Mul Neg NegativeLogLikelihoodLoss PRelu Pad Pow RMSNormalization RNN Reciprocal
ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize Round
STFT ReverseSequence ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split Sqrt Squeeze
Sub Sum Swish Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze Upsample Where""".split()
RECURRENT = ("GRU", "LSTM", "RNN")
LARGEST = 200_000


def read_tensor(path):
    tensor = TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def load(folder):
    """Model, inputs and expected results by name of one test (of recurrent layers all of them, else the first), or None when it is not about one float
    op of ours."""
    model = onnx.load(str(folder / "model.onnx"))
    if len(model.graph.node) != 1 or model.graph.node[0].op_type not in OPS:
        return None
    if not all(value.type.HasField("tensor_type") for value in [*model.graph.input, *model.graph.output]):
        return None
    data = folder / "test_data_set_0"
    inputs = [read_tensor(data / f"input_{i}.pb") for i in range(len(model.graph.input))]
    count = len(model.graph.output) if model.graph.node[0].op_type in RECURRENT else 1
    outputs = {value.name: read_tensor(data / f"output_{i}.pb") for i, value in enumerate(model.graph.output[:count])}
    if not any(array.dtype == np.float32 for array in inputs):
        return None
    if any(output.dtype != np.float32 or not 0 < output.size <= LARGEST for output in outputs.values()):
        return None
    if not all(np.isfinite(output).all() for output in outputs.values()):  # a norm of 0, by which ONNX divides
        return None
    return model, inputs, outputs


def trains(model):
    """Whether a training step gives the expected output, and whether an evaluation does."""
    node = model.graph.node[0]
    if node.op_type != "BatchNormalization":
        return True, True
    training = any(a.name == "training_mode" and a.i for a in node.attribute)
    return training, not training


class Joined:
    """Several tests of one opset in one graph."""
    def __init__(self, opset, ir_version):
        self.opset, self.ir_version = opset, ir_version
        self.nodes, self.initializers, self.outputs, self.expected, self.names = [], [], [], [], []
        self.constant("flat", np.array([1, -1], np.int64))

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))

    def add(self, name, model, inputs, outputs):
        node = onnx.NodeProto()
        node.CopyFrom(model.graph.node[0])
        rename, first = {}, next(i for i, array in enumerate(inputs) if array.dtype == np.float32)
        for i, (value, array) in enumerate(zip(model.graph.input, inputs)):
            rename[value.name] = f"{name}/{value.name}"
            self.constant(rename[value.name], array)
            if i == first:
                self.nodes.append(helper.make_node("Add", [rename[value.name], "zero"], [f"{name}/in"], f"{name}/enter"))
                rename[value.name] = f"{name}/in"
        node.input[:] = [rename.get(v, v) for v in node.input]
        node.output[:] = [f"{name}/{v}" if v else v for v in node.output]
        node.name = name
        self.nodes.append(node)
        self.names.append(name)
        for i, (value, output) in enumerate(outputs.items()):
            self.expect(name if i == 0 else f"{name}/{value}", f"{name}/{value}", output)

    def expect(self, name, value, output):
        self.nodes.append(helper.make_node("Reshape", [value, "flat"], [f"{name}/flat"], f"{name}/flatten"))
        self.constant(f"error/{name}", np.zeros((1, output.size), np.float32))
        self.nodes.append(helper.make_node("Add", [f"{name}/flat", f"error/{name}"], [f"{name}/out"], f"{name}/leave"))
        self.outputs.append(f"{name}/out")
        self.expected.append(output.reshape(1, -1))

    def build(self):
        total = sum(e.shape[1] for e in self.expected)
        join = helper.make_node("Concat", self.outputs, ["y"], "join", axis=1)
        graph = helper.make_graph(self.nodes + [join], "ops", [helper.make_tensor_value_info("zero", TensorProto.FLOAT, [1])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, total])], self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=self.ir_version)

    def write(self, folder):
        (folder / "data").mkdir(parents=True, exist_ok=True)
        onnx.save(self.build(), str(folder / "model.onnx"))
        np.save(folder / "data" / "input.npy", np.zeros((1,), np.float32))
        np.save(folder / "data" / "target.npy", np.concatenate(self.expected, 1))


def refusal(sluicec, folder):
    command = [sluicec, str(folder / "model.onnx"), "--loss=mse", "--emit=forward", "-o", str(folder / "forward.mlir")]
    done = subprocess.run(command, capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr.strip() or f"exit status {done.returncode}"


def make(tests, out, sluicec):
    groups, refused = {}, []
    for folder in sorted(pathlib.Path(tests).iterdir()):
        loaded = load(folder)
        if not loaded:
            continue
        model = loaded[0]
        opset = next(o.version for o in model.opset_import if not o.domain)
        alone = Joined(opset, model.ir_version)
        alone.add(folder.name, *loaded)
        alone.write(out / "alone")
        reason = refusal(sluicec, out / "alone")
        if reason:
            refused.append(f"{folder.name}: {reason}")
            continue
        for wanted, prefix in zip(trains(model), ("", "evaluate-")):
            if wanted:
                groups.setdefault(f"{prefix}opset{opset}", Joined(opset, model.ir_version)).add(folder.name, *loaded)
    for name, group in groups.items():
        group.write(out / name)
    (out / "refused.txt").write_text("\n".join(refused) + "\n")
    print(f"backend: {len({name for g in groups.values() for name in g.names})} tests in {len(groups)} programs, {len(refused)} refused")


def check(folder, gradients):
    errors = compare.load(gradients)
    target = np.load(folder / "data" / "target.npy")
    model = onnx.load(str(folder / "model.onnx"))
    join = next(n for n in model.graph.node if n.name == "join")
    at, wrong = 0, 0
    for name in (v[:-len("/out")] for v in join.input):
        error = errors[f"error/{name}"].reshape(-1) * (target.size / 2)
        expected = target.reshape(-1)[at:at + error.size]
        at += error.size
        worst = np.max(np.abs(error) / (1e-4 + 1e-4 * np.abs(expected)))
        if not worst <= 1:
            wrong += 1
            print(f"backend: {name}: largest error {np.max(np.abs(error)):.3g}, expected values up to {np.max(np.abs(expected)):.3g}")
    print(f"backend: {len(join.input) - wrong} of {len(join.input)} right in {folder.name}")
    sys.exit(1 if wrong else 0)


def check_evaluate(folder, log):
    target = np.load(folder / "data" / "target.npy")
    scale = float(np.mean(np.square(target, dtype=np.float64)))
    with open(log) as file:
        loss = next(e["loss"] for e in map(json.loads, file) if e["event"] == "evaluate")
    print(f"backend: {folder.name}: mean squared error {loss:.3g} of values with mean square {scale:.3g}")
    sys.exit(0 if loss <= 1e-10 * scale else 1)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4])
    elif sys.argv[1] == "check-evaluate":
        check_evaluate(pathlib.Path(sys.argv[2]), sys.argv[3])
    else:
        check(pathlib.Path(sys.argv[2]), sys.argv[3])
