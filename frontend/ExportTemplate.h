// SPDX-License-Identifier: Apache-2.0
// The ONNX file that a trained program patches its weights into: the model as it was read, in its inference form, every
// trained tensor and state an initializer with raw data, and the byte offsets of those data. So programs export without
// protobuf.
#ifndef SLUICE_FRONTEND_EXPORT_TEMPLATE_H
#define SLUICE_FRONTEND_EXPORT_TEMPLATE_H

#include "frontend/OnnxFile.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// An F32 tensor that training changes, under its ONNX name.
struct TrainedTensor {
  std::string name;
  std::vector<int64_t> shape;
};

/// A model as programs export it: they write trained weights over the bytes at these offsets.
struct ExportTemplate {
  std::string bytes;                      ///< the serialized model; empty where there is none
  std::map<std::string, int64_t> offsets; ///< name of a tensor of the file -> first byte of its raw data, 0 of no bytes
};

/// Outputs of Constant and ConstantOfShape nodes among `tensors` become initializers, of zeros where the file has no
/// bytes for them. Without bytes where the model would be larger than the 2 GiB that protobuf can write.
Result<ExportTemplate> exportTemplate(const OnnxFile &file, const std::vector<TrainedTensor> &tensors);

/// Of a program that exports no ONNX: which tensors are the file's.
ExportTemplate noTemplate(const OnnxFile &file);

} // namespace sluice

#endif
