// SPDX-License-Identifier: Apache-2.0
// Which names of classes are whose, and how words of --class and files say it.
#include "runtime/program/ClassNames.h"

#include "runtime/Errors.h"

#include <gmock/gmock.h>

using namespace sluice;

/// A price and a kind: names are those of the kinds, which come second.
TEST(ClassNames, AreThoseOfTheFirstOutputWithClasses) {
  const Input inputs[] = {
      {"target_price", {}, host(0, {4, 1}), 0, Loss::none, false, true},
      {"target_kind", {}, host(64, {4}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true}};
  const Output outputs[] = {{"price", device(0, {4, 1}), 0, "mse", 1, device(512, {})},
                            {"kind", device(256, {4, 3}), 1, "softmax-cross-entropy", 1, device(768, {})}};
  Program program{};
  program.batch = 4;
  program.inputs = inputs;
  program.outputs = outputs;
  program.inputCount = program.outputCount = 2;
  EXPECT_EQ(namedOutput(program), 1);
  const std::vector<std::string> names = {"a", "b", "c"};
  for (const char *key : {"", "target_kind"}) {
    EXPECT_EQ(namesFor(program, "kind", {{key, names}}), names);
    EXPECT_TRUE(namesFor(program, "price", {{key, names}}).empty());
  }
  EXPECT_EQ(classesKey(program, 1), "target_kind");
  EXPECT_EQ(wordsOf(program, namesFrom(names, program)), names); // of one target that has classes
}

/// Names that have no target's go to the first that tells classes apart, whatever program they came from.
TEST(ClassNames, AreThoseOfTheirTargets) {
  const Input inputs[] = {{"kind", {}, host(0, {4}, Layout::RowMajor, DataType::I64), 2, Loss::none, false, true},
                          {"coat", {}, host(64, {4}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true}};
  const Output outputs[] = {{"a", device(0, {4, 2}), 0, "softmax-cross-entropy", 1, device(512, {})},
                            {"b", device(256, {4, 3}), 1, "softmax-cross-entropy", 1, device(768, {})},
                            {"c", device(1024, {4, 2}), 0, "softmax-cross-entropy", 1, device(1280, {})}};
  Program program{};
  program.batch = 4;
  program.inputs = inputs;
  program.outputs = outputs;
  program.inputCount = 2, program.outputCount = 3;
  EXPECT_THAT(namedTargets(program), testing::ElementsAre(0, 1));
  const ClassNames names = namesFrom({"cat", "kind=dog", "coat=long", "coat=kind=x"}, program);
  EXPECT_EQ(names, (ClassNames{{"kind", {"cat", "dog"}}, {"coat", {"long", "kind=x"}}}));
  EXPECT_EQ(namesFor(program, "b", names), (std::vector<std::string>{"long", "kind=x"}));
  EXPECT_EQ(namesFor(program, "c", names), namesFor(program, "a", names));
  EXPECT_EQ(namesFrom(wordsOf(program, names), program), names);
  const ClassNames old = {{"", {"cat", "dog"}}, {"other", {"x"}}};
  EXPECT_EQ(ownNames(program, old), (ClassNames{{"kind", {"cat", "dog"}}}));
  EXPECT_THROW(namesFrom({"coat=long", "coat=long"}, program), UsageError);
  EXPECT_NO_THROW(namesFrom({"coat=long", "kind=long"}, program));
  program.outputCount = 1;
  EXPECT_EQ(namesFrom({"coat=long", "b"}, program), (ClassNames{{"", {"coat=long", "b"}}}));
  EXPECT_EQ(ownNames(program, names), (ClassNames{{"", {"cat", "dog"}}})); // of weights with more targets
}
