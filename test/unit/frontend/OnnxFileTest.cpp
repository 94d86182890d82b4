// SPDX-License-Identifier: Apache-2.0
// Files that are no models, or lie about themselves: always one error, never a crash. Damage is drawn from a fixed
// seed.
#include "frontend/OnnxFile.h"
#include "test/unit/frontend/TextModel.h"
#include <gmock/gmock.h>
#include <random>

namespace sluice {
namespace {

using testing::HasSubstr;

onnx::ModelProto linearModel() {
  auto model = parseModel("g (float[2, 3] x) => (float[2, 4] y) { y = MatMul(x, w) }");
  addInitializer(model, "w", {3, 4});
  return model;
}

std::string errorOf(const std::string &path) {
  Result<OnnxFile> file = OnnxFile::read(path);
  return file ? "" : file.error();
}

/// The one initializer moved to a file beside the model.
onnx::ModelProto withExternalData(const std::string &location, const std::string &offset = "",
                                  const std::string &length = "") {
  auto model = linearModel();
  onnx::TensorProto &tensor = *model.mutable_graph()->mutable_initializer(0);
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto add = [&](const char *key, const std::string &value) {
    auto *entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("location", location);
  if (!offset.empty())
    add("offset", offset);
  if (!length.empty())
    add("length", length);
  return model;
}

TEST(OnnxFile, ReadsInitializersInPlace) {
  TemporaryFolder folder;
  auto file = OnnxFile::read(folder.write(linearModel()));
  ASSERT_TRUE(file) << file.error();
  const FileTensor *weight = file->tensor("w");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->shape, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(weight->bytes.size(), 48u);
  EXPECT_EQ(file->tensor("x"), nullptr);
  EXPECT_EQ(file->opset(), 17);
}

TEST(OnnxFile, NamesWhatCannotBeOpened) {
  TemporaryFolder folder;
  EXPECT_THAT(errorOf(folder.path() / "none.onnx"), HasSubstr("none.onnx: cannot open: No such file"));
  EXPECT_THAT(errorOf(folder.path()), HasSubstr("not a regular file"));
  EXPECT_THAT(errorOf(folder.write("empty.onnx", "")), HasSubstr("file is empty"));
}

TEST(OnnxFile, SurvivesTruncation) {
  TemporaryFolder folder;
  std::string bytes = linearModel().SerializeAsString();
  for (size_t size = 1; size < bytes.size(); ++size)
    EXPECT_NE(errorOf(folder.write("cut.onnx", bytes.substr(0, size))), "") << size;
}

TEST(OnnxFile, SurvivesRandomBytes) {
  TemporaryFolder folder;
  std::mt19937 random(1);
  std::string bytes = linearModel().SerializeAsString();
  for (int i = 0; i < 500; ++i) {
    std::string damaged = bytes;
    for (int j = 0; j < 3; ++j)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    (void)OnnxFile::read(folder.write("damaged.onnx", damaged));
    std::string noise(1 + random() % 300, 0);
    for (char &c : noise)
      c = static_cast<char>(random());
    EXPECT_NE(errorOf(folder.write("noise.onnx", noise)), "");
  }
}

TEST(OnnxFile, RefusesOpsetsOutsideItsRange) {
  TemporaryFolder folder;
  for (int opset : {1, 6, 25, 99}) {
    auto model = linearModel();
    model.mutable_opset_import(0)->set_version(opset);
    EXPECT_THAT(errorOf(folder.write(model)), HasSubstr("opset " + std::to_string(opset) + " is not among 7 to 24"));
  }
}

TEST(OnnxFile, NamesNodesThatOnnxHasNoOpFor) {
  TemporaryFolder folder;
  auto fused =
      parseModel("g (float[2, 3] x) => (float[2, 3] y) { a = Relu(x) y = SimplifiedLayerNormalization(a, a) }");
  EXPECT_THAT(
      errorOf(folder.write(fused)),
      HasSubstr("node 'y' (SimplifiedLayerNormalization, opset 17): ONNX has no op of this name in this opset; "
                "ONNX Runtime's optimizer fuses nodes to such ops; take the file from before it was optimized, or "
                "optimize with level basic alone"));
}

TEST(OnnxFile, RefusesCyclesAndUndefinedNames) {
  TemporaryFolder folder;
  auto cycle = parseModel("g (float[2] x) => (float[2] y) { a = Add(x, b) b = Relu(a) y = Relu(b) }");
  EXPECT_THAT(errorOf(folder.write(cycle)), HasSubstr("topologically sorted"));
  auto undefined = parseModel("g (float[2] x) => (float[2] y) { y = Add(x, nothing) }");
  EXPECT_THAT(errorOf(folder.write(undefined)), HasSubstr("nothing"));
  auto output = parseModel("g (float[2] x) => (float[2] z) { y = Relu(x) }");
  EXPECT_THAT(errorOf(folder.write(output)), HasSubstr("'z' is not an output of any node"));
}

TEST(OnnxFile, ComparesDataWithShapes) {
  TemporaryFolder folder;
  auto model = linearModel();
  model.mutable_graph()->mutable_initializer(0)->mutable_raw_data()->pop_back();
  EXPECT_THAT(errorOf(folder.write(model)),
              HasSubstr("tensor 'w': data has 47 bytes but shape [3, 4] of float32 needs 48"));
  model = linearModel();
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, int64_t(1) << 62);
  EXPECT_THAT(errorOf(folder.write(model)), HasSubstr("overflows"));
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, -3);
  EXPECT_THAT(errorOf(folder.write(model)), HasSubstr("negative"));
}

TEST(OnnxFile, MapsExternalData) {
  TemporaryFolder folder;
  folder.write("w.bin", std::string(64, 'x'));
  auto file = OnnxFile::read(folder.write(withExternalData("w.bin", "16", "48")));
  ASSERT_TRUE(file) << file.error();
  EXPECT_EQ(file->tensor("w")->bytes, std::string(48, 'x'));
}

TEST(OnnxFile, RefusesExternalDataThatIsMissingOrShort) {
  TemporaryFolder folder;
  EXPECT_THAT(errorOf(folder.write(withExternalData("w.bin"))), HasSubstr("w.bin' does not exist"));
  folder.write("w.bin", std::string(64, 'x'));
  EXPECT_THAT(errorOf(folder.write(withExternalData("w.bin", "17", "48"))), HasSubstr("'w.bin' has 64"));
  EXPECT_THAT(errorOf(folder.write(withExternalData("w.bin", "0", "44"))),
              HasSubstr("length is 44 bytes but the shape needs 48"));
  EXPECT_THAT(errorOf(folder.write(withExternalData("w.bin", "9223372036854775807", "48"))), HasSubstr("has 64"));
  EXPECT_THAT(errorOf(folder.write(withExternalData("w.bin", "-1"))), HasSubstr("'-1' is not a number of bytes"));
  EXPECT_THAT(errorOf(folder.write(withExternalData("w.bin", "99999999999999999999"))),
              HasSubstr("is not a number of bytes"));
}

TEST(OnnxFile, KeepsExternalDataInsideTheFolder) {
  TemporaryFolder folder, elsewhere;
  std::string secret = elsewhere.write("secret.bin", std::string(48, 's'));
  EXPECT_THAT(errorOf(folder.write(withExternalData("../secret.bin"))), HasSubstr("leaves the model's folder"));
  EXPECT_THAT(errorOf(folder.write(withExternalData(secret))), HasSubstr("must be a path relative to the model"));
  EXPECT_THAT(errorOf(folder.write(withExternalData(""))), HasSubstr("must be a path relative to the model"));
  std::filesystem::create_symlink(secret, folder.path() / "link.bin");
  EXPECT_THAT(errorOf(folder.write(withExternalData("link.bin"))), HasSubstr("through a link"));
  // Nor where the model is a link, too, but to another folder.
  const std::string linked = (folder.path() / "linked.onnx").string();
  std::filesystem::create_symlink(folder.write(withExternalData("link.bin")), linked);
  EXPECT_THAT(errorOf(linked), HasSubstr("through a link"));
  std::filesystem::create_directory_symlink(elsewhere.path(), folder.path() / "sub");
  EXPECT_THAT(errorOf(folder.write(withExternalData("sub/secret.bin"))), HasSubstr("through a link"));
}

// snapshots/REVISION/NAME are links to blobs/HASH, as caches of model hubs have them.
TEST(OnnxFile, FollowsLinksIntoTheFolderThatTheModelIsALinkTo) {
  TemporaryFolder cache;
  std::filesystem::create_directories(cache.path() / "snapshots/1");
  std::filesystem::create_directory(cache.path() / "blobs");
  std::filesystem::rename(cache.write(withExternalData("w.bin")), cache.path() / "blobs/model");
  std::filesystem::rename(cache.write("w.bin", std::string(48, 'x')), cache.path() / "blobs/data");
  const std::filesystem::path model = cache.path() / "snapshots/1/model.onnx",
                              data = cache.path() / "snapshots/1/w.bin";
  std::filesystem::create_symlink("../../blobs/model", model);
  std::filesystem::create_symlink("../../blobs/data", data);
  auto file = OnnxFile::read(model.string());
  ASSERT_TRUE(file) << file.error();
  EXPECT_EQ(file->tensor("w")->bytes, std::string(48, 'x'));
  std::filesystem::remove(data);
  std::filesystem::create_symlink("../../" + std::string("w.bin"), data);
  cache.write("w.bin", std::string(48, 'x'));
  EXPECT_THAT(errorOf(model.string()), HasSubstr("and not to where the model is a link to"));
}

TEST(OnnxFile, ErrorsAreOneLine) {
  TemporaryFolder folder;
  auto model = parseModel("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  model.mutable_graph()->mutable_node(0)->set_op_type("Rectify");
  std::string error = errorOf(folder.write(model));
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  EXPECT_THAT(error, HasSubstr("Rectify"));
}

} // namespace
} // namespace sluice
