// SPDX-License-Identifier: Apache-2.0
// Runs the C++ compiler on emitted source, with the runtime's headers and library; copies what projects need.
#include "codegen/BuildExecutable.h"

#include "codegen/Home.h"
#include "codegen/RunCompiler.h"
#include "codegen/Toolchain.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <filesystem>

namespace fs = std::filesystem;
using namespace sluice;
using namespace sluice::codegen;

Status sluice::codegen::buildExecutable(const std::string &source, const std::string &executable, Target target,
                                        const std::string &cpu, bool ranks, const std::string &version) {
  Result<Toolchain> with = findToolchain(target, cpu, ranks);
  if (!with)
    return with.takeError();
  std::vector<std::string> arguments = {with->compiler};
  llvm::append_range(arguments, with->inPrograms);
  llvm::append_range(arguments, with->compile);
  llvm::append_range(arguments, std::vector<std::string>{versionFlag(version), source, "-o", executable});
  llvm::append_range(arguments, with->ranks);
  arguments.push_back(with->runtime);
  llvm::append_range(arguments, with->link);
  // Temporary files go where the caller's do.
  return runCompiler(with->compiler, arguments, fs::path(executable).parent_path().string());
}

/// CMakeLists.txt of a standalone project; runtime/CMakeLists.txt is the one of the repository.
static std::string projectLists(const fs::path &form, const std::string &name, const std::string &cpu, bool ranks,
                                const std::string &version) {
  auto file = llvm::MemoryBuffer::getFile(form.string());
  std::string text = file ? (*file)->getBuffer().str() : "";
  for (const auto &[word, value] : {std::pair{std::string("@name@"), name},
                                    {std::string("@cpu@"), cpu},
                                    {std::string("@version@"), version},
                                    {std::string("@ranks@"), std::string(ranks ? "ON" : "OFF")}})
    for (size_t at; (at = text.find(word)) != std::string::npos;)
      text.replace(at, word.size(), value);
  return text;
}

static Status copyLibrary(const HeaderLibrary &library, const fs::path &to) {
  if (!fs::exists(library.headers))
    return Error{"headers that the project needs are missing: looked in " + library.headers.string()};
  fs::create_directories(to.parent_path());
  fs::copy(library.headers, to, fs::copy_options::recursive);
  if (fs::exists(library.licence))
    fs::copy_file(library.licence, to / "LICENSE", fs::copy_options::overwrite_existing);
  return Success{};
}

/// What whoever gets the folder should know.
static std::string readmeOf(const std::string &name, sluice::Target target) {
  const bool cuda = target == sluice::Target::Cuda;
  const std::string source = std::string("program") + sluice::factsOf(target).suffix;
  return "# " + name + "\n\nA program that trains one model, written by Sluice's compiler; `" + source +
         "` says of which model, with which command, and what it plans.\n\nIt needs CMake, " +
         (cuda ? "nvcc, cuDNN" : "a C++17 compiler, oneDNN (Debian: libdnnl-dev)") +
         ", libjpeg-turbo, libpng and zlib:\n\n```sh\ncmake -B build\ncmake --build build\n./build/" + name +
         " --help\n```\n\nWeights (`*.safetensors`) and the template of exports (`*.onnx-template`), where there are "
         "any, are copied beside the program.\n\nThe runtime in `runtime/` is Sluice's, under the licence in "
         "`LICENSE`; "
         "libraries in `third_party/` have theirs beside them. The weights are those of the model, under its terms.\n";
}

/// Only runtime sources of this target go along: a project must not need a toolkit that it does not use.
Status sluice::codegen::writeProjectFiles(const std::string &folder, const std::string &name, Target target,
                                          const std::string &cpu, bool ranks, const std::string &version) {
  const Home home = findHome();
  const fs::path project = folder;
  if (!fs::exists(home.sources / "runtime"))
    return Error{"the runtime's sources are missing: looked in " + home.sources.string()};
  std::string lists = projectLists(home.sources / "codegen" / factsOf(target).project, name, cpu, ranks, version);
  try {
    fs::copy(home.sources / "runtime", project / "runtime", fs::copy_options::recursive);
    for (const TargetFacts &other : targetTable)
      if (other.target != target)
        fs::remove_all(project / "runtime" / other.name);
    if (!ranks)
      fs::remove_all(project / "runtime/mpi");
    if (!ranks || target != Target::Cuda)
      fs::remove_all(project / "runtime/nccl");
    std::vector<std::pair<const HeaderLibrary *, const char *>> libraries = {{&home.json, "third_party/nlohmann"},
                                                                             {&home.toml, "third_party/toml++"}};
    if (target == Target::Cuda)
      libraries.push_back({&home.cudnnFrontend, "third_party/cudnn_frontend/include"});
    for (const auto &[library, folder] : libraries)
      if (Status copied = copyLibrary(*library, project / folder); !copied)
        return copied;
    if (!fs::exists(home.sources / "LICENSE"))
      return Error{"Sluice's licence is missing: looked in " + home.sources.string()};
    fs::copy_file(home.sources / "LICENSE", project / "LICENSE");
  } catch (const fs::filesystem_error &error) {
    return Error{error.what()};
  }
  if (lists.empty())
    return Error{"cannot write CMakeLists.txt: its form is missing in " + home.sources.string()};
  Status written = writeText(project.string(), "CMakeLists.txt", lists);
  return written ? writeText(project.string(), "README.md", readmeOf(name, target)) : written;
}
