// SPDX-License-Identifier: Apache-2.0
// What is said of the order of samples.
#include "test/unit/runtime/DataPrograms.h"

using namespace sluice;

TEST(Dataset, WarnsOfSamplesThatLieClassByClass) {
  Folder folder;
  const auto notes = [&](const std::vector<int64_t> &classes, bool shuffle = false) {
    const std::string count = std::to_string(classes.size());
    folder.write("input.npy", npyArray("<f4", "(" + count + ", 3, 2, 2)", std::vector<float>(12 * classes.size())));
    folder.write("target.npy", npyArray("<i8", "(" + count + ",)", classes));
    const Input inputs[] = {{"x", {}, host(0, {2, 3, 2, 2}), 0},
                            {"target", {}, host(96, {2}, Layout::RowMajor, DataType::I64), 5, Loss::none, false, true}};
    Program program = programWith(inputs);
    DataOptions options = from(folder.path);
    options.shuffle = shuffle;
    return Dataset(options, program).warnings();
  };
  EXPECT_EQ(notes({3, 3, 0, 0, 1, 1}).size(), 1u);
  EXPECT_NE(notes({3, 3, 0, 0, 1, 1})[0].find("class by class"), std::string::npos);
  EXPECT_TRUE(notes({3, 3, 0, 0, 1, 1}, true).empty());
  EXPECT_TRUE(notes({3, 3, 0, 3, 1, 1}).empty()); // one of the first class again
  EXPECT_TRUE(notes({2, 2, 2, 2, 2, 2}).empty()); // nothing to mix
  EXPECT_TRUE(notes({0, 1, 2, 3}).empty());       // a sample of each
}
