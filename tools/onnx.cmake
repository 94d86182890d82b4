# SPDX-License-Identifier: Apache-2.0
# Included in ONNX's own project by tools/setup.sh: its headers are compiled once instead of in every file.
cmake_language(DEFER CALL target_precompile_headers onnx PRIVATE <onnx/onnx_pb.h> <onnx/defs/schema.h> <onnx/defs/function.h> <onnx/common/ir.h>)
