// SPDX-License-Identifier: Apache-2.0
// Weights of other programs: --init from safetensors, --export to safetensors, and maps of names.
#include "test/unit/runtime/TinyProgram.h"

using namespace sluice;

namespace {

class Weights : public TinyProgram {
protected:
  Weights() {
    for (int i = 0; i < 24; ++i)
      w.push_back(static_cast<float>(i) / 7);
  }
  void write(const std::string &name, const std::string &weight, const std::vector<float> &values, Shape shape,
             const std::string &biasName = "fc.bias") {
    auto put = [](const std::vector<float> &from) {
      return [&from](const TensorToWrite::Put &to) { to(from.data(), from.size() * 4); };
    };
    writeSafetensors(folder / name, {{"format", "pt"}},
                     {{weight, DataType::F32, shape, put(values)}, {biasName, DataType::F32, {3}, put(b)}});
  }
  std::vector<float> transposed() const {
    std::vector<float> values;
    for (size_t c = 0; c < 8; ++c)
      for (size_t r = 0; r < 3; ++r)
        values.push_back(w[r * 8 + c]);
    return values;
  }
  void expectStarted(const std::string &flag) {
    std::filesystem::remove_all(folder / "c");
    ASSERT_EQ(run("--data data --steps 0 --checkpoint c --init=" + flag), 0) << err;
    EXPECT_EQ(tensor("c/checkpoint.safetensors", "fc.weight", {3, 8}), w);
    EXPECT_EQ(tensor("c/checkpoint.safetensors", "fc.bias", {3}), b);
  }

  std::vector<float> w, b = {1, 2, 3};
};

} // namespace

TEST_F(Weights, TrainingStartsFromThem) {
  write("torch.safetensors", "fc.weight", w, {3, 8});
  expectStarted("torch.safetensors");
  EXPECT_THAT(out, testing::HasSubstr("initial values: 2 tensors from torch.safetensors\n"));
  ASSERT_EQ(run("--data data --steps 4 --init torch.safetensors --export a.safetensors"), 0) << err;
  ASSERT_EQ(run("--data data --steps 4 --resume c --export b.safetensors"), 0) << err;
  EXPECT_EQ(folder.read("a.safetensors"), folder.read("b.safetensors"));
}

TEST_F(Weights, LieInAFolderAsHubsLayThemOut) {
  for (const char *made : {"hub", "one", "two"})
    std::filesystem::create_directory(folder / made);
  write("hub/model-00001-of-00002.safetensors", "fc.weight", w, {3, 8}, "other.bias");
  write("hub/model-00002-of-00002.safetensors", "other.weight", w, {3, 8});
  const std::string index = "hub/model.safetensors.index.json";
  folder.write(index,
               R"({"metadata": {"total_size": 204, "weight_map": ["no.safetensors"]}, "weight_map": {"other.bias":
      "model-00001-of-00002.safetensors", "fc.weight": "model-00001-of-00002.safetensors",
      "fc.bias": "model-00002-of-00002.safetensors"}})");
  expectStarted("hub");
  EXPECT_THAT(out, testing::HasSubstr("initial values: 1 tensors from hub/model-00001-of-00002.safetensors\n"));
  EXPECT_THAT(out, testing::HasSubstr("initial values: 1 tensors from hub/model-00002-of-00002.safetensors\n"));
  write("one/adapter_model.safetensors", "fc.weight", w, {3, 8});
  expectStarted("one,skip-mismatched");

  write("two/a.safetensors", "fc.weight", w, {3, 8});
  write("two/b.safetensors", "fc.weight", w, {3, 8});
  const auto expectRefused = [this](const std::string &where, const std::string &words) {
    EXPECT_EQ(run("--data data --steps 0 --init=" + where), 1) << out;
    EXPECT_THAT(err, testing::HasSubstr(words));
  };
  expectRefused("two", "one safetensors file, this has 2 of them, a.safetensors first; name a file");
  expectRefused("data", "one safetensors file, this has neither; name a file");
  const std::pair<std::string, const char *> mistakes[] = {
      {R"({"weight_map": {"fc.bias": "../two/a.safetensors"}})", "'../two/a.safetensors' is no name of a safetensors"},
      {R"({"weight_map": {"fc.bias": "passwd"}})", "'passwd' is no name of a safetensors file in the same folder"},
      {R"({"weight_map": {"fc.bias": "gone.safetensors"}})", "hub/gone.safetensors"},
      {R"({"weight_map": {}})", "no file is named in an object \"weight_map\""},
      {"{", "parse error"},
      {std::string(1000000, '['), "parse error"},
  };
  for (const auto &[text, words] : mistakes) {
    folder.write(index, text);
    expectRefused("hub", words);
  }
}

TEST_F(Weights, AMapNamesExceptions) {
  write("torch.safetensors", "head.weight", transposed(), {8, 3}, "head.bias");
  folder.write("map.toml", "'fc.weight' = { name = 'head.weight', transpose = true }\n'fc.bias' = 'head.bias'\n");
  expectStarted("torch.safetensors,map=map.toml");
  EXPECT_THAT(out, testing::Not(testing::HasSubstr("not in")));
  ASSERT_EQ(run("--resume c --export=back.safetensors,map=map.toml"), 0) << err;
  EXPECT_EQ(tensor("back.safetensors", "head.weight", {8, 3}), transposed());
  EXPECT_EQ(tensor("back.safetensors", "head.bias", {3}), b);

  const std::pair<const char *, const char *> mistakes[] = {
      {"\n'gc.weight' = 'x'", "map.toml:2: the model has no tensor 'gc.weight'"},
      {"'fc.weight/momentum' = 'x'", "map.toml:1: the model has no tensor"},
      {"'fc.bias' = 3", "map.toml:1: 'fc.bias' expects \"NAME\" or"},
      {"'fc.bias' = []", "map.toml:1: 'fc.bias' expects \"NAME\" or"},
      {"'fc.bias' = ['x', 3]", "map.toml:1: 'fc.bias' expects \"NAME\" or"},
      {"'(' = { name = 'x', regex = true }", "map.toml:1: '(': '(' is no regular expression"},
      {"'gc.*' = { name = 'x', regex = true }", "map.toml:1: 'gc.*' matches no tensor of the model"},
      {"'fc.*' = { name = '$&', regex = true }\n'.*bias' = { name = 'x', regex = true }",
       "'fc.bias' matches '.*bias' and 'fc.*'"},
      {"'fc.bias' = { name = 'x', transposed = true }", "map.toml:1: 'fc.bias' expects \"NAME\" or"},
      {"'fc.bias' = { name = 'x', transpose = true }", "map.toml:1: 'fc.bias' is no matrix"}};
  for (const auto &[map, message] : mistakes) {
    folder.write("map.toml", map);
    expectFailure(1, "--data data --init=torch.safetensors,map=map.toml", message);
    expectFailure(1, "--resume c --export=back.safetensors,map=map.toml", message);
  }
}

TEST_F(Weights, AMapMayBeOfExpressions) {
  write("torch.safetensors", "model.head.weight", w, {3, 8}, "model.head.bias");
  folder.write("map.toml", "'fc[.](weight|bias)' = { name = 'model.head.$1', regex = true }\n");
  expectStarted("torch.safetensors,map=map.toml");
  // What names a tensor counts over an expression.
  folder.write("map.toml", "'fc[.](.*)' = { name = 'model.$1', regex = true }\n'fc.bias' = ['b1', 'b2']\n");
  ASSERT_EQ(run("--resume c --export=back.safetensors,map=map.toml"), 0) << err;
  EXPECT_EQ(SafetensorsFile(folder / "back.safetensors").tensors().size(), 3u);
  EXPECT_EQ(tensor("back.safetensors", "model.weight", {3, 8}), w);
  EXPECT_EQ(tensor("back.safetensors", "b1", {3}), b);
  EXPECT_EQ(tensor("back.safetensors", "b2", {3}), b);
  folder.write("map.toml", "'fc[.].*' = { name = 'one', regex = true }\n");
  expectFailure(1, "--resume c --export=back.safetensors,map=map.toml",
                "the file would have 'one' for 'fc.bias' and for 'fc.weight'");
}

TEST_F(Weights, TiedTensorsHaveAllOfTheirNames) {
  write("torch.safetensors", "head.weight", w, {3, 8}); // the name that the model file lacks
  ASSERT_EQ(run("--data data --steps 0 --init torch.safetensors --export out.safetensors", "tied"), 0) << err;
  EXPECT_THAT(out, testing::HasSubstr("initial values: 2 tensors"));
  EXPECT_EQ(tensor("out.safetensors", "fc.weight", {3, 8}), w);
  EXPECT_EQ(tensor("out.safetensors", "head.weight", {3, 8}), w);
  ASSERT_EQ(run("--data data --steps 0 --init out.safetensors --checkpoint c", "tied"), 0) << err;
  EXPECT_THAT(out, testing::Not(testing::HasSubstr("not in the model")));
  // Of two values none can be right, unless a map says which.
  auto put = [](const std::vector<float> &from) {
    return [&from](const TensorToWrite::Put &to) { to(from.data(), from.size() * 4); };
  };
  const std::vector<float> other(24, 1);
  writeSafetensors(folder / "apart.safetensors", {},
                   {{"fc.weight", DataType::F32, {3, 8}, put(other)}, {"head.weight", DataType::F32, {3, 8}, put(w)}});
  expectFailure(1, "--data data --init apart.safetensors",
                "apart.safetensors: 'fc.weight' and 'head.weight' differ, which are one tensor in the model", "tied");
  folder.write("map.toml", "'fc.weight' = 'head.weight'\n");
  ASSERT_EQ(run("--data data --steps 0 --init apart.safetensors,map=map.toml --export out.safetensors", "tied"), 0)
      << err;
  EXPECT_EQ(tensor("out.safetensors", "fc.weight", {3, 8}), w);
}

/// Expressions are for all names of a tensor, as without a map; what they do not match stays.
TEST_F(Weights, AnExpressionMeansTheOtherNamesOfTiedTensorsToo) {
  write("torch.safetensors", "m.head.weight", w, {3, 8}, "m.fc.bias");
  folder.write("map.toml", "'(.*)' = { name = 'm.$1', regex = true }\n");
  ASSERT_EQ(run("--data data --steps 0 --init torch.safetensors,map=map.toml --export out.safetensors", "tied"), 0)
      << err;
  EXPECT_THAT(out, testing::HasSubstr("initial values: 2 tensors"));
  EXPECT_EQ(tensor("out.safetensors", "fc.weight", {3, 8}), w);
  folder.write("map.toml", "'fc[.](.*)' = { name = 'body.$1', regex = true }\n");
  ASSERT_EQ(run("--data data --steps 0 --init out.safetensors --export body.safetensors,map=map.toml", "tied"), 0)
      << err;
  EXPECT_EQ(SafetensorsFile(folder / "body.safetensors").tensors().size(), 3u); // and body.bias
  EXPECT_EQ(tensor("body.safetensors", "body.weight", {3, 8}), w);
  EXPECT_EQ(tensor("body.safetensors", "head.weight", {3, 8}), w);
}

TEST_F(Weights, WhatIsTrainedMayStandAlone) {
  write("torch.safetensors", "fc.weight", w, {3, 8});
  ASSERT_EQ(run("--data data --steps 2 --init torch.safetensors --export a.safetensors,trained-only --checkpoint c "
                "--checkpoint-trained-only",
                "frozen"),
            0)
      << err;
  EXPECT_EQ(SafetensorsFile(folder / "a.safetensors").tensors().count("fc.weight"), 0u);
  EXPECT_EQ(SafetensorsFile(folder / "a.safetensors").tensors().count("fc.bias"), 1u);
  EXPECT_FALSE(SafetensorsFile(folder / "c/checkpoint.safetensors").contains("fc.weight"));
  EXPECT_THAT(folder.read("c/recipe.toml"), testing::HasSubstr("checkpoint-trained-only = true"));
  // The recipe still brings the frozen weights; others are refused.
  ASSERT_EQ(run("--recipe c/recipe.toml --resume c --steps 4", "frozen"), 0) << err;
  ASSERT_EQ(run("--recipe c/recipe.toml --resume c/checkpoint.safetensors --evaluate data", "frozen"), 0) << err;
  write("base.safetensors", "fc.weight", w, {3, 8}, "other");
  ASSERT_EQ(run("--init base.safetensors --resume c --evaluate data", "frozen"), 0) << err;
  EXPECT_THAT(out, testing::HasSubstr("  those of the checkpoint: 'fc.bias'\n"));
  expectFailure(1, "--resume c --evaluate data", "holds what was trained alone, beside frozen weights of checksum ",
                "frozen");
  expectFailure(2, "--data data --export out.onnx,trained-only", "trained-only is for FILE.safetensors");
  expectFailure(2, "--data data --init torch.safetensors,trained-only", "trained-only is an option of --export");
  ASSERT_EQ(run("--data data --steps 1 --checkpoint d"), 0) << err;
  expectFailure(2, "--data data --resume d --init torch.safetensors", "--init and --resume exclude each other");
}

/// A program that was moved alone goes on from a whole checkpoint.
TEST_F(Weights, OfACheckpointNeedNoFirstOnes) {
  ASSERT_EQ(run("--data data --steps 3 --checkpoint c --checkpoint-trained-only", "frozen"), 0) << err;
  const std::string missing = "/tiny.safetensors is missing, which holds the program's first weights";
  expectFailure(1, "--resume c --evaluate data", missing + "; so is ", "file frozen");
  expectFailure(1, "--resume c --evaluate data", missing + " and constants; so is ", "file constant");
  ASSERT_EQ(run("--data data --steps 3 --checkpoint d"), 0) << err;
  ASSERT_EQ(run("--data data --steps 5 --resume d --log rest", "file"), 0) << err;
  ASSERT_EQ(run("--data data --steps 5 --log whole"), 0) << err;
  EXPECT_EQ(losses("rest")[5], losses("whole")[5]);
  expectFailure(1, "--resume d --export out.onnx",
                "/tiny.onnx-template is missing, the model that --export FILE.onnx fills in: move it along with the "
                "program; --export FILE.safetensors needs none",
                "file");
}

TEST_F(Weights, WhatDoesNotFitIsSaid) {
  write("torch.safetensors", "fc.weight", transposed(), {8, 3});
  expectFailure(1, "--data data --init torch.safetensors",
                "torch.safetensors: tensor 'fc.weight' is F32 (8, 3), this program has F32 (3, 8); to start what does "
                "not fit anew, write --init=torch.safetensors,skip-mismatched");
  ASSERT_EQ(run("--data data --steps 0 --checkpoint c --init torch.safetensors,skip-mismatched"), 0) << err;
  ASSERT_EQ(run("--data data --steps 0 --checkpoint d"), 0) << err;
  EXPECT_THAT(out, testing::Not(testing::HasSubstr("initial values")));
  EXPECT_EQ(tensor("c/checkpoint.safetensors", "fc.weight", {3, 8}),
            tensor("d/checkpoint.safetensors", "fc.weight", {3, 8}));
  EXPECT_EQ(tensor("c/checkpoint.safetensors", "fc.bias", {3}), b);

  write("more.safetensors", "conv.weight", w, {3, 8});
  ASSERT_EQ(run("--data data --steps 1 --init more.safetensors"), 0) << err;
  EXPECT_THAT(out, testing::HasSubstr("  not in the file: 'fc.weight'\n  in the file, not in the model: "
                                      "'conv.weight'\n"));
  write("foreign.safetensors", "conv.weight", w, {3, 8}, "conv.bias");
  expectFailure(1, "--data data --init foreign.safetensors",
                "no tensor has a name of this model, which are 'fc.weight', 'fc.bias'; the file has 'conv.bias'");
  expectFailure(1, "--data data --init nowhere.safetensors", "cannot open nowhere.safetensors");
}

/// A base and adapters: of a tensor that both hold the last file's counts, whatever lies in the others.
TEST_F(Weights, SeveralFilesFillOneModel) {
  const std::vector<float> other(24, 5.0f);
  write("base.safetensors", "fc.weight", other, {3, 8}, "old.bias");
  write("adapters.safetensors", "old.weight", w, {3, 8});
  const auto started = [&](const std::string &flags) {
    std::filesystem::remove_all(folder / "c");
    ASSERT_EQ(run("--data data --steps 0 --checkpoint c " + flags), 0) << err;
  };
  const auto weight = [&] { return tensor("c/checkpoint.safetensors", "fc.weight", {3, 8}); };
  started("--init base.safetensors --init=adapters.safetensors");
  EXPECT_EQ(weight(), other);
  EXPECT_EQ(tensor("c/checkpoint.safetensors", "fc.bias", {3}), b);
  EXPECT_THAT(out, testing::HasSubstr("initial values: 1 tensors from base.safetensors\n"
                                      "  in the file, not in the model: 'old.bias'\n"
                                      "initial values: 1 tensors from adapters.safetensors\n"
                                      "  in the file, not in the model: 'old.weight'\n"));
  EXPECT_THAT(out, testing::Not(testing::HasSubstr("in none of the files")));
  // A recipe has both, and so starts the same.
  const std::string first = folder.read("c/checkpoint.safetensors");
  std::filesystem::copy_file(folder / "c/recipe.toml", folder / "recipe.toml");
  std::filesystem::remove_all(folder / "c");
  ASSERT_EQ(run("--recipe recipe.toml"), 0) << err;
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), first);

  write("later.safetensors", "fc.weight", w, {3, 8}, "old.bias");
  started("--init adapters.safetensors --init later.safetensors");
  EXPECT_EQ(weight(), w);
  started("--init=later.safetensors --init=adapters.safetensors");
  EXPECT_EQ(weight(), w);
  // The shape of what does not count does not matter; that of what counts does.
  write("transposed.safetensors", "fc.weight", transposed(), {8, 3}, "fc.bias");
  started("--init transposed.safetensors --init later.safetensors");
  EXPECT_EQ(weight(), w);
  expectFailure(1, "--data data --init later.safetensors --init transposed.safetensors",
                "transposed.safetensors: tensor 'fc.weight' is F32 (8, 3), this program has F32 (3, 8)");
  started("--init later.safetensors --init transposed.safetensors,skip-mismatched");
  EXPECT_EQ(weight(), w);
  EXPECT_THAT(out, testing::HasSubstr("of another shape or type, not taken: 'fc.weight'\n"));
  expectFailure(1, "--data data --init base.safetensors --init later.safetensors",
                "base.safetensors: files of --init after this one hold all of its tensors");
  write("foreign.safetensors", "conv.weight", w, {3, 8}, "conv.bias");
  expectFailure(1, "--data data --init torch.safetensors --init foreign.safetensors", "cannot open torch.safetensors");
  expectFailure(1, "--data data --init later.safetensors --init foreign.safetensors",
                "foreign.safetensors: no tensor has a name of this model, which are 'fc.weight', 'fc.bias'");
  started("--init base.safetensors");
  EXPECT_THAT(out, testing::HasSubstr("  not in the file: 'fc.bias'\n"));
}

TEST_F(Weights, AnExportIsNeverOverFilesOfOthers) {
  write("torch.safetensors", "fc.weight", w, {3, 8});
  const std::string before = folder.read("torch.safetensors");
  expectFailure(1, "--data data --steps 1 --export torch.safetensors", "exists and was not written by --export");
  expectFailure(2, "--data data --steps 1 --init torch.safetensors --export torch.safetensors --force",
                "which this run reads");
  EXPECT_EQ(folder.read("torch.safetensors"), before);
  ASSERT_EQ(run("--data data --steps 1 --export mine.safetensors"), 0) << err;
  ASSERT_EQ(run("--data data --steps 2 --export mine.safetensors"), 0) << err;
  folder.write("map.toml", "");
  folder.write("tiny.onnx-template", std::string(129, 'T'));
  expectFailure(2, "--data data --export out.onnx,map=map.toml", "a map is for FILE.safetensors");
  expectFailure(2, "--data data --export out.safetensors,skip-mismatched", "an option of --init");
  expectFailure(
      2, "--data data --export out.safetensors,merge",
      "'out.safetensors,merge': weights have no option 'merge'; there are skip-mismatched, trained-only, merged");
  // A name with a comma is one file.
  EXPECT_EQ(run("--data data --steps 1 --export a,b.safetensors"), 0) << err;
  EXPECT_TRUE(folder.has("a,b.safetensors"));
}
