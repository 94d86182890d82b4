// SPDX-License-Identifier: Apache-2.0
// What makes a model this one, whatever the values of its weights, its batch, its loss and its plan; and of which files
// it is.
#ifndef SLUICE_FRONTEND_IDENTITY_H
#define SLUICE_FRONTEND_IDENTITY_H

#include <string>
#include <vector>

namespace onnx {
class ModelProto;
}

namespace sluice {

/// 16 hexadecimal digits of a hash over names, types and shapes of the tensors and over the nodes: op, attributes, and
/// names of operands. A model that was exported after training has that of the model that was trained, which its
/// metadata hold, unless somebody changed it.
std::string modelIdentity(const onnx::ModelProto &model);

/// Says in an export which model was trained: `identity`.
void setIdentity(onnx::ModelProto &exported, const std::string &identity);

/// The model's file and the files of its external data.
std::vector<std::string> modelFiles(const std::string &path, const onnx::ModelProto &model);

} // namespace sluice

#endif
