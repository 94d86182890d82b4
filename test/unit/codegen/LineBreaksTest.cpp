// SPDX-License-Identifier: Apache-2.0
// Where generated lines are broken: what each kind of line becomes, and that literals keep their bytes.
#include "codegen/LineBreaks.h"

#include <gtest/gtest.h>

using sluice::codegen::breakLines;

TEST(LineBreaks, KeepsWhatFits) {
  const std::string text = "#include <memory>\n\nint x;\n  return {{a, b}};\n";
  EXPECT_EQ(breakLines(text, 20), text);
}

TEST(LineBreaks, BreaksInTheOutermostBrackets) {
  EXPECT_EQ(breakLines("  f(one, g(two, three), four);\n", 26), "  f(one, g(two, three),\n"
                                                                "      four);\n");
}

TEST(LineBreaks, BreaksDeeperRatherThanEarly) {
  EXPECT_EQ(breakLines("  k.run(s, {first, second, third});\n", 30), "  k.run(s, {first, second,\n"
                                                                     "      third});\n");
}

TEST(LineBreaks, BreaksBehindOperatorsAndBeforeChoices) {
  EXPECT_EQ(breakLines("const float y = alpha * beta + gamma;\n", 32), "const float y = alpha * beta +\n"
                                                                       "    gamma;\n");
  EXPECT_EQ(breakLines("const float y = alpha <= 0.0f ? 0.0f : alpha;\n", 35), "const float y = alpha <= 0.0f\n"
                                                                               "    ? 0.0f : alpha;\n");
}

TEST(LineBreaks, BreaksChainsBeforeTheirCalls) {
  EXPECT_EQ(breakLines("  Matmul m{MatmulOptions().withBias({1, 2}).withAlpha(2)};\n", 43),
            "  Matmul m{MatmulOptions().withBias({1, 2})\n"
            "      .withAlpha(2)};\n");
  EXPECT_EQ(breakLines("  f(g().first(1).second(2));\n", 16), "  f(g().first(1)\n"
                                                              "      .second(2));\n");
  EXPECT_EQ(breakLines("  f(g().first(1).second(2));\n", 15), "  f(g()\n"
                                                              "      .first(1)\n"
                                                              "      .second(2));\n");
}

TEST(LineBreaks, BreaksTypesAndNamesNowhere) {
  EXPECT_EQ(breakLines("constexpr Tensor name;\n", 10), "constexpr Tensor name;\n");
  EXPECT_EQ(breakLines("#include \"runtime/Runtime.h\"\n", 10), "#include \"runtime/Runtime.h\"\n");
}

TEST(LineBreaks, MovesCommentsToTheLeftOrAboveTheirLine) {
  EXPECT_EQ(breakLines("  int x = f();      // what f says\n", 30), "  int x = f();  // what f says\n");
  EXPECT_EQ(breakLines("  int x = f(); // that is what f says\n", 25), "  // that is what f says\n"
                                                                       "  int x = f();\n");
}

// Names of a model may be of any length, and begin with anything.
TEST(LineBreaks, LeavesLongWordsBehindTheirComments) {
  EXPECT_EQ(breakLines("  Tensor abcdefghijklmnopqrs; // 1-7\n", 16), "  // 1-7\n"
                                                                      "  Tensor abcdefghijklmnopqrs;\n");
  EXPECT_EQ(breakLines("  Tensor abcdefghijklmnopqrs = f; // 1-7\n", 16), "  // 1-7\n"
                                                                          "  Tensor abcdefghijklmnopqrs = f;\n");
  EXPECT_EQ(breakLines("x = f(); // " + std::string(40, ' ') + "words and more\n", 16), "// words and\n"
                                                                                        "// more\n"
                                                                                        "x = f();\n");
}

TEST(LineBreaks, RepeatsTheBeginningOfComments) {
  EXPECT_EQ(breakLines("//   sluicec model.onnx --batch=4\n", 24), "//   sluicec model.onnx\n"
                                                                   "//   --batch=4\n");
  EXPECT_EQ(breakLines("  // abcdefghijklmn\n", 12), "  // abcdefg\n"
                                                     "  // hijklmn\n");
}

TEST(LineBreaks, TakesLiteralsApart) {
  EXPECT_EQ(breakLines("  .line = \"sluicec model.onnx --batch=4\",\n", 25), "  .line = \"sluicec \"\n"
                                                                             "      \"model.onnx \"\n"
                                                                             "      \"--batch=4\",\n");
  EXPECT_EQ(breakLines("x = \"a, (b // c, d\", e;\n", 12), "x = \"a, (b \"\n"
                                                           "    \"// c, \"\n"
                                                           "    \"d\", e;\n");
}

TEST(LineBreaks, KeepsEscapesWhole) {
  EXPECT_EQ(breakLines("f(\"\\001\\002\\\"\\\\\\003\");\n", 12), "f(\"\\001\\002\"\n"
                                                                 "    \"\\\"\\\\\"\n"
                                                                 "    \"\\003\");\n");
}
