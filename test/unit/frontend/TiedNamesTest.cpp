// SPDX-License-Identifier: Apache-2.0
// Which names a file lets shared parameters have besides their own.
#include "frontend/TiedNames.h"
#include "frontend/OnnxGraph.h"
#include "test/unit/frontend/ImportedModel.h"

namespace sluice {
namespace {

using Names = std::map<std::string, std::vector<std::string>>;

constexpr char text[] = R"(g (int64[2, 4] ids) => (float[2, 4, 10] y) {
    e = Gather(table, ids)
    t1 = Transpose<perm = [1, 0]>(w)
    a = MatMul(e, t1)
    t2 = Transpose<perm = [1, 0]>(w)
    b = MatMul(a, t2)
    t3 = Transpose<perm = [1, 0]>(table)
    y = MatMul(b, t3)
  })";

class TiedNames : public testing::Test {
protected:
  TiedNames() : model(parseModel(text)) {
    addInitializer(model, "wte.weight", {10, 6}, 0, 0.01f);
    addInitializer(model, "blocks.0.l.weight", {6, 6}, 0, 0.01f);
    rename(*model.mutable_graph(), "table", "wte.weight");
    rename(*model.mutable_graph(), "w", "blocks.0.l.weight");
  }
  /// Of the nodes in order: the module, and with `classes` its class as torch.export has it, past torch.nn.modules
  /// unless it begins with a colon.
  Names found(const std::vector<std::string> &modules, const std::vector<std::string> &classes = {}) {
    for (int i = 0; i < model.graph().node_size(); ++i) {
      onnx::NodeProto &node = *model.mutable_graph()->mutable_node(i);
      node.clear_metadata_props();
      node.set_name(classes.empty() ? modules[i] + "/" + node.op_type() : "node_" + std::to_string(i));
      if (classes.empty())
        continue;
      auto add = [&](const char *key, const std::string &value) {
        auto &entry = *node.add_metadata_props();
        entry.set_key(key);
        entry.set_value(value);
      };
      add("pkg.torch.onnx.name_scopes", "['', '" + modules[i] + "', 'linear']");
      const std::string type = classes[i][0] == ':' ? classes[i].substr(1) : "torch.nn.modules." + classes[i],
                        op = node.op_type() == "Gather" ? "embedding" : "linear";
      add("pkg.torch.onnx.class_hierarchy", "['M', '" + type + "', 'aten." + op + ".default']");
    }
    TemporaryFolder folder;
    auto file = OnnxFile::read(folder.write(model));
    EXPECT_TRUE(file) << file.error();
    auto graph = OnnxGraph::build(*file, {});
    EXPECT_TRUE(graph) << graph.error();
    return tiedNames(file->model().graph(), *graph);
  }

  onnx::ModelProto model;
};

TEST_F(TiedNames, FollowFromTheModulesOfTheLegacyExporter) {
  // A container's name stands before its module's.
  EXPECT_EQ(found({"/wte", "/blocks/blocks.0/l", "/blocks/blocks.0/l", "/blocks/blocks.1/l", "/blocks/blocks.1/l",
                   "/lm_head", "/lm_head"}),
            (Names{{"blocks.0.l.weight", {"blocks.1.l.weight"}}, {"wte.weight", {"lm_head.weight"}}}));
}

TEST_F(TiedNames, AreNoneOfWhatOnlyReadsAParameter) {
  // A module that is used twice, and one that is no layer of its own.
  EXPECT_EQ(found({"/wte", "/blocks.0/l", "/blocks.0/l", "/blocks.0/l_1", "/blocks.0/l_1", "", ""}), Names{});
  EXPECT_EQ(found({"/wte", "/blocks.0/l", "/blocks.0/l", "/blocks.0", "/blocks.0", "/head", "/head/out"}), Names{});
}

TEST_F(TiedNames, AreNoneOfModulesThatAreCalledPastTheOnesAroundThem) {
  // blocks.0.l is called by the model itself: its nodes stand in /l, a second call in /l_1.
  EXPECT_EQ(found({"/wte", "/l", "/l", "/l_1", "/l_1", "", ""}), Names{});
  EXPECT_EQ(found({"/wte", "/blocks/l", "/blocks/l", "/blocks.0/l", "/blocks.0/l", "", ""}), Names{});
  // Another last name is another module.
  EXPECT_EQ(found({"/wte", "/blocks.0/l", "/blocks.0/l", "/k", "/k", "", ""}),
            (Names{{"blocks.0.l.weight", {"k.weight"}}}));
}

/// With one name alone an expression for both parts of a tied pair would leave it out without a word.
TEST_F(TiedNames, AreMeantByFreezeAndTrain) {
  found({"/wte", "/blocks/blocks.0/l", "/blocks/blocks.0/l", "/blocks/blocks.1/l", "/blocks/blocks.1/l", "/lm_head",
         "/lm_head"});
  TrainingSpec spec;
  spec.freeze = {"lm_head[.]weight"};
  ImportedModel frozen(model, spec);
  ASSERT_TRUE(frozen.module) << frozen.error;
  EXPECT_EQ(frozen.variable("wte.weight").getRole(), train::Role::Constant);
  EXPECT_EQ(frozen.variable("blocks.0.l.weight").getRole(), train::Role::Parameter);
  spec.freeze = {".*"};
  spec.train = {"blocks[.]1[.].*"};
  ImportedModel trained(model, spec);
  ASSERT_TRUE(trained.module) << trained.error;
  EXPECT_EQ(trained.variable("blocks.0.l.weight").getRole(), train::Role::Parameter);
}

/// PEFT calls base_model.model itself, so that no path has base_model.
TEST_F(TiedNames, BeginAsAllParametersDo) {
  const auto asIn = [this](const std::string &prefix, const std::string &table) {
    for (auto &initializer : *model.mutable_graph()->mutable_initializer()) {
      const std::string name = initializer.dims(0) == 10 ? table : prefix + "model.blocks.0.l.weight";
      rename(*model.mutable_graph(), initializer.name(), name);
      initializer.set_name(name);
    }
  };
  const std::vector<std::string> modules = {"/model/wte",        "/model/blocks.0/l", "/model/blocks.0/l",
                                            "/model/blocks.1/l", "/model/blocks.1/l", "/model/head",
                                            "/model/head"};
  asIn("base_model.", "base_model.model.wte.weight");
  EXPECT_EQ(found(modules), (Names{{"base_model.model.blocks.0.l.weight", {"base_model.model.blocks.1.l.weight"}},
                                   {"base_model.model.wte.weight", {"base_model.model.head.weight"}}}));
  // Where one lacks it, it is not known what others lack.
  asIn("", "base_model.model.wte.weight");
  EXPECT_EQ(found(modules), (Names{{"model.blocks.0.l.weight", {"model.blocks.1.l.weight"}},
                                   {"base_model.model.wte.weight", {"model.head.weight"}}}));
}

TEST_F(TiedNames, FollowFromTheClassesOfTorchExport) {
  const std::vector<std::string> modules = {"wte",        "blocks.0.l", "blocks.0.l", "blocks.1.l",
                                            "blocks.1.l", "head",       "head"};
  EXPECT_EQ(found(modules, std::vector<std::string>(7, "linear.Linear")),
            (Names{{"blocks.0.l.weight", {"blocks.1.l.weight"}}, {"wte.weight", {"head.weight"}}}));
  EXPECT_EQ(found(modules, std::vector<std::string>(7, "container.Sequential")), Names{});
}

/// transformers' Gemma: the table has the head's name in the file, and a scaled embedding reads it.
TEST_F(TiedNames, FollowFromEmbeddingsOfOtherClasses) {
  const std::vector<std::string> modules = {"embed",      "blocks.0.l", "blocks.0.l", "blocks.0.l",
                                            "blocks.0.l", "wte",        "wte"};
  std::vector<std::string> classes(7, "linear.Linear");
  classes[0] = ":transformers.models.gemma.modeling_gemma.GemmaTextScaledWordEmbedding";
  EXPECT_EQ(found(modules, classes), (Names{{"wte.weight", {"embed.weight"}}}));
  classes[0] = ":transformers.models.bert.modeling_bert.BertEmbeddings"; // holds embeddings
  EXPECT_EQ(found(modules, classes), Names{});
}

} // namespace
} // namespace sluice
