// SPDX-License-Identifier: Apache-2.0
// Functions that a file defines: what would keep the ONNX library's inliner busy for ever, or crash it, is refused
// before it sees them.
#include "frontend/LocalFunctions.h"
#include "test/unit/frontend/ImportedModel.h"
#include <gmock/gmock.h>
#include <sys/resource.h>

namespace sluice {
namespace {

using testing::HasSubstr;

onnx::ModelProto callingModel(const std::string &function) {
  auto model = parseModel("g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }");
  auto *import = model.add_opset_import();
  import->set_domain("local");
  import->set_version(1);
  onnx::NodeProto *call = model.mutable_graph()->mutable_node(0);
  call->set_domain("local");
  call->set_op_type(function);
  return model;
}

/// y = calls of the others, one after the other.
void addFunction(onnx::ModelProto &model, const std::string &name, const std::vector<std::string> &calls,
                 const std::string &domain = "local") {
  onnx::FunctionProto *function = model.add_functions();
  function->set_domain(domain);
  function->set_name(name);
  function->add_input("a");
  function->add_output("b");
  for (const std::string &other : {std::string(), domain}) {
    auto *import = function->add_opset_import();
    import->set_domain(other);
    import->set_version(other.empty() ? 17 : 1);
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    onnx::NodeProto *node = function->add_node();
    bool standard = calls[i] == "Relu" || calls[i] == "If";
    node->set_domain(standard ? "" : domain);
    node->set_op_type(calls[i]);
    node->add_input(i == 0 ? "a" : "t" + std::to_string(i));
    node->add_output(i + 1 == calls.size() ? "b" : "t" + std::to_string(i + 1));
  }
}

std::string errorOf(const onnx::ModelProto &model, const Limits &limits = {}) {
  TemporaryFolder folder;
  Result<OnnxFile> file = OnnxFile::read(folder.write(model), limits);
  return file ? "" : file.error();
}

TEST(LocalFunctions, AreInlined) {
  auto model = callingModel("outer");
  addFunction(model, "outer", {"inner", "inner"});
  addFunction(model, "inner", {"Relu"});
  TemporaryFolder folder;
  auto file = OnnxFile::read(folder.write(model));
  ASSERT_TRUE(file) << file.error();
  EXPECT_EQ(file->model().graph().node_size(), 2);
}

/// The library infers types before it inlines a function of another opset: as many dimensions as a shape has elements.
TEST(LocalFunctions, MayFollowShapesWithManyExtents) {
  auto model = parseModel(R"(g (float[2, 3] x) => (float[2, 3] y) <int64[1] many = {30000000}> {
    zeros = ConstantOfShape(many)
    tall = ConstantOfShape(zeros)
    s = Relu(tall)
    y = Add(x, s)
  })");
  auto *import = model.add_opset_import();
  import->set_domain("local");
  import->set_version(1);
  model.mutable_graph()->mutable_node(2)->set_domain("local");
  addFunction(model, "Relu", {"Relu"});
  model.mutable_functions(0)->mutable_node(0)->set_domain("");
  model.mutable_functions(0)->mutable_opset_import(0)->set_version(15);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  errorOf(model); // whatever it is
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 500'000) << "KiB";
}

TEST(LocalFunctions, MayNotCallThemselves) {
  auto direct = callingModel("f");
  addFunction(direct, "f", {"f"});
  EXPECT_THAT(errorOf(direct), HasSubstr("function 'local.f' calls itself"));
  auto mutual = callingModel("f");
  addFunction(mutual, "f", {"Relu", "g"});
  addFunction(mutual, "g", {"f"});
  EXPECT_THAT(errorOf(mutual), HasSubstr("calls itself"));
  auto unused = callingModel("f");
  addFunction(unused, "f", {"Relu"});
  addFunction(unused, "g", {"g"});
  EXPECT_THAT(errorOf(unused), HasSubstr("function 'local.g' calls itself"));
}

TEST(LocalFunctions, MayNotCallThemselvesFromSubgraphs) {
  auto model = callingModel("f");
  addFunction(model, "f", {"If"});
  auto *branch = model.mutable_functions(0)->mutable_node(0)->add_attribute();
  branch->set_name("then_branch");
  branch->set_type(onnx::AttributeProto::GRAPH);
  onnx::NodeProto *call = branch->mutable_g()->add_node();
  call->set_domain("local");
  call->set_op_type("f");
  EXPECT_THAT(errorOf(model), HasSubstr("function 'local.f' calls itself"));
}

TEST(LocalFunctions, HaveNamesOfTheirOwn) {
  for (const char *domain : {"", "ai.onnx"}) {
    auto shadowing = callingModel("f");
    addFunction(shadowing, "Relu", {"Relu"}, domain);
    EXPECT_THAT(errorOf(shadowing), HasSubstr("is in the domain of the standard ops"));
  }
  auto twice = callingModel("f");
  addFunction(twice, "f", {"Relu"});
  addFunction(twice, "f", {"Relu"});
  EXPECT_THAT(errorOf(twice), HasSubstr("function 'local.f' is defined twice"));
}

TEST(LocalFunctions, NestOnlySoDeep) {
  for (bool calleesFirst : {false, true}) {
    auto deep = callingModel(calleesFirst ? "f19999" : "f0");
    for (int i = 0; i < 20000; ++i) {
      int callee = calleesFirst ? i - 1 : i + 1;
      bool last = callee < 0 || callee == 20000;
      addFunction(deep, "f" + std::to_string(i), {last ? "Relu" : "f" + std::to_string(callee)});
    }
    EXPECT_THAT(errorOf(deep), HasSubstr("nests calls more than 100 deep"));
  }
}

TEST(LocalFunctions, DoubleOnlySoOften) {
  auto model = callingModel("f0");
  for (int i = 0; i < 40; ++i)
    addFunction(model, "f" + std::to_string(i),
                std::vector<std::string>(2, i == 39 ? "Relu" : "f" + std::to_string(i + 1)));
  EXPECT_THAT(
      errorOf(model),
      HasSubstr("with its functions inlined the model has at least 2147483648 nodes, more than the limit of 200000; "
                "raise it with --limit inlined-nodes=N"));
}

TEST(LocalFunctions, CopyOnlySoManyBytes) {
  auto model = callingModel("f");
  addFunction(model, "f", std::vector<std::string>(300, "g"));
  addFunction(model, "g", {"Relu"});
  model.mutable_functions(1)->set_doc_string(std::string(8 << 20, 'd'));
  EXPECT_THAT(errorOf(model), HasSubstr("its functions, inlined, have at least"));
}

TEST(LocalFunctions, NodesAreCounted) {
  auto model = parseModel("g (float[2, 3] x) => (float[2, 3] y) { a = Relu(x) b = Relu(a) y = Relu(b) }");
  Limits limits;
  ASSERT_TRUE(parseLimit("nodes=3", limits));
  EXPECT_EQ(errorOf(model, limits), "");
  ASSERT_TRUE(parseLimit("nodes=2", limits));
  EXPECT_THAT(errorOf(model, limits),
              HasSubstr("the model has 3 nodes, more than the limit of 2; raise it with --limit nodes=N"));
}

/// The library would look at the whole graph for each of them.
TEST(Compositions, AreTakenApartOnlySoOften) {
  std::string chain = "g (float[2, 3] x) => (float[2, 3] y) { a0 = Relu(x) ";
  for (int i = 0; i < 2000; ++i)
    chain += "a" + std::to_string(i + 1) + " = RotaryEmbedding(a" + std::to_string(i) + ", x, x) ";
  EXPECT_THAT(errorOf(parseModel(chain + "y = Relu(a2000) }", 23)),
              HasSubstr("2000 of its 2002 nodes are compositions of others"));
}

TEST(Names, AreText) {
  for (const char *bad : {"w\xff", "w\xc3", "\xed\xa0\x80"}) {
    auto model = parseModel("g (float[2, 3] x) => (float[2, 3] y) { y = Add(x, w) }");
    addInitializer(model, bad, {3});
    model.mutable_graph()->mutable_node(0)->set_input(1, bad);
    EXPECT_THAT(errorOf(model), HasSubstr("has a name that is no UTF-8"));
  }
  auto model = parseModel("g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }");
  model.mutable_graph()->mutable_node(0)->set_name(std::string("a\0b", 3));
  EXPECT_THAT(errorOf(model), HasSubstr("holds a zero byte"));
  auto reserved = parseModel("g (float[2, 3] x) => (float[2, 3] y) { y = Add(x, __metadata__) }");
  addInitializer(reserved, "__metadata__", {3});
  EXPECT_THAT(errorOf(reserved), HasSubstr("that safetensors files reserve"));
}

} // namespace
} // namespace sluice
