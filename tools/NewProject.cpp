// SPDX-License-Identifier: Apache-2.0
// See NewProject.h. All is made in a folder aside and looked at there, as the commands find it later.
#include "tools/NewProject.h"

#include "codegen/Home.h"
#include "frontend/Identity.h"
#include "frontend/OnnxFile.h"
#include "runtime/Printable.h"
#include "runtime/files/OutputFile.h"
#include "tools/Compilation.h"
#include "tools/Driver.h"
#include "tools/Failure.h"
#include "tools/TemporaryFolder.h"
#include "tools/TrainWords.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

using namespace sluice;
namespace fs = std::filesystem;

namespace {

constexpr char recipe[] = R"(# Flags of the program, without their dashes; those of the command line win.
data = "synthetic"   # random samples; yours: a folder with input.npy and target.npy, or KIND:PATH
steps = 200
lr = 0.01
log = "log.jsonl"
checkpoint = "run"
)";

int refuse(int status, const std::string &message) { return fail("sluice", status, message); }

std::string commandText(const std::string &program, const std::vector<std::string> &words) {
  std::string line = shellWord(program);
  for (const std::string &word : words)
    line += " " + shellWord(word);
  return line;
}

std::string readmeOf(const std::string &name, const std::string &train, const std::string &goOn) {
  return "# " + name + "\n\nCompile the model and train it as `recipe.toml` says:\n\n    " + train +
         "\n\nGo on from the checkpoint, and write the weights back into the model:\n\n    " + goOn +
         "\n\n`sluicec --help` lists flags for the first command, such as `--memory-budget=60%`; those of the program, "
         "and of\n`recipe.toml`, are in `./PROGRAM --help`.\n";
}

/// The model with its external data, which lie in its folder or below.
void copyModel(const OnnxFile &model, const fs::path &folder) {
  const fs::path from = fs::path(model.path()).parent_path();
  for (const std::string &file : modelFiles(model.path(), model.model())) {
    const fs::path to = folder / fs::path(file).lexically_relative(from.empty() ? "." : from);
    fs::create_directories(to.parent_path());
    fs::copy_file(file, to);
    fs::permissions(to, fs::perms::owner_write, fs::perm_options::add);
  }
}

/// Whether sluicec takes these words in the current folder; the exit status where it does not.
int checkModel(const std::vector<std::string> &words) {
  DriverOptions options;
  if (const std::optional<int> status = parseCommandLine(words, options))
    return *status;
  Result<OnnxFile> file = OnnxFile::read(options.model, options.spec.limits);
  if (!file)
    return refuse(1, file.error());
  Compilation compilation;
  if (Status imported = compilation.import(*file, options.spec); !imported)
    return fail("sluice", 1, imported.error(), compilation.notes());
  return 0;
}

/// Makes `folder` of a model and of the words that sluicec compiles it with.
/// Everything is made in a folder aside, in which the model is imported with the words that README.md will name, and
/// renamed at the end.
int make(const fs::path &folder, const std::string &model, const TrainWords &words) {
  const Result<OnnxFile> file = OnnxFile::read(model, {});
  if (!file)
    return refuse(1, file.error());
  TemporaryFolder aside(folder);
  if (aside.folder.empty())
    return refuse(1, folder.string() +
                         ": cannot be made: nothing can be made in the folder that it would be in: " + aside.reason);
  const fs::path inside = fs::absolute(aside.folder);
  copyModel(*file, inside);
  std::vector<std::string> train = words.compiler;
  std::replace(train.begin(), train.end(), model, fs::path(model).filename().string());
  fs::current_path(inside);
  if (const int status = checkModel(train))
    return status;
  train.insert(train.begin(), "train");
  train.emplace_back("--recipe=recipe.toml");
  const std::string first = commandText("sluice", train),
                    second = commandText("./" + words.made, {"--recipe=recipe.toml", "--resume=run", "--steps=400",
                                                             "--export=trained.onnx"});
  for (const auto &[name, text] : {std::pair<std::string, std::string>("recipe.toml", recipe),
                                   {"README.md", readmeOf(folder.filename().string(), first, second)}})
    writeFile(name, text, (folder / name).string());
  fs::permissions(inside,
                  fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read | fs::perms::others_exec,
                  fs::perm_options::add);
  fs::rename(inside, folder); // takes the place of an empty folder
  std::printf("made %s; next:\n  cd %s\n  %s\n", printable(folder.string()).c_str(),
              printable(shellWord(folder.string())).c_str(), printable(first).c_str());
  return 0;
}

/// Words are split as those of `sluice train`, whose command README.md will name.
int parse(const std::vector<std::string> &words) {
  if (words.empty() || words[0].compare(0, 1, "-") == 0 || words[0].empty())
    return refuse(2, "sluice new needs a folder: sluice new FOLDER [MODEL] [FLAG]...");
  std::vector<std::string> rest(words.begin() + 1, words.end());
  const bool given = !rest.empty() && rest[0].compare(0, 1, "-") != 0;
  const std::string model = given ? rest[0] : (codegen::findHome().sources / "examples/mlp.onnx").string();
  if (!given)
    rest.insert(rest.begin(), {model, "--batch=8"});
  const Result<TrainWords> split = splitTrainWords(rest);
  if (!split)
    return refuse(2, split.error());
  if (!split->program.empty())
    return refuse(2, split->program[0] + " is a flag of the program: write it into recipe.toml of the new folder");
  if (std::find(rest.begin(), rest.end(), "-o") != rest.end())
    return refuse(2, "-o makes no sense here: the program gets the model's name");
  fs::path folder = fs::absolute(words[0]).lexically_normal();
  if (!folder.has_filename())
    folder = folder.parent_path();
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(folder)) && (!fs::is_directory(folder) || !fs::is_empty(folder, ignored)))
    return refuse(1, words[0] + ": exists and is no empty folder; choose another name");
  return make(folder, model, *split);
}

} // namespace

int sluice::newProject(const std::vector<std::string> &words) {
  try {
    return parse(words);
  } catch (const fs::filesystem_error &error) {
    return refuse(1, error.path1().string() + ": " + error.code().message());
  } catch (const DataError &error) {
    return refuse(1, error.what());
  }
}
