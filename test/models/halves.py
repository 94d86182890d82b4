#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a model with floats of 16 bits for those of 32: initializers, inputs and outputs.

    test/models/halves.py MODEL.onnx HALVES.onnx"""
import sys

import numpy
import onnx
from onnx import numpy_helper


def main():
    model = onnx.load(sys.argv[1])
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(numpy.float16), tensor.name))
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, sys.argv[2])


main()
