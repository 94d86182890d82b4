// SPDX-License-Identifier: Apache-2.0
// CSV files: which column is what, and what of a field is bad data.
#include "test/unit/runtime/DataPrograms.h"

#include "runtime/Errors.h"

#include <cmath>

using namespace sluice;

TEST(Table, HasItsTargetByNameOrLast) {
  const Input list[] = {{"x", {}, host(0, {2, 2}), 0},
                        {"target", {}, host(0, {2}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  const auto read = [&](const std::string &csv) {
    folder.write("t.csv", csv);
    return readAll(from("csv:" + folder / "t.csv"), program);
  };
  const std::pair<std::vector<float>, std::vector<int64_t>> same = {{0.5f, -2, 3e4f, 4}, {1, 2}};
  EXPECT_EQ(read("\"a, b\",c,class\r\n 0.5 ,-2,1\r\n\r\n3e4,4,2\r\n"), same);
  EXPECT_EQ(read("target,a,b\n1,0.5,-2\n2,3e4,4"), same);
  const auto refused = [&](const std::string &csv, const std::string &why) {
    expectError<DataError>([&] { read(csv); }, why);
  };
  refused("", "an empty file");
  refused("a,b,c,d\n1,2,3,1\n", "has 3 numbers for 'x', which takes 2");
  refused("a,b,c\n1,2,1\n1,2\n", "row 2 has 2 fields, the first line has 3");
  refused("a,b,c\n1,2,1\n1,,2\n", "row 2: column 'b' holds '', input 'x' takes finite numbers; --on-bad-data=skip "
                                  "leaves such rows out, --on-bad-data=keep takes NaN");
  // As programs write whole numbers that have floats only.
  EXPECT_EQ(read("target,a,b\n1.0,0.5,-2\n2e0,3e4,4"), same);
  refused("target,a,b\n1.5,0.5,-2\n2,3e4,4", "row 1: column 'target' holds '1.5', input 'target' takes whole numbers");
  folder.write("t.csv", "a,b,c\n1,nan,1\n,5,2\n");
  DataOptions options = from("csv:" + folder / "t.csv");
  options.keepNan = true;
  const std::vector<float> kept = readAll(options, program).first;
  EXPECT_TRUE(std::isnan(kept[1]) && std::isnan(kept[2]));
  EXPECT_EQ(kept[0], 1);
  refused("a,b,c\n1,inf,1\n1,1,2\n", "row 1: column 'b' holds 'inf'");
  refused("a,b,c\n1,2,1\n1,1,3\n", "row 2 holds 3, 'target' must lie between 0 and 2");
  refused("a,b,c\n1,2,1\n1,1,x\n", "row 2: column 'c' holds 'x', input 'target' takes whole numbers");
}

// Whatever is kept: a loss would be NaN, and nobody would know from where.
TEST(Table, NoTargetIsNaN) {
  const Input list[] = {{"x", {}, host(0, {2, 1}), 0}, {"target", {}, host(64, {2, 1}), 0, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  folder.write("t.csv", "a,y\n1,\n2,3\n");
  DataOptions options = from("csv:" + folder / "t.csv");
  options.keepNan = true;
  std::vector<float> x(2), y(2);
  expectError<DataError>([&] { Dataset(options, program).gather({0, 0}, {x.data(), y.data()}); },
                         "row 1: column 'y' holds '', input 'target' takes finite numbers; --on-bad-data=skip leaves "
                         "such rows out");
  folder.write("input.npy", npyArray("<f4", "(2, 1)", std::vector<float>{NAN, 1}));
  folder.write("target.npy", npyArray("<f4", "(2, 1)", std::vector<float>{1, NAN}));
  options.where = folder.path;
  expectError<DataError>([&] { Dataset(options, program).gather({0, 0}, {x.data(), y.data()}); },
                         "holds NaN for 'target'");
}

/// Two inputs and a target of two numbers, and a table of two rows for them.
static const Input townInputs[] = {{"x", {}, host(0, {2, 4}), 0},
                                   {"city", {}, host(64, {2}, Layout::RowMajor, DataType::I64), 3},
                                   {"target", {}, host(128, {2, 2}), 0, Loss::none, false, true}};

static DataOptions ofTowns(Folder &folder) {
  folder.write("t.csv", "y1,id,f1,town,f2,colour,y2\n1,7,10,Rome,5,red,2\n3,8,20,Bonn,5,blue,4\n");
  return from("csv:" + folder / "t.csv");
}

/// Two inputs and a target of two numbers, by names; categories as ids and as a number for each; numbers standardized.
TEST(Table, HasColumnsByTheirNames) {
  const Program program = programWith(townInputs);
  Folder folder;
  DataOptions options = ofTowns(folder);
  options.columns = {{"x=f\\d|colour", "city=town", "target=y."}, {"town|colour"}, true, "", true};
  const auto read = [&](const DataOptions &by) {
    Dataset data(by, program);
    std::vector<float> x(8), y(4);
    std::vector<int64_t> city(2);
    data.gather({0, 0}, {x.data(), city.data(), y.data()});
    EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(city, (std::vector<int64_t>{1, 0})); // Bonn, Rome
    return std::pair(x, data.knownColumns());
  };
  const auto [x, known] = read(options);
  EXPECT_EQ(x, (std::vector<float>{-1, 0, 0, 1, 1, 0, 1, 0})); // f2 never changes; blue, red
  // Other data are taken as those that were trained on, whatever their own mean is.
  folder.write("u.csv", "f2,f1,town,colour\n6,15,Rome,red\n5,25,Rome,red\n");
  DataOptions later = from("csv:" + folder / "u.csv");
  later.targets = false;
  later.columns.known = known;
  later.columns.trains = false;
  Dataset data(later, program);
  std::vector<float> again(8), y(4);
  std::vector<int64_t> city(2);
  data.gather({0, 0}, {again.data(), city.data(), y.data()});
  EXPECT_EQ(again, (std::vector<float>{0, 1, 0, 1, 2, 0, 0, 1})); // in the order of training
  folder.write("u.csv", "f2,f1,town,colour\n6,15,Rome,green\n5,25,Rome,red\n");
  expectError<DataError>([&] { Dataset(later, program).gather({0, 0}, {again.data(), city.data(), y.data()}); },
                         "column 'colour' holds 'green', which is no category of the training data: 'blue', 'red'");
  expectError<DataError>([&] { checkKnownColumns("{}", "it"); }, "it is damaged");
  later.columns.columns = {"x=f.*"};
  expectError<UsageError>([&] { Dataset(later, program); }, "are those that the weights were trained with");
  DataOptions unknown = options;
  unknown.columns.trains = false;
  expectError<UsageError>([&] { Dataset(unknown, program); }, "are found when training");
  options.columns.columns = {"x=f.", "city=town", "target=z.*"};
  expectError<DataError>([&] { Dataset(options, program); },
                         "--columns 'target=z.*' matches no column, but 'y1', 'id'");
  options.columns.columns = {"x=f.", "city=town", "target=y."};
  expectError<DataError>([&] { Dataset(options, program); },
                         "has 2 numbers for 'x', which takes 4; its columns are 'f1', 'f2'; --columns");
  options.columns.columns = {"z=f."};
  expectError<UsageError>([&] { Dataset(options, program); },
                          "with the name of an input (x, city, target), got 'z=f.'");
  options.columns.columns = {};
  expectError<DataError>([&] { Dataset(options, program); }, "say which columns are whose");
  options.where = folder.path;
  expectError<UsageError>([&] { Dataset(options, program); }, "are of csv:FILE");
}

/// Wherever it stands among the targets.
TEST(Table, ATargetOfClassesGivesTheirNames) {
  const Input list[] = {{"x", {}, host(0, {2, 2}), 0},
                        {"kind", {}, host(64, {2}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true},
                        {"price", {}, host(128, {2, 1}), 0, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  folder.write("t.csv", "f1,f2,kind,price\n1,2,old,3\n2,3,new,4\n");
  DataOptions options = from("csv:" + folder / "t.csv");
  options.columns = {{"x=f.", "kind=kind", "price=price"}, {"kind"}, false, "", true};
  EXPECT_EQ(Dataset(options, program).classNames(), (ClassNames{{"", {"new", "old"}}}));
}

TEST(Table, EachTargetOfClassesHasItsNames) {
  const Input list[] = {{"x", {}, host(0, {2, 2}), 0},
                        {"kind", {}, host(64, {2}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true},
                        {"price", {}, host(128, {2, 1}), 0, Loss::none, false, true},
                        {"number", {}, host(192, {2}, Layout::RowMajor, DataType::I64), 9, Loss::none, false, true},
                        {"coat", {}, host(256, {2}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true}};
  Program program = programWith(list);
  const Output outputs[] = {{"a", {}, 1, "softmax-cross-entropy"},
                            {"b", {}, 2, "mse"},
                            {"c", {}, 3, "softmax-cross-entropy"},
                            {"d", {}, 4, "softmax-cross-entropy"}};
  program.outputs = outputs, program.outputCount = 4;
  Folder folder;
  folder.write("t.csv", "f1,f2,kind,price,number,coat\n1,2,old,3,8,long\n2,3,new,4,7,short\n");
  DataOptions options = from("csv:" + folder / "t.csv");
  options.columns = {
      {"x=f.", "kind=kind", "price=price", "number=number", "coat=coat"}, {"kind|coat"}, false, "", true};
  EXPECT_EQ(Dataset(options, program).classNames(),
            (ClassNames{{"kind", {"new", "old"}}, {"coat", {"long", "short"}}}));
}

/// Tables of several sizes that one input indexes: the smallest bounds them all, which is not the reader's fault.
TEST(Table, SaysWhatBoundsSeveralColumnsOfIds) {
  const Input both[] = {{"x", {}, host(0, {2, 2}), 0},
                        {"ids", {}, host(64, {2, 2}, Layout::RowMajor, DataType::I64), 2},
                        {"target", {}, host(128, {2, 2}), 0, Loss::none, false, true}};
  const Program program = programWith(both);
  Folder folder;
  DataOptions options = ofTowns(folder);
  folder.write("t.csv", "y1,f1,town,f2,colour,y2\n1,7,A,5,red,2\n1,7,B,5,blue,2\n1,7,C,5,red,2\n");
  options.columns = {{"x=f.", "ids=town|colour", "target=y."}, {"town|colour"}, true, "", true};
  expectError<DataError>([&] { Dataset(options, program); },
                         "column 'town' has 3 categories ('A', 'B', 'C'), 'ids' takes 2: the model needs a table, or "
                         "outputs, for as many; of several tables that one input indexes the smallest bounds all its "
                         "columns: export an input for each table");
}

/// Names that are misspelt, and categories that the model has no room for.
TEST(Table, NamesColumnsThatDoNotFit) {
  const Program program = programWith(townInputs);
  Folder folder;
  DataOptions options = ofTowns(folder);
  options.columns = {{}, {"town|colour"}, true, "", true};
  options.columns.columns = {"x=f.|color", "city=town", "target=y."};
  expectError<DataError>([&] { Dataset(options, program); },
                         "its columns are 'f1', 'f2'; no column matches --columns 'color'; --columns");
  options.columns.categorical = {"city"};
  expectError<DataError>([&] { Dataset(options, program); }, "--categorical 'city' matches no column, but 'y1', 'id'");
  options.columns.categorical = {"town|colour"};
  folder.write("t.csv", "y1,f1,town,f2,colour,y2\n1,7,A,5,red,2\n1,7,B,5,blue,2\n1,7,C,5,red,2\n1,7,D,5,red,2\n");
  options.columns.columns = {"x=f.|colour", "city=town", "target=y."};
  expectError<DataError>([&] { Dataset(options, program); },
                         "column 'town' has 4 categories ('A', 'B', 'C', 'D'), 'city' takes 3");
  folder.write("t.csv", "y1,f1,town,f2,colour,y2\n1,7,A,5,red,2\n1,7,B,5,blue,2\n1,7,,5,red,2\n1,7,B,5,red,2\n");
  expectError<DataError>([&] { Dataset(options, program); },
                         "row 3: column 'town' holds '', an empty field is no category; --on-bad-data=skip");
}

/// No sample becomes the names of the columns, and no name a sample.
TEST(Table, AsksWhatItsFirstLineIs) {
  const Input list[] = {{"x", {}, host(0, {1, 2}), 0},
                        {"target", {}, host(0, {1}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  const auto read = [&](const std::string &csv, const char *header = "") {
    folder.write("t.csv", csv);
    return readAll(from("csv:" + folder / "t.csv" + header), program);
  };
  using Read = std::pair<std::vector<float>, std::vector<int64_t>>;
  const Read both = {{0.5f, -2, 3e4f, 4}, {1, 2}}, last = {{3e4f, 4}, {2}};
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "0.5,-2,1\n3e4,4,2\n"),
            both);
  EXPECT_THAT(
      Dataset(from("csv:" + folder / "t.csv"), program).notes(),
      testing::ElementsAre(testing::HasSubstr("names no columns: its first line is a sample, the last column")));
  EXPECT_EQ(read("0.5,-2,1\n3e4,4,2\n", ",header=no"), both);
  EXPECT_EQ(read("0.5,-2,1\n3e4,4,2\n", ",header=yes"), last);
  EXPECT_EQ(read("0,1,2\n3e4,4,2\n", ",header=yes"), last);
  for (const char *first : {"0,1,2", "a,2019,c", "1,,2"})
    expectError<DataError>([&] { read(first + std::string("\n3e4,4,2\n")); },
                           std::string("the first line, '") + first + "', may name the columns or be a sample");
  expectError<DataError>(
      [&] { read("a;b;c\n3,5;4;2\n"); },
      "t.csv: the first line, 'a;b;c', has semicolons and no commas, which separate the fields of csv");
  expectError<DataError>([&] { read("1\t2\t1\n"); }, "has tabs and no commas");
  expectError<UsageError>([&] { read("1,2,1\n", ",header=maybe"); }, "header=yes or header=no, got 'maybe'");
}

/// A million bad rows are counted and ten of them told, and none is tried for every one before it.
TEST(Table, CountsBadRows) {
  const Input list[] = {{"x", {}, host(0, {1, 2}), 0},
                        {"target", {}, host(0, {1}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  std::string rows = "a,b,c\n";
  for (int i = 0; i < 20000; ++i)
    rows += "1,2\n";
  folder.write("t.csv", rows + "1,2,1\n");
  DataOptions options = from("csv:" + folder / "t.csv");
  options.skipBad = true;
  testing::internal::CaptureStderr();
  Dataset data(options, program);
  std::vector<float> x(2);
  std::vector<int64_t> y(1);
  for (int64_t i = 0; i < data.batches(); ++i) {
    data.gather({0, i}, {x.data(), y.data()});
    ASSERT_EQ(y[0], 1);
  }
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(data.skipped(), 20000);
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 10);
  EXPECT_THAT(told, testing::HasSubstr("row 10 has 2 fields, the first line has 3 (more are counted, not told)"));
}
