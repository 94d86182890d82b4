// SPDX-License-Identifier: Apache-2.0
// Flags in a file: kinds, who wins, and what is said of mistakes.
#include "runtime/program/Recipe.h"

#include "test/unit/runtime/TinyProgram.h"

#include <cmath>

using namespace sluice;

namespace {

class Recipes : public testing::Test {
protected:
  Arguments parse(const std::string &recipe, std::vector<const char *> words = {}) {
    folder.write("run.toml", recipe);
    const std::string flag = "--recipe=" + (folder / "run.toml");
    words.insert(words.begin(), {"prog", flag.c_str()});
    return parseArguments(static_cast<int>(words.size()), words.data(), Program{});
  }
  void expectRefused(const std::string &recipe, const std::string &message) {
    SCOPED_TRACE(recipe);
    expectError<DataError>([&] { parse(recipe); }, "run.toml:" + message);
  }

  Folder folder;
};

/// Gives every flag of the table a value of its kind.
struct SomeValue {
  const Flag &flag;

  std::string number() const { return std::to_string(static_cast<int64_t>(flag.least)); }
  std::string operator()(bool Arguments::*) const { return "true"; }
  std::string operator()(std::optional<std::string> Arguments::*) const {
    return !flag.words.empty() ? flag.words[0] : "/a \"b\" \\ \x7f\n'\xc3\xa9";
  }
  std::string operator()(std::vector<std::string> Arguments::*) const {
    return flag.holdsPath() ? "/x=[1], 'y'" : "x=[1], 'y'";
  }
  std::string operator()(std::optional<int64_t> Arguments::*) const { return number(); }
  std::string operator()(std::optional<uint64_t> Arguments::*) const { return "18446744073709551615"; }
  std::string operator()(std::optional<double> Arguments::*) const {
    return flag.least > 0 ? "1.25" : flag.below > 1 ? "1.25e-07" : "0.1";
  }
};

} // namespace

TEST_F(Recipes, HoldEveryKindOfValue) {
  const Arguments arguments = parse("# a run\ndata = 'd'\nsteps = 1_000\nlr = 1e-2\nmomentum = 0\nshuffle = true\n"
                                    "force = false\nseed = 3\n");
  EXPECT_EQ(arguments.data, "d");
  EXPECT_EQ(arguments.steps, 1000);
  EXPECT_EQ(arguments.learningRate, 0.01);
  EXPECT_EQ(arguments.momentum, 0);
  EXPECT_EQ(arguments.seed, 3u);
  EXPECT_TRUE(arguments.shuffle);
  EXPECT_FALSE(arguments.force);
}

TEST_F(Recipes, WhatIsWrittenIsWhatIsRead) {
  Arguments arguments, again;
  for (const FlagGroup &group : flagGroups())
    for (const Flag &flag : group.flags)
      setFlag(arguments, flag, std::visit(SomeValue{flag}, flag.field));
  arguments.path = "./model";
  folder.write("written.toml", recipeOf(arguments));
  readRecipe(folder / "written.toml", {}, again);
  for (const FlagGroup &group : flagGroups())
    for (const Flag &flag : group.flags)
      EXPECT_EQ(valuesOf(again, flag), isAboutOneStart(flag) ? std::vector<std::string>() : valuesOf(arguments, flag))
          << flag.name;
}

TEST_F(Recipes, PathsInThemLeadThereFromEverywhere) {
  Arguments arguments;
  arguments.path = "./model";
  arguments.checkpoint = "runs/1";
  arguments.data = "imagefolder:./train";
  arguments.evaluate = "./a:b";
  arguments.predict = "synthetic";
  arguments.init = {"w,1.safetensors,map=m.toml,skip-mismatched", "adapters.safetensors"};
  arguments.exportTo = "../out.onnx";
  arguments.log = "/dev/stdout";
  arguments.augment = "flip";
  const std::string here = std::filesystem::current_path().string(), recipe = recipeOf(arguments);
  for (const std::string &line : {text(recipeMark, " Go on with: ", here, "/model --recipe=", here,
                                       "/runs/1/recipe.toml --resume=", here, "/runs/1\n"),
                                  text("data = \"imagefolder:", here, "/train\"\n"),
                                  text("evaluate = \"", here, "/a:b\"\n"), std::string("predict = \"synthetic\"\n"),
                                  text("init = [\"", here, "/w,1.safetensors,map=", here,
                                       "/m.toml,skip-mismatched\", \"", here, "/adapters.safetensors\"]\n"),
                                  text("export = \"", here, "/../out.onnx\"\n"), std::string("log = \"/dev/stdout\"\n"),
                                  std::string("augment = \"flip\"\n"), text("checkpoint = \"", here, "/runs/1\"\n")})
    EXPECT_THAT(recipe, testing::HasSubstr(line));
  for (const char *words : {"", ",peft", ",merged", ",trained-only"}) {
    arguments.exportTo = std::string("w.safetensors") + words;
    EXPECT_THAT(recipeOf(arguments), testing::HasSubstr(text("export = \"", here, "/w.safetensors", words, "\"\n")));
  }
}

TEST_F(Recipes, NoZeroIsNegative) { EXPECT_FALSE(std::signbit(*parse("data = 'd'\nmomentum = -0.0").momentum)); }

TEST_F(Recipes, FlagsWin) {
  const std::string recipe = "data = 'd'\nsteps = 10\nlr = 0.5\nshuffle = true\ninit = 'w.safetensors'\n";
  const Arguments one = parse(recipe, {"--lr", "0.25", "--shuffle=false", "--epochs=2", "--resume=c"});
  EXPECT_EQ(one.learningRate, 0.25);
  EXPECT_FALSE(one.shuffle);
  EXPECT_EQ(one.epochs, 2);
  EXPECT_FALSE(one.steps);
  EXPECT_TRUE(one.init.empty());
  EXPECT_EQ(one.data, "d");
  EXPECT_EQ(parse(recipe).steps, 10);
}

TEST_F(Recipes, MistakesAreNamedWithTheirLine) {
  expectRefused("data = 'd'\n\nstepz = 3", "3: 'stepz' is no flag that a recipe can hold; --help lists them");
  expectRefused("--steps = 3", "1: '--steps' is no flag");
  expectRefused("recipe = 'x'", "1: 'recipe' is no flag");
  expectRefused("steps = 3\nsteps = 4", "2: ");
  expectRefused("data = 'd'\nsteps = '3'", "2: steps expects a whole number, got a string");
  expectRefused("steps = 3.0", "1: steps expects a whole number, got a number");
  expectRefused("lr = true", "1: lr expects a number, got true or false");
  expectRefused("data = 3", "1: data expects a string, got a whole number");
  expectRefused("data = ['a', 'b']", "1: data expects a string, got an array");
  expectRefused("shuffle = 'yes'", "1: shuffle expects true or false, got a string");
  expectRefused("log = 1979-05-27", "1: log expects a string, got a date or a time");
  expectRefused("\nsteps = -3", "2: --steps expects a whole number of 0 or more, got '-3'");
  expectRefused("lr = inf", "1: --lr expects a finite number");
  expectRefused("steps = 3\ninit = 'w.safetensors,skip'", "2: 'w.safetensors,skip': weights have no option 'skip'");
  expectRefused("[data]\nsteps = 3", "1: there are no tables in a recipe, found [data]");
  for (const char *nameless : {"[[[", "[", " [ =]", "[.a]", "[[#", "[+a]", "[[ +1]]", "[,", "[ {a}]"})
    expectRefused(std::string("steps = 3\n") + nameless + "\n", "2: a table has no name");
  expectRefused("data = 'd'\nsteps = ", "2: ");
  expectRefused("data = '\xff'", "1: ");
  expectError<DataError>([&] { parse(std::string(70000, '#')); }, "70000 bytes are too many");
}

// Not even where the library takes quotes as part of a number, or looks for a blank behind a backslash.
TEST_F(Recipes, LettersOutsideOfStringsAreAscii) {
  const std::string letter = "\xc2\xa4";
  for (const std::string &wrong : {letter, "a" + letter + " = 1", "x = 'a'" + letter, R"(x = """a"""")" + letter,
                                   R"(x = "a\\")" + letter, "lr = 1" + letter, "lr = 132_.A=\"" + letter + "\"",
                                   "lr = 1998{\"" + letter, "data = \"\"\"\\" + letter + "\"\"\"", "[" + letter + "]"})
    expectRefused("steps = 3\n" + wrong + "\n", "");
  expectRefused("steps = 3\ndata = '\xc2'\n", "2: a character that is no UTF-8");
  const Arguments read =
      parse("\xef\xbb\xbf# " + letter + "\ndata = 'd'\nlog = \"/\\\"" + letter + "\\\\\" # '" + letter +
            "\nreport = '/" + letter + "u_0_u_1_'\ninput = \"\"\"a\n" + letter + "'" + letter + "'\"\"\"\n");
  EXPECT_EQ(read.report, "/" + letter + "u_0_u_1_");
  EXPECT_EQ(read.inputs, std::vector<std::string>{"a\n" + letter + "'" + letter + "'"});
}

// The library asserts that no value begins so.
TEST_F(Recipes, BracesCloseBracesOnly) {
  for (const std::string wrong : {"input = [}", "input = ['a', [[}]]]", "input = [ # a\n}"})
    expectRefused("steps = 3\n" + wrong + "\n",
                  std::to_string(std::count(wrong.begin(), wrong.end(), '\n') + 2) + ": a closing brace in an array");
  EXPECT_EQ(parse("data = 'd'\ninput = [ '[}' ] # [}\n").inputs.size(), 1u);
  expectRefused("input = [ { a = ['}'] } ]", "1: ");
}

TEST_F(Recipes, HaveNoControlCharacters) {
  for (const char character : {'\0', '\1', '\v', '\r', '\x7f'})
    for (const char *before : {"[", "steps = ", "data = '", "# "})
      expectRefused("lr = 1\n" + std::string(before) + character + "a\n", "2: a control character");
  EXPECT_EQ(parse("data = 'd'\r\nsteps\t=\t3\r\n").steps, 3);
}

// Every dot of a key is a table in a table, whose destructors call each other.
TEST_F(Recipes, DeepKeysAreRefused) {
  std::string deep = "a";
  for (int i = 0; i < 30000; ++i)
    deep += ".a";
  expectRefused(deep + " = 1", "1: more than 100 dots in one line");
  expectRefused("[" + deep + "]", "1: more than 100 dots in one line");
  expectRefused("a = " + std::string(30000, '['), "1: ");
}

// The recipe beside a checkpoint leads on to the bits of a run that never stopped.
TEST_F(TinyProgram, GoesOnByItsRecipe) {
  ASSERT_EQ(run("--data data --shuffle --lr 0.1 --seed 5 --steps 9 --checkpoint whole"), 0) << err;
  folder.write("run.toml", "data = 'data'\nshuffle = true\nlr = 0.1\nseed = 5\nsteps = 9\n");
  ASSERT_EQ(run("--recipe run.toml --steps 4 --checkpoint c"), 0) << err;
  EXPECT_THAT(folder.read("c/recipe.toml"), testing::StartsWith(recipeMark));
  ASSERT_EQ(run("--recipe c/recipe.toml --resume c --steps 9"), 0) << err;
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), folder.read("whole/checkpoint.safetensors"));
  ASSERT_EQ(run("--recipe run.toml --steps 4 --checkpoint d"), 0) << err;
  ASSERT_EQ(shell("mkdir elsewhere && cd elsewhere && ../tiny --recipe ../d/recipe.toml --resume ../d --steps 9"), 0)
      << err;
  EXPECT_EQ(folder.read("d/checkpoint.safetensors"), folder.read("whole/checkpoint.safetensors"));

  // A recipe of the user's is not written over.
  std::filesystem::create_directory(folder / "e");
  folder.write("e/recipe.toml", "data = 'data'\nsteps = 2\n");
  expectFailure(1, "--recipe e/recipe.toml --checkpoint e",
                "e/recipe.toml: exists and was not written by --checkpoint");
  EXPECT_EQ(folder.read("e/recipe.toml"), "data = 'data'\nsteps = 2\n");
  expectFailure(1, "--recipe nowhere.toml", "cannot open nowhere.toml: No such file");
}

/// Whoever measures weights by their recipe writes nothing of the run over, whether they are a file's or a folder's.
TEST_F(TinyProgram, UsesTheWeightsOfARecipe) {
  ASSERT_EQ(run("--data data --shuffle --steps 4 --quiet --checkpoint c --log log --export e.safetensors"), 0) << err;
  EXPECT_EQ(out, "");
  const std::string files[] = {"c/recipe.toml", "c/checkpoint.safetensors", "log", "e.safetensors"};
  std::vector<std::string> before;
  for (const std::string &file : files)
    before.push_back(folder.read(file));
  for (const char *weights : {"c", "c/checkpoint.safetensors"}) {
    ASSERT_EQ(run(std::string("--recipe c/recipe.toml --evaluate data --resume ") + weights), 0) << err;
    EXPECT_THAT(out, testing::HasSubstr("evaluation after step 4: ")); // the run was quiet, this one is not
    EXPECT_THAT(out, testing::HasSubstr("is that of the weights: nothing of its training and files is taken"));
    for (size_t i = 0; i < before.size(); ++i)
      EXPECT_EQ(folder.read(files[i]), before[i]) << files[i];
  }
  ASSERT_EQ(run("--recipe c/recipe.toml --resume c --predict data --output p.npy"), 0) << err;
  EXPECT_EQ(folder.read("c/recipe.toml"), before[0]);
  // Who only predicts evaluates nothing that metrics or a schedule could be of.
  ASSERT_EQ(run("--data data --evaluate data --metrics auc --schedule plateau --steps 4 --checkpoint m"), 0) << err;
  EXPECT_EQ(run("--recipe m/recipe.toml --resume m --predict data --output q.npy"), 0) << err;
}

/// Flags are not in checkpoints: whoever goes on without them is told.
TEST_F(TinyProgram, SaysHowItGoesOnOtherwise) {
  ASSERT_EQ(run("--data data --shuffle --lr 0.1 --clip-value 2 --seed 5 --steps 4 --checkpoint c"), 0) << err;
  ASSERT_EQ(run("--data data --lr 0.25 --nesterov --resume c --steps 5"), 0) << err;
  EXPECT_THAT(out, testing::HasSubstr("unlike c/recipe.toml: no --shuffle, --lr=0.25 for --lr=0.1, --nesterov, no "
                                      "--clip-value=2; --recipe=c/recipe.toml takes what it says"));
  ASSERT_EQ(run("--recipe c/recipe.toml --resume c --steps 6 --checkpoint d"), 0) << err;
  EXPECT_THAT(out, testing::Not(testing::HasSubstr("unlike")));
  std::filesystem::remove(folder / "c/recipe.toml");
  ASSERT_EQ(run("--data data --resume c --steps 5"), 0) << err;
  EXPECT_THAT(out, testing::Not(testing::HasSubstr("unlike")));
}
