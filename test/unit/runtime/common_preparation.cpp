// SPDX-License-Identifier: Apache-2.0
// What belongs to weights besides their numbers: how images were prepared, and what classes are called.
#include "runtime/program/Preparation.h"

#include "runtime/files/Npy.h"
#include "runtime/files/Zip.h"
#include "runtime/program/Export.h"
#include "runtime/program/Metrics.h"
#include "runtime/program/Predictions.h"
#include "runtime/program/Recipe.h"
#include "runtime/program/Training.h"
#include "test/unit/runtime/DataPrograms.h"
#include "test/unit/runtime/TinyProgram.h"

#include <cstring>
#include <sstream>

using namespace sluice;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Preparation, GoesThroughMetadata) {
  const ClassNames names = {{"", {"a", "b\"c"}}, {"target_kind", {"new", "old"}}};
  Arguments arguments{};
  arguments.mean = "0.5,0.25,0", arguments.std = "0.5";
  arguments.augment = "resize,size=5;random-crop,padding=1;center-crop;flip";
  arguments.inputs = {"x=image"};
  const Preparation written = preparationOf(arguments, names);
  EXPECT_EQ(written.resize, "resize,size=5;center-crop"); // what draws is training's own
  const Preparation read = readPreparation(metadataOf(written), "f");
  EXPECT_EQ(metadataOf(read), metadataOf(written));
  EXPECT_TRUE(readPreparation({{"mean", "0.5"}, {"classes", "[]"}}, "f").isEmpty()); // other programs' words
  Arguments flags;
  flags.std = "2";
  EXPECT_EQ(adopt(read, flags, true), "--mean 0.5,0.25,0 --augment resize,size=5;center-crop --input x=image");
  EXPECT_EQ(flags.std, "2");
  EXPECT_EQ(metadataOf(read).at("sluice.classes"), "[\"a\",\"b\\\"c\"]");
  EXPECT_EQ(metadataOf(read).at("sluice.classes.target_kind"), "[\"new\",\"old\"]");
  EXPECT_EQ(flags.weightClasses, written.classes);
  EXPECT_EQ(flags.carried, (std::set<std::string>{"--augment", "--input", "--mean"}));
  Arguments fineTuning;
  adopt(read, fineTuning, false);
  EXPECT_TRUE(fineTuning.weightClasses.empty());
  EXPECT_EQ(fineTuning.offeredClasses, written.classes);
}

TEST(Preparation, OfHostileFilesIsRefused) {
  const auto refused = [](const char *key, const std::string &value, const std::string &why) {
    expectError<DataError>([&] { readPreparation({{key, value}}, "f"); }, "f: " + why);
  };
  refused("sluice.mean", "red", "its metadata say how images were prepared, but --mean expects one number");
  refused("sluice.std", "0", "its metadata say how images were prepared, but --std expects numbers above 0");
  refused("sluice.resize", "blur", "its metadata say how images were prepared, but --augment: 'blur' is not known");
  refused("sluice.inputs", "[\"x=sound\"]", "its metadata say how images were prepared, but --input expects");
  refused("sluice.classes", "[1]", "'sluice.classes' of its metadata is no array");
  refused("sluice.classes", std::string(100000, '['), "'sluice.classes' of its metadata is no array");
  refused("sluice.classes.kind", "{}", "'sluice.classes.kind' of its metadata is no array");
  refused("sluice.classes", "[\"a\",\"a\"]",
          "its metadata say how images were prepared, but two classes are called 'a'");
}

/// A folder that lacks a class, as one to evaluate on may: the others keep their numbers.
TEST(Preparation, ClassesOfFoldersAreKnownByName) {
  Folder folder;
  const Program program = programWith(images);
  makeClasses(folder);
  EXPECT_EQ(Dataset(from("imagefolder:" + folder.path), program).classNames(), (ClassNames{{"", {"a", "b", "c"}}}));
  DataOptions options = from("imagefolder:" + folder.path);
  options.padded = true;
  std::filesystem::remove_all(folder / "b");
  EXPECT_EQ(readAll(options, program).second.back(), 1); // by position, where nothing is known
  options.classes = {"a", "b", "c"};
  EXPECT_EQ(readAll(options, program).second.back(), 2);
  options.classes = {"a", "b"};
  expectError<DataError>([&] { Dataset(options, program); },
                         "c: there is no class 'c', but 'a', 'b': rename the folder");
  options.targets = false; // new data may lie anywhere
  EXPECT_EQ(Dataset(options, program).samples(), 3);
  options.classes = {"a", "b", "c", "d"};
  options.targets = true;
  expectError<DataError>([&] { Dataset(options, program); }, "has 4 classes, the model tells 3 apart");
}

TEST(Preparation, OtherMeansThanThoseOfTheWeightsAreDoubted) {
  Preparation weights;
  weights.mean = "0.5", weights.std = "0.25,0.25,0.25";
  const auto doubts = [&](const char *mean, const char *std, bool trains = false) {
    Arguments arguments;
    arguments.mean = mean, arguments.std = std;
    if (trains)
      arguments.data = "data";
    return doubtsOf(weights, arguments);
  };
  EXPECT_THAT(doubts("0.5,0.50,0.5", "0.25"), ElementsAre());
  EXPECT_THAT(doubts("0.5,0.5,0.4", "0.5"),
              ElementsAre(HasSubstr("--mean 0.5,0.5,0.4: the weights were trained with --mean 0.5, which is taken"),
                          HasSubstr("--std 0.5: the weights were trained with --std 0.25,0.25,0.25")));
  EXPECT_THAT(doubts("0.4", "0.5", /*trains=*/true), ElementsAre()); // fine-tuning may have its own
  weights = {};
  EXPECT_THAT(doubts("123.675,116.28,103.53", "0.2"),
              ElementsAre(HasSubstr("--mean 123.675,116.28,103.53: bytes / 255 lie between 0 and 1")));
}

/// Nothing tells which class has no folder, which would number those after it wrongly.
TEST(Preparation, FewerFoldersThanClassesAreWarnedOf) {
  Folder folder;
  const Program program = programWith(images);
  makeClasses(folder);
  DataOptions options = from("imagefolder:" + folder.path);
  EXPECT_TRUE(Dataset(options, program).warnings().empty());
  std::filesystem::remove_all(folder / "b");
  EXPECT_THAT(Dataset(options, program).warnings(),
              ElementsAre(HasSubstr("has 2 folders, the model tells 3 classes apart")));
  options.classes = {"a", "b", "c"};
  EXPECT_TRUE(Dataset(options, program).warnings().empty());
  options.classes = {}, options.targets = false;
  EXPECT_TRUE(Dataset(options, program).warnings().empty()); // new data have no classes
}

/// Weights keep their numbers of classes where new data have no others.
TEST(Preparation, NewDataTakeTheClassesOfTheWeights) {
  Folder folder;
  const Program program = programWith(images);
  makeClasses(folder);
  std::filesystem::remove_all(folder / "b");
  DataOptions options = from("imagefolder:" + folder.path);
  options.offered = {"a", "b", "c"};
  EXPECT_EQ(readAll(options, program).second, (std::vector<int64_t>{0, 0})); // a, a; c has no whole batch
  options.padded = true;
  EXPECT_EQ(readAll(options, program).second.back(), 2);
  EXPECT_EQ(Dataset(options, program).classNames(), (ClassNames{{"", options.offered}}));
  EXPECT_TRUE(Dataset(options, program).warnings().empty());
  EXPECT_THAT(Dataset(options, program).notes(),
              ElementsAre(HasSubstr("its 2 classes have the numbers that the weights have for these names, of 3")));
  options.offered = {"a", "b", "d"};
  EXPECT_EQ(readAll(options, program).second.back(), 1);
  EXPECT_THAT(Dataset(options, program).notes(),
              ElementsAre(HasSubstr("has the class 'c', which the weights do not know ('a', 'b', 'd')")));
  options.offered = {"a", "b", "c", "d"}; // of another head
  EXPECT_EQ(readAll(options, program).second.back(), 1);
}

/// Images that are prepared as those that the weights were trained on, data without images as they are.
TEST(Preparation, OfWeightsMeansNothingToNumbers) {
  Folder folder;
  const Program program = programWith(greys);
  folder.write("input.npy", npyArray("<f4", "(2, 1, 2, 3)", std::vector<float>(12, 0.5f)));
  folder.write("target.npy", npyArray("<i8", "(2,)", std::vector<int64_t>{0, 1}));
  DataOptions options = from(folder.path);
  options.images.mean = {0.5};
  expectError<UsageError>([&] { Dataset(options, program); }, "--mean is for images of bytes");
  options.images.carried = true;
  EXPECT_EQ(readAll(options, program).first, std::vector<float>(12, 0.5f));
}

using Prepared = TinyProgram;

TEST_F(Prepared, AllClassesAreNamedOrNone) {
  expectFailure(2, "--data data --class a --class b", "--class names 2 of the 3 classes of output 'logits': give one");
  expectFailure(2, "--data data --class a --class b --class c --class d", "--class names 4 of the 3 classes");
}

TEST_F(Prepared, ClassesAreNamedWhereverTheyAreSeen) {
  const std::string names = "--class cat --class 'the, dog' --class owl";
  ASSERT_EQ(run("--data data --steps 3 --evaluate data --metrics confusion --report r.html --checkpoint c --export "
                "e.safetensors --log log.jsonl " +
                names),
            0)
      << err;
  const Json classes = {"cat", "the, dog", "owl"};
  EXPECT_EQ(log().front()["classes"], classes);
  EXPECT_THAT(out, HasSubstr("       cat"));
  EXPECT_THAT(out, HasSubstr("  the, dog  "));
  EXPECT_THAT(folder.read("r.html"), HasSubstr("the, dog"));
  EXPECT_THAT(folder.read("c/recipe.toml"), HasSubstr("class = [\"cat\", \"the, dog\", \"owl\"]"));
  for (const char *file : {"c/checkpoint.safetensors", "e.safetensors"})
    EXPECT_EQ(Json::parse(SafetensorsFile(folder / file).metadata().at("sluice.classes")), classes) << file;
  // Weights know them from then on.
  ASSERT_EQ(run("--resume c --evaluate data --log log.jsonl"), 0) << err;
  EXPECT_EQ(log().front()["classes"], classes);
  ASSERT_EQ(run("--init e.safetensors --evaluate data --log log.jsonl"), 0) << err;
  EXPECT_EQ(log().front()["classes"], classes);
  ASSERT_EQ(run("--init e.safetensors --data data --steps 1 --log log.jsonl"), 0) << err; // other data, other classes
  EXPECT_FALSE(log().front().contains("classes"));
  expectFailure(2, "--data data --steps 1 --class a --class a", "two classes are called 'a'");
}

/// The recipe of a run tells how its weights are used, not to train on.
TEST_F(Prepared, ARecipeAndItsBestWeightsEvaluate) {
  ASSERT_EQ(run("--data data --epochs 4 --validation-split 0.2 --best loss --checkpoint c --log train.jsonl "
                "--class a --class b --class c"),
            0)
      << err;
  const std::string before = folder.read("train.jsonl"), checkpoint = folder.read("c/checkpoint.safetensors");
  ASSERT_EQ(run("--recipe c/recipe.toml --resume c/best.safetensors --evaluate data --log log.jsonl"), 0) << err;
  EXPECT_EQ(losses("log.jsonl").size(), 0u);
  EXPECT_EQ(log().back()["event"], "end");
  EXPECT_EQ(log().front()["classes"], Json({"a", "b", "c"}));
  ASSERT_EQ(run("--recipe c/recipe.toml --resume c/best.safetensors --predict data --output p.csv"), 0) << err;
  EXPECT_EQ(folder.read("train.jsonl"), before);
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), checkpoint);
}

/// Weights whose images were normalized, trained on arrays of floats: a run's recipe leaves to weights what they carry,
/// so that the run goes on by it.
TEST_F(Prepared, RecipesLeaveToWeightsWhatTheyCarry) {
  ASSERT_EQ(run("--data data --steps 1 --export e.safetensors"), 0) << err;
  std::string bytes = unchecked(folder.read("e.safetensors"));
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::string mark = "\"__metadata__\":{", added = "\"sluice.mean\":\"0.5\",";
  const size_t at = bytes.find(mark);
  ASSERT_NE(at, std::string::npos);
  bytes.insert(at + mark.size(), added);
  header += added.size();
  std::memcpy(bytes.data(), &header, sizeof header);
  folder.write("e.safetensors", bytes);
  ASSERT_EQ(run("--init e.safetensors --data data --steps 1 --checkpoint c"), 0) << err;
  EXPECT_THAT(out, HasSubstr("--mean 0.5"));
  EXPECT_THAT(folder.read("c/recipe.toml"), testing::Not(HasSubstr("mean")));
  EXPECT_EQ(SafetensorsFile(folder / "c/checkpoint.safetensors").metadata().at("sluice.mean"), "0.5");
  EXPECT_EQ(run("--recipe c/recipe.toml --resume c --steps 2"), 0) << err;
}

/// A protobuf message may be continued after its end.
TEST_F(Prepared, OnnxFilesEndWithIt) {
  folder.write("tiny.onnx-template", std::string(exportMark) + std::string(200, 'x'));
  ASSERT_EQ(run("--data data --steps 1 --export e.onnx --class a --class bc --class d"), 0) << err;
  const std::string key = "sluice.classes", value = "[\"a\",\"bc\",\"d\"]";
  std::string entry = "\x0a";
  entry += static_cast<char>(key.size()) + key + '\x12' + static_cast<char>(value.size()) + value;
  const std::string end = '\x72' + std::string(1, static_cast<char>(entry.size())) + entry;
  EXPECT_THAT(folder.read("e.onnx"), testing::EndsWith(end));
}

TEST_F(Prepared, PredictionsHaveTheFormatOfTheirName) {
  ASSERT_EQ(run("--data data --steps 5 --checkpoint c --class a --class 'b,\"c' --class d"), 0) << err;
  for (const char *name : {"p.npy", "p.npz", "p.csv", "p.json"})
    ASSERT_EQ(run(std::string("--resume c --predict data --output ") + name), 0) << err;
  const std::string array = folder.read("p.npy");
  ASSERT_EQ(array.size(), 256u + 22 * 3 * 4);
  std::vector<float> values(66);
  std::memcpy(values.data(), array.data() + 256, 66 * 4);

  const Json json = Json::parse(folder.read("p.json"));
  EXPECT_EQ(json["classes"], Json({"a", "b,\"c", "d"}));
  ASSERT_EQ(json["predictions"].size(), 22u);
  std::istringstream csv(folder.read("p.csv"));
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line, "sample,answer,a,\"b,\"\"c\",d");
  for (size_t n = 0; n < 22; ++n) {
    const Json &row = json["predictions"][n];
    const float *at = values.data() + 3 * n;
    const size_t answer = static_cast<size_t>(std::max_element(at, at + 3) - at);
    EXPECT_EQ(row["sample"], "data/input.npy: sample " + std::to_string(n));
    EXPECT_EQ(row["answer"], json["classes"][answer]);
    ASSERT_TRUE(std::getline(csv, line));
    EXPECT_THAT(line, testing::StartsWith(text("data/input.npy: sample ", n, ",")));
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(row["output"][k].get<float>(), at[k]);
      EXPECT_THAT(line + ",", HasSubstr("," + row["output"][k].dump() + ","));
    }
  }
  // Read as any program reads them.
  const ZipFile zip(folder / "p.npz");
  EXPECT_EQ(zip.names(), "classes.npy, output.npy, sample.npy");
  ZipFile::Member member = zip.open("output.npy");
  const NpyFile output(std::move(member.file), member.begin, member.end, "output");
  EXPECT_EQ(output.shape(), (std::vector<int64_t>{22, 3}));
  std::vector<float> zipped(66);
  output.read(0, 22, zipped.data());
  EXPECT_EQ(zipped, values);
  // Written over where we wrote them.
  for (const char *name : {"p.npz", "p.csv", "p.json"}) {
    EXPECT_EQ(run(std::string("--resume c --predict data --output ") + name), 0) << err;
    folder.write(name, "somebody's own data, which are long enough for any beginning that could be asked for");
    expectFailure(1, std::string("--resume c --predict data --output ") + name, "was not written by --output");
  }
  expectFailure(2, "--resume c --predict data --output p.txt",
                "--output p.txt: the name says how it is written: .npy, .npz, .csv or .json");
  expectFailure(2, "--data data --steps 1 --export m.npz", "--export m.npz: it writes .onnx or .safetensors");
  expectFailure(2, "--data data --steps 1 --dump-gradients g.npz", "--dump-gradients g.npz: it writes .safetensors");
  expectFailure(2, "--data data --steps 1 --report r.json", "--report r.json: it writes .html");
}

TEST(Confusion, IsShownWithNames) {
  EXPECT_EQ(confusionText({{5, 1}, {0, 120}}, {"cat", "a very long name of a class"}),
            "rows: what is right, columns: what was answered\n"
            "                         cat  a very l\n"
            "               cat         5         1\n"
            "  a very long name         0       120\n");
  EXPECT_EQ(confusionText({{5, 1}, {0, 2}}, {}), "rows: what is right, columns: what was answered\n"
                                                 "         0   1\n"
                                                 "     0   5   1\n"
                                                 "     1   0   2\n");
}

/// Each output of scores has its answers, by names where they are known.
TEST(Predictions, SayWhatClassesAreOfWhichOutput) {
  Folder folder;
  const PredictedSamples samples{{"s"},
                                 {{"pet", {1, 2}, true, {"cat", "dog"}},
                                  {"size", {1, 3}, true},
                                  {"coat", {1, 2}, true, {"long", "short"}},
                                  {"age", {1, 1}}}};
  const auto write = [&](const char *name) {
    const auto file = openPredictions(folder / name, samples);
    file->add({{0.25f, 0.5f}, {3, 1, 2}, {9, 8}, {7}}, 1);
    file->commit();
    return folder.read(name);
  };
  EXPECT_EQ(write("p.csv"),
            "sample,answer,size_answer,coat_answer,cat,dog,size_0,size_1,size_2,coat_long,coat_short,age_0\n"
            "s,dog,0,long,0.25,0.5,3,1,2,9,8,7\n");
  const Json json = Json::parse(write("p.json"));
  EXPECT_EQ(json["classes"], (Json{{"pet", {"cat", "dog"}}, {"coat", {"long", "short"}}}));
  EXPECT_EQ(json["predictions"][0]["answer"], "dog");
  EXPECT_EQ(json["predictions"][0]["answers"], (Json{{"pet", "dog"}, {"size", "0"}, {"coat", "long"}}));
  write("p.npz");
  EXPECT_EQ(ZipFile(folder / "p.npz").names(),
            "age.npy, coat.npy, coat_classes.npy, pet.npy, pet_classes.npy, sample.npy, size.npy");
}
