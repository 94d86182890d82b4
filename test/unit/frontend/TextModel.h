// SPDX-License-Identifier: Apache-2.0
// Models for tests, written in ONNX's text form, with initializers of a uniform value added, and files that live as
// long as a test.
#pragma once

#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace sluice {

inline onnx::ModelProto parseModel(const std::string &graph, int opset = 17) {
  std::string text = "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + "]>\n" + graph;
  onnx::ModelProto model;
  onnx::OnnxParser parser(text.c_str());
  auto status = parser.Parse(model);
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model;
}

/// Gives an operand or result of nodes, and of their bodies, a name that the text form does not know.
inline void rename(onnx::GraphProto &graph, const std::string &from, const std::string &to) {
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    for (auto *names : {node.mutable_input(), node.mutable_output()})
      for (std::string &name : *names)
        name = name == from ? to : name;
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        rename(*attribute.mutable_g(), from, to);
  }
}

/// The i-th element is value + i * step.
inline void addInitializer(onnx::ModelProto &model, const std::string &name, const std::vector<int64_t> &shape,
                           float value = 0.5f, float step = 0) {
  onnx::TensorProto *tensor = model.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  int64_t count = 1;
  for (int64_t extent : shape) {
    tensor->add_dims(extent);
    count *= extent;
  }
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(value + i * step);
  tensor->set_raw_data(std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float)));
}

/// A folder that disappears with the test.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-test-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(folder); }
  std::string write(const std::string &name, const std::string &bytes) const {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return (folder / name).string();
  }
  std::string write(const onnx::ModelProto &model) const { return write("model.onnx", model.SerializeAsString()); }
  std::filesystem::path path() const { return folder; }

private:
  std::filesystem::path folder;
};

} // namespace sluice
