#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs all of ONNX's backend node tests that a training program can be made of, and says which ones it cannot.

    node_tests.py NODE_TESTS --work DIR [--sluicec build/bin/sluicec] [--only REGEX] [--page docs/results/node-tests.md]

NODE_TESTS is the folder `node` of the ONNX library's test data. Every test whose op docs/reference/coverage.md names becomes a part of a program
as test/models/backend_ops.py builds them: its inputs are initializers, each of its outputs is compared with what is expected, element by element,
by the gradient of a bias. Truth values and integers are cast to float32. The first input of float32 is an activation, else the first of integers or
truth values, cast from one; a test that this refuses is folded whole, which the page counts apart. A test passes where all elements are within ONNX's own tolerance (1e-3 of
the value, plus 1e-7) or within 2e-6 of the largest value of the output. --only takes tests by name."""
import argparse
import collections
import datetime
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "test/models"))
import backend_ops  # noqa: E402
import compare  # noqa: E402

LARGEST = backend_ops.LARGEST
MOST = 100  # tests of one program
FOLDED = "folded when compiled"
STRUCTURES = "If Loop Optional OptionalGetElement OptionalHasElement Scan SequenceAt SequenceConstruct SequenceErase SequenceInsert SequenceMap SplitToSequence ConcatFromSequence".split()


class Skipped(Exception):
    """Why a test is not run."""


def claimed():
    """Ops of the coverage page: those with a row, and those that are folded or taken apart."""
    page = (root / "docs/reference/coverage.md").read_text()
    page = page[:page.index("## Not imported")]
    return set(re.findall(r"^\| `(\w+)` \|", page, re.M)) | set(re.findall(r"`(\w+)`", page[page.index("## Values known"):]))


def op_of(folder, model):
    """The op that a test is of: that of its only node, of the test that it is the expanded form of, or the first one that is taken apart."""
    if original := re.sub(r"_expanded(_ver\d+)?$", "", folder.name):
        if original != folder.name and (folder.parent / original).exists():
            return op_of(folder.parent / original, onnx.load(str(folder.parent / original / "model.onnx")))
    types = [node.op_type for node in model.graph.node]
    return types[0] if len(types) == 1 else next((t for t in types if t in STRUCTURES), types[0])


def read(path, value):
    """A tensor, or the list of those of a sequence; None for an empty optional."""
    kind = value.type.WhichOneof("value")
    data = path.read_bytes()
    if kind == "tensor_type":
        return array_of(TensorProto.FromString(data))
    if kind == "sequence_type":
        return [array_of(t) for t in onnx.SequenceProto.FromString(data).tensor_values]
    optional = onnx.OptionalProto.FromString(data)
    if optional.HasField("tensor_value"):
        return array_of(optional.tensor_value)
    if optional.HasField("sequence_value"):
        return [array_of(t) for t in optional.sequence_value.tensor_values]
    return None


def array_of(tensor):
    name = TensorProto.DataType.Name(tensor.data_type)
    if tensor.data_type == TensorProto.STRING:
        raise Skipped("strings")
    if name not in ("FLOAT", "BOOL", "INT64", "INT32", "UINT8", "INT8", "INT16", "UINT16", "UINT32", "UINT64"):
        raise Skipped("float16, float64, bfloat16, complex numbers and elements of 4 or 8 bits: only float32 models are trained")
    return numpy_helper.to_array(tensor)


def check_output(array):
    if array is None or isinstance(array, list) and not array:
        raise Skipped("the result is an empty optional or sequence")
    for part in array if isinstance(array, list) else [array]:
        if part.size == 0:
            raise Skipped("a result without elements")
        if part.size > LARGEST:
            raise Skipped(f"a result of more than {LARGEST} elements")
        if not np.isfinite(part.astype(np.float64)).all():
            raise Skipped("a result that is not finite, from which nothing has a distance")
        if part.dtype != np.float32 and np.abs(part.astype(np.float64)).max() > 2**24:
            raise Skipped("integers that float32 does not hold")


class Test:
    def __init__(self, folder):
        self.name, self.model = folder.name, onnx.load(str(folder / "model.onnx"))
        self.op = op_of(folder, self.model)
        self.opset = next((o.version for o in self.model.opset_import if not o.domain), 0)
        self.folder, self.activation = folder, -1

    def load(self):
        graph, data = self.model.graph, self.folder / "test_data_set_0"
        if any(node.domain not in ("", "ai.onnx") for node in graph.node):
            raise Skipped("ops of other domains")
        self.inputs = [read(data / f"input_{i}.pb", value) for i, value in enumerate(graph.input)]
        self.outputs = [read(data / f"output_{i}.pb", value) for i, value in enumerate(graph.output)]
        for output in self.outputs:
            check_output(output)
        self.activation = next((i for kinds in ("f", "biu") for i, array in enumerate(self.inputs)
                                if isinstance(array, np.ndarray) and array.dtype.kind in kinds), -1)
        if self.op == "Dropout" and len(self.inputs) == 3 and self.inputs[2] and self.inputs[1] > 0:
            raise Skipped("a result drawn at random, from other numbers than the reference's")

    def flags(self):
        """Statistics of the batch in forms for training, else those that run; nothing is dropped."""
        training = any(a.name == "training_mode" and a.i for node in self.model.graph.node for a in node.attribute)
        return ("--dropout=off",) if training else ("--dropout=off", "--batch-norm=frozen")


class Program(backend_ops.Joined):
    """Several tests in one graph."""

    def activation(self, value, result, name):
        """The same numbers as a value of the step."""
        self.nodes.append(helper.make_node("Add", [value, "zero"], [result], name))

    def enter(self, name, value, array, first):
        """The initializers of an input, as the graph reads it."""
        if array is None:
            self.nodes.append(helper.make_node("Optional", [], [value.name], type=value.type.optional_type.elem_type))
        elif isinstance(array, list):
            for i, part in enumerate(array):
                self.constant(f"{value.name}/{i}", part)
            parts = [f"{value.name}/{i}" for i in range(len(array))]
            sequence = ("SequenceConstruct", {}) if array else ("SequenceEmpty", {})
            self.nodes.append(helper.make_node(sequence[0], parts, [value.name], f"{name}/sequence"))
        elif first:
            cast = array.dtype != np.float32
            self.constant(f"{value.name}/value", array.astype(np.float32))
            self.activation(f"{value.name}/value", f"{value.name}/float" if cast else value.name, f"{name}/enter")
            if cast:
                self.nodes.append(helper.make_node("Cast", [f"{value.name}/float"], [value.name], f"{name}/cast", to=value.type.tensor_type.elem_type))
        else:
            self.constant(value.name, array)

    def leave(self, name, output, array, folded):
        """Compares an output with what is expected; a folded one is no value of the step yet."""
        if isinstance(array, list):
            for i, part in enumerate(array):
                self.constant(f"{output.name}/at{i}", np.array(i))
                self.nodes.append(helper.make_node("SequenceAt", [output.name, f"{output.name}/at{i}"], [f"{output.name}/{i}"], f"{name}/at{i}"))
                self.leave(f"{name}/{i}", onnx.ValueInfoProto(name=f"{output.name}/{i}"), part, folded)
            return
        value = output.name
        if array.dtype != np.float32:
            self.nodes.append(helper.make_node("Cast", [value], [f"{value}/float"], f"{name}/cast", to=TensorProto.FLOAT))
            value = f"{value}/float"
        if folded:
            self.activation(value, f"{value}/value", f"{name}/value")
            value = f"{value}/value"
        self.expect(name, value, array.astype(np.float32))

    def add_test(self, test):
        model = onnx.ModelProto()
        model.CopyFrom(test.model)
        graph = onnx.compose.add_prefix_graph(model.graph, f"{test.name}/")
        for i, (value, array) in enumerate(zip(graph.input, test.inputs)):
            self.enter(f"{test.name}/{i}", value, array, i == test.activation)
        self.initializers.extend(graph.initializer)
        self.nodes.extend(graph.node)
        self.names.append(test.name)
        for i, (value, array) in enumerate(zip(graph.output, test.outputs)):
            self.leave(f"{test.name}/{i}", value, array, test.activation < 0)

    def check(self, folder):
        """Largest errors over the tolerance of the outputs, by test."""
        errors, target = compare.load(folder / "g"), np.load(folder / "data/target.npy").reshape(-1)
        wrong, at = {}, 0
        for name in (v[:-len("/out")] for v in self.outputs):
            error = np.abs(errors[f"error/{name}"].reshape(-1).astype(np.float64) * (target.size / 2))
            expected = np.abs(target[at:at + error.size].astype(np.float64))
            at += error.size
            limit = np.maximum(1e-7 + 1e-3 * expected, 2e-6 * expected.max())
            if not np.all(error <= limit):
                wrong[name.split("/")[0]] = f"off by up to {np.max(error):.2g} where values are up to {expected.max():.2g}"
        return wrong


def sluicec(options, *words):
    done = subprocess.run([options.sluicec, *words], capture_output=True, text=True, env={**os.environ, "SLUICE_DEVICE": "host"})
    return None if done.returncode == 0 else done.stderr.strip() or f"exit status {done.returncode}"


def reason_of(error):
    """The reason of a refusal without the names of the test."""
    lines = error.splitlines()
    text = lines[1] if len(lines) > 1 and "cannot be imported" in lines[0] else lines[0]
    text = re.sub(r"^(sluicec: )?(note|error): ", "", text.strip())
    text = re.sub(r"^\S*model\.onnx: ", "", text)
    if match := re.match(r"node '.*?' \((\w+), opset \d+\)( and \d+ more)?: (.*)", text):
        text = f"{match[1]}: {match[3]}"
    return re.sub(r"'[^']*'", "'..'", re.sub(r"-?\d+", "N", text)).replace("|", "\\|")


def program_of(tests):
    """Of one opset. From version 4 of the format on initializers need not be inputs."""
    program = Program(tests[0].opset, max(4, *(test.model.ir_version for test in tests)))
    for test in tests:
        program.add_test(test)
    return program


def refusals(options, tests):
    """Of each test that does not become a program the reason; all of them are imported, many at once where they can be."""
    if not tests:
        return {}
    program = program_of(tests)
    folder = options.work / "alone"
    program.write(folder)
    error = sluicec(options, str(folder / "model.onnx"), "--loss=mse", "--emit=forward", "-o", str(folder / "forward.mlir"), *tests[0].flags())
    if not error:
        return {}
    if len(tests) == 1:
        return {tests[0].name: reason_of(error)}
    half = len(tests) // 2
    return refusals(options, tests[:half]) | refusals(options, tests[half:])


def refusals_or_folded(options, tests):
    """The same; what is refused for its integers as activations is tried as constants, without a float among its inputs."""
    refused = refusals(options, tests)
    again = [test for test in tests if test.name in refused and test.activation >= 0 and test.inputs[test.activation].dtype != np.float32]
    for test in again:
        test.activation = -1
    return {name: reason for name, reason in refused.items() if name not in {test.name for test in again}} | refusals(options, again)


def run_program(options, key, tests):
    program = program_of(tests)
    folder = options.work / "program"
    program.write(folder)
    error = sluicec(options, str(folder / "model.onnx"), "--loss=mse", "--strategy=keep", *key[1], "-o", str(folder / "run"), "--force")
    if error:
        return {test.name: reason_of(error) for test in tests}
    done = subprocess.run([folder / "run", "--data", folder / "data", "--steps", "1", "--lr", "0", "--dump-gradients", folder / "g", "--force"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return {test.name: f"the program ends with status {done.returncode}" for test in tests}
    return program.check(folder)


def page(results, commit):
    ops = collections.defaultdict(lambda: [0, 0, 0])
    reasons = collections.defaultdict(list)
    for name, (op, verdict, reason) in sorted(results.items()):
        ops[op][("passes", "wrong", "skipped").index(verdict)] += 1
        if verdict != "passes":
            reasons[verdict, reason].append((op, name))
    run = [sum(counts[i] for counts in ops.values()) for i in range(3)]
    folded = sum(reason == FOLDED for _, _, reason in results.values())
    lines = [f"""# ONNX's node tests

All tests of ONNX 1.19.1's backend suite (folder `node`, expanded forms among them) whose op [the coverage page](../reference/coverage.md) names, in training
programs of the host target: `tools/bench/node_tests.py NODE_TESTS --work DIR --page docs/results/node-tests.md`, commit {commit},
{datetime.date.today()}. Every output of a test counts; what passes is equal within ONNX's tolerance or 2e-6 of an output's largest value.

{run[0]} pass ({folded} of them folded when compiled, for nothing in them is an activation), {run[1]} do not, {run[2]} are skipped.

| op | pass | do not | skipped |
|---|---|---|---|"""]
    lines += [f"| `{op}` | {counts[0]} | {counts[1]} | {counts[2]} |" for op, counts in sorted(ops.items())]
    lines += ["", "## Why not", "", "| tests | ops | reason |", "|---|---|---|"]
    for (verdict, reason), tests in sorted(reasons.items(), key=lambda item: -len(item[1])):
        names = sorted({op for op, _ in tests})
        what = ", ".join(f"`{name}`" for name in names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        lines.append(f"| {len(tests)} | {what} | {'**wrong**: ' if verdict == 'wrong' else ''}{reason} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--sluicec", default=str(root / "build/bin/sluicec"))
    parser.add_argument("--only", default="")
    parser.add_argument("--page", type=pathlib.Path)
    options = parser.parse_args()
    ops, results, groups = claimed(), {}, collections.defaultdict(list)
    for folder in sorted(options.tests.iterdir()):
        if not re.search(options.only, folder.name):
            continue
        test = Test(folder)
        if test.op not in ops:
            continue
        try:
            test.load()
            groups[test.opset, test.flags()].append(test)
        except Skipped as reason:
            results[test.name] = test.op, "skipped", str(reason)
    for key, tests in sorted(groups.items()):
        for start in range(0, len(tests), MOST):
            part = tests[start:start + MOST]
            refused = refusals_or_folded(options, part)
            results.update({test.name: (test.op, "skipped", refused[test.name]) for test in part if test.name in refused})
            whole = [test for test in part if test.name not in refused]
            wrong = run_program(options, key, whole) if whole else {}
            results.update({test.name: (test.op, "wrong" if test.name in wrong else "passes", wrong.get(test.name, "" if test.activation >= 0 else FOLDED))
                            for test in whole})
            print(f"opset {key[0]}: {len(whole) - len(wrong)} pass, {len(wrong)} do not, {len(refused)} refused", flush=True)
            for name, reason in wrong.items():
                print(f"  {name}: {reason}", flush=True)
    if options.page:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=root).stdout.strip()
        options.page.write_text(page(results, commit))


if __name__ == "__main__":
    main()
