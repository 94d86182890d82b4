// SPDX-License-Identifier: Apache-2.0
// Tensor data in files beside the model. Files are mapped once each, never copied; a location may not leave the model's
// folder, by its text or through links; if the model is a link itself, links may lead to where it really lies.
#ifndef SLUICE_FRONTEND_EXTERNAL_DATA_H
#define SLUICE_FRONTEND_EXTERNAL_DATA_H

#include "runtime/Result.h"
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace onnx {
class TensorProto;
}

namespace sluice {

/// A regular file mapped for reading.
class MappedFile {
public:
  /// Errors lack the path, which callers have in other words.
  static Result<MappedFile> open(const std::string &path);
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&) = delete;
  ~MappedFile();
  std::string_view bytes() const { return {data, size}; }

private:
  MappedFile(const char *data, size_t size) : data(data), size(size) {}
  const char *data;
  size_t size;
};

/// The files beside a model that hold its weights, each mapped once. Views of them live as long as this.
class ExternalData {
public:
  explicit ExternalData(std::string modelPath) : modelPath(std::move(modelPath)) {}
  /// The bytes of an external tensor that needs `wanted` of them. Errors lack the model's path.
  Result<std::string_view> find(const onnx::TensorProto &tensor, int64_t wanted);

private:
  Result<std::string_view> map(const std::string &location);

  std::string modelPath;
  std::map<std::string, MappedFile> files; // by location
};

} // namespace sluice

#endif
