// SPDX-License-Identifier: Apache-2.0
// Folders that appear whole: what they replace, what they refuse to, and that nothing is written out of them.
#include "runtime/Errors.h"
#include "runtime/data/Image.h"
#include "runtime/files/OutputFolder.h"

#include "test/unit/runtime/Folder.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace sluice;
namespace fs = std::filesystem;

namespace {

const FileMark mark{2, "mine"};
const std::string one = "1 mine", two = "2 mine, too";

std::vector<std::string> namesIn(const Folder &folder) {
  std::vector<std::string> names;
  for (const auto &entry : fs::recursive_directory_iterator(folder.path))
    names.push_back(fs::relative(entry.path(), folder.path).string());
  std::sort(names.begin(), names.end());
  return names;
}

void write(const std::string &path, const std::vector<std::pair<std::string, std::string>> &files) {
  OutputFolder folder(path, mark);
  for (const auto &[name, bytes] : files)
    folder.write(name, bytes);
  folder.commit();
}

} // namespace

TEST(OutputFolders, AppearWhole) {
  Folder in;
  {
    OutputFolder folder(in / "masks/", mark);
    folder.write("a.png", one);
    folder.write("dogs/b.png", two);
    EXPECT_FALSE(in.has("masks"));
    folder.commit();
  }
  EXPECT_EQ(namesIn(in), (std::vector<std::string>{"masks", "masks/a.png", "masks/dogs", "masks/dogs/b.png"}));
  EXPECT_EQ(in.read("masks/dogs/b.png"), two);
}

TEST(OutputFolders, LeaveNothingWithoutCommit) {
  Folder in;
  write(in / "masks", {{"a.png", one}});
  OutputFolder(in / "masks", mark).write("b.png", two);
  EXPECT_EQ(namesIn(in), (std::vector<std::string>{"masks", "masks/a.png"}));
}

TEST(OutputFolders, ReplaceFormerOnesAsAWhole) {
  Folder in;
  write(in / "masks", {{"a.png", one}, {"dogs/b.png", one}});
  write(in / "masks/", {{"c.png", two}});
  EXPECT_EQ(namesIn(in), (std::vector<std::string>{"masks", "masks/c.png"}));
  fs::create_directory(in / "empty");
  write(in / "empty", {{"a.png", one}});
  EXPECT_EQ(in.read("empty/a.png"), one);
  fs::create_directory_symlink(in / "masks", in / "link");
  write(in / "link/", {{"d.png", one}});
  EXPECT_TRUE(fs::is_symlink(in / "link"));
  EXPECT_EQ(in.read("masks/d.png"), one);
}

TEST(OutputFolders, KeepWhatIsSomebodyElses) {
  Folder in;
  write(in / "masks", {{"a.png", one}});
  const auto open = [&] { OutputFolder(in / "masks/", mark); };
  for (const std::string &other : {std::string("notes.txt"), std::string(".hidden"), std::string("short")}) {
    in.write("masks/" + other, other == "short" ? "1 mi" : "something else");
    expectError<DataError>(open, "masks/" + other + ", which was not written there by this flag");
    fs::remove(in / ("masks/" + other));
  }
  fs::create_symlink(in / "masks/a.png", in / "masks/b.png");
  expectError<DataError>(open, "masks/b.png, which was not written there");
  fs::remove(in / "masks/b.png");
  open();
  // What comes while the folder is filled is seen, too.
  OutputFolder folder(in / "masks", mark);
  folder.write("c.png", two);
  in.write("masks/notes.txt", "something else");
  expectError<DataError>([&] { folder.commit(); }, "masks/notes.txt, which was not written there");
  EXPECT_EQ(in.read("masks/a.png"), one);
  in.write("file", "something else");
  expectError<DataError>([&] { OutputFolder(in / "file/", mark); }, "file: exists and is no folder");
  expectError<DataError>([&] { OutputFolder("./", mark); }, "the run was started in it");
  expectError<DataError>([&] { OutputFolder("/proc", mark); }, "a file system is mounted there");
  expectError<DataError>([&] { OutputFolder(in / "nowhere/masks", mark); }, "cannot write");
}

TEST(OutputFolders, NoNameLeadsOut) {
  Folder in;
  OutputFolder folder(in / "masks", mark);
  for (const char *name : {"../a.png", "a/../../b.png", "/tmp/a.png", "", "a//b.png", "./a.png", "a/.."})
    expectError<DataError>([&] { folder.write(name, one); }, "the name leads out of it");
  folder.write("a.png", one);
  expectError<DataError>([&] { folder.write("a.png", two); }, "cannot write"); // two samples of one name
}

/// A writer that was killed.
TEST(OutputFolders, RemoveWhatWasLeftBehind) {
  Folder in;
  const pid_t child = fork();
  if (child == 0) {
    OutputFolder folder(in / "masks", mark);
    folder.write("dogs/a.png", one);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(namesIn(in).size(), 3u);
  OutputFolder living(in / "others", mark);
  living.write("b.png", one);
  write(in / "masks", {{"c.png", two}});
  living.commit();
  EXPECT_EQ(namesIn(in), (std::vector<std::string>{"masks", "masks/c.png", "others", "others/b.png"}));
}

TEST(OutputFolders, MasksComeBackAsTheyWere) {
  for (const int bits : {8, 16}) {
    LabelMap mask{3, 2, {0, 1, 255, 7, 9, static_cast<uint16_t>(bits == 16 ? 65535 : 254)}};
    const std::string file = encodeMask(mask, bits);
    EXPECT_EQ(file.compare(maskPngHead, maskPngMark().size(), maskPngMark()), 0);
    const LabelMap back = decodeMask({file.begin(), file.end()}, "mask.png");
    EXPECT_EQ(back.width, 3);
    EXPECT_EQ(back.height, 2);
    EXPECT_EQ(back.values, mask.values);
  }
}
