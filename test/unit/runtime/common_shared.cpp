// SPDX-License-Identifier: Apache-2.0
// Inputs that all samples have in common.
#include "test/unit/runtime/DataPrograms.h"

#include "runtime/Errors.h"

using namespace sluice;

// All of a shared input comes with each batch, whoever reads its first sample; data hold it once.
TEST(SharedInputs, ComeWholeWithEachBatch) {
  static const Input shared[] = {{"x", {}, host(0, {2, 3}), 0},
                                 {"edges", {}, host(64, {2, 4}, Layout::RowMajor, DataType::I64), 3, Loss::none, true},
                                 {"scale", {}, host(128, {}), 0, Loss::none, true}};
  const Program program = programWith(shared);
  Folder folder;
  folder.write("x.npy", npyArray("<f4", "(5, 3)", std::vector<float>(15, 1)));
  folder.write("edges.npy", npyArray("<i4", "(2, 4)", std::vector<int32_t>{0, 1, 2, 0, 1, 2, 0, 1}));
  folder.write("scale.npy", npyArray("<f4", "()", std::vector<float>{0.25f}));
  Dataset data(from(folder.path), program);
  EXPECT_EQ(data.samples(), 5);
  for (int64_t first : {0, 2}) {
    std::vector<float> x(6);
    std::vector<int64_t> edges(8);
    float scale = 0;
    data.gather({0, first}, {x.data(), edges.data(), &scale});
    EXPECT_EQ(edges, (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1}));
    EXPECT_EQ(scale, 0.25f);
  }
  folder.write("edges.npy", npyArray("<i4", "(2, 4)", std::vector<int32_t>{0, 1, 2, 0, 1, 3, 0, 1}));
  expectError<DataError>([&] { Dataset(from(folder.path), program); },
                         folder.path + "/edges.npy holds 3, 'edges' must lie between 0 and 2");
  folder.write("edges.npy", npyArray("<i4", "(5, 4)", std::vector<int32_t>(20)));
  expectError<DataError>([&] { Dataset(from(folder.path), program); },
                         "is int32 (5, 4), input 'edges', which all samples have in common, takes int64 (2, 4)");
  expectError<DataError>([&] { Dataset(from("csv:" + folder.path), program); },
                         "input 'edges' is one that all samples have in common, which only arrays hold (a folder of "
                         ".npy files, npz, safetensors), not csv:");
}
