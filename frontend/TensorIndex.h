// SPDX-License-Identifier: Apache-2.0
// Where the bytes of every initializer and Constant output of a file are. Raw and typed data are used in place; only
// typed data whose protobuf field is wider than the element (float16 in int32_data) are repacked.
#ifndef SLUICE_FRONTEND_TENSOR_INDEX_H
#define SLUICE_FRONTEND_TENSOR_INDEX_H

#include "frontend/ExternalData.h"
#include "frontend/OnnxFile.h"
#include <deque>
#include <map>

namespace onnx {
class GraphProto;
class NodeProto;
class TensorProto;
} // namespace onnx

namespace sluice {

/// Views refer to the model's protobuf, which must live as long, or to files that this keeps mapped. An error names the
/// tensor; it lacks the path.
class TensorIndex {
public:
  explicit TensorIndex(const std::string &modelPath) : external(modelPath) {}
  /// All initializers of a graph. Data that do not fit their shape are an error.
  Status addInitializers(const onnx::GraphProto &graph);
  /// The outputs of all Constant nodes, or of one; other nodes are passed over.
  Status addConstants(const onnx::GraphProto &graph);
  Status addConstant(const onnx::NodeProto &node);
  /// A tensor under a name that need not be its own. One of the same name gives way.
  Status add(const std::string &name, const onnx::TensorProto &tensor);
  /// The same of one that no protobuf has.
  void put(const std::string &name, FileTensor tensor) { tensors[name] = std::move(tensor); }
  /// Before the protobuf of a tensor goes.
  void forget(const std::string &name) { tensors.erase(name); }
  /// Null where there is none, or of an element type of no fixed size.
  const FileTensor *find(std::string_view name) const;

private:
  Result<std::string_view> bytesOf(const onnx::TensorProto &tensor, int64_t wanted);
  void addScalars(const onnx::NodeProto &constant);
  std::string_view own(std::string bytes);

  ExternalData external;
  std::map<std::string, FileTensor, std::less<>> tensors;
  std::deque<std::string> owned;
};

} // namespace sluice

#endif
