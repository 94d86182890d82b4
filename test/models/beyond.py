# SPDX-License-Identifier: Apache-2.0
"""A model of more than 2 GiB, most of which is a table of zeros without blocks on the disk: beyond.py FOLDER writes model.onnx, table.bin and data/."""
import pathlib
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

WORDS, WIDTH, TOKENS, CLASSES = 2**23 + 8, 64, 4, 5


def main(folder):
    random = numpy.random.default_rng(1)
    table = TensorProto(name="table", data_type=TensorProto.FLOAT, dims=[WORDS, WIDTH], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "table.bin"), ("offset", "0"), ("length", str(WORDS * WIDTH * 4))):
        table.external_data.add(key=key, value=value)
    with open(folder / "table.bin", "wb") as file:
        file.truncate(WORDS * WIDTH * 4)
    matrix = [numpy_helper.from_array(random.normal(size=size).astype(numpy.float32), name)
              for name, size in (("middle", (TOKENS * WIDTH, WIDTH)), ("bias", (WIDTH,)), ("head", (WIDTH, CLASSES)))]
    shape = numpy_helper.from_array(numpy.array([0, TOKENS * WIDTH]), "shape")
    nodes = [helper.make_node("Gather", ["table", "input"], ["rows"]), helper.make_node("Reshape", ["rows", "shape"], ["flat"]),
             helper.make_node("Gemm", ["flat", "middle", "bias"], ["mixed"]), helper.make_node("Tanh", ["mixed"], ["bent"]), helper.make_node("MatMul", ["bent", "head"], ["scores"])]
    graph = helper.make_graph(nodes, "beyond", [helper.make_tensor_value_info("input", TensorProto.INT64, ["batch", TOKENS])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", CLASSES])], [table, *matrix, shape])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")
    (folder / "data").mkdir(exist_ok=True)
    numpy.save(folder / "data/input.npy", random.integers(WORDS, size=(8, TOKENS)))
    numpy.save(folder / "data/target.npy", random.integers(CLASSES, size=8))


main(pathlib.Path(sys.argv[1]))
