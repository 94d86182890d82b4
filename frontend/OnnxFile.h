// SPDX-License-Identifier: Apache-2.0
// An ONNX file: read, checked, functions inlined, tensor data found (inside the file or beside it) and measured against
// the declared shapes. Opsets 7 to 24 are kept as they are: the importers of single ops read either form of what moved
// between attributes and inputs, so no conversion has to be trusted. No MLIR in here.
#ifndef SLUICE_FRONTEND_ONNX_FILE_H
#define SLUICE_FRONTEND_ONNX_FILE_H

#include "frontend/Limits.h"
#include "runtime/Result.h"
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace google::protobuf {
template <typename Element> class RepeatedPtrField;
}
namespace onnx {
class ModelProto;
class NodeProto;
class TensorProto;
} // namespace onnx

namespace sluice {

struct StoredMatrix;

/// A tensor of the file, in place: the bytes live as long as the OnnxFile (external ones are mapped, so reading them is
/// what costs).
struct FileTensor {
  int32_t elementType = 0; ///< onnx::TensorProto::DataType
  std::vector<int64_t> shape;
  std::string_view bytes;                               ///< row-major, little-endian; shape x element size of them
  std::shared_ptr<const StoredMatrix> stored = nullptr; ///< of a float32 matrix in fewer bits, which has no bytes
};

/// What wrote a file, as far as it decides what the file means.
enum class Exporter { PyTorch, TensorFlow, Other };

/// A model file, checked and made simpler; Flattening changes it for one import, restore() takes that back.
class OnnxFile {
public:
  /// Errors begin with the path. All weights are float32 afterwards, see FloatWidening.h and StoredForms.h.
  static Result<OnnxFile> read(const std::string &path, const Limits &limits = {});
  OnnxFile(OnnxFile &&);
  OnnxFile &operator=(OnnxFile &&);
  ~OnnxFile();

  const std::string &path() const;
  /// The checked model, local functions and unknown composite ops inlined; initializers keep their names.
  const onnx::ModelProto &model() const;
  /// Version of the default operator set.
  int64_t opset() const;
  Exporter exporter() const;
  /// An initializer, or the output of a Constant node, by name; null when there is none.
  const FileTensor *tensor(std::string_view name) const;
  /// Why nodes that bring weights in fewer bits stayed as they were, by their first outputs; see StoredForms.h.
  const std::map<std::string, std::string> &refused() const;

  // What Flattening makes of control flow, which depends on the shapes of one import.
  /// The graph as it was read.
  void restore();
  /// The graph gets the initializer under `name`. An error when its data do not fit its shape.
  Status addInitializer(const onnx::TensorProto &tensor, const std::string &name);
  /// tensor() knows the output of a Constant node, which stays where it is until replaceNodes.
  Status indexConstant(const onnx::NodeProto &node);
  /// `nodes` become the graph's; outputs of the graph that nothing makes then go.
  Status replaceNodes(google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes);

private:
  struct Contents;
  explicit OnnxFile(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents;
};

/// Elements x element size of a tensor, of 4 bits two to a byte; false when the product overflows, an extent is
/// negative or the type has no fixed size.
bool tensorBytes(int32_t elementType, const std::vector<int64_t> &shape, int64_t &bytes);

} // namespace sluice

#endif
