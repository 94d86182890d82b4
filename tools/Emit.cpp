// SPDX-License-Identifier: Apache-2.0
// Output of sluicec: textual levels, source, project, binary. Everything is written into a folder beside the target and
// moved when done.
#include "tools/Emit.h"

#include "codegen/BuildExecutable.h"
#include "codegen/BuildLibrary.h"
#include "codegen/EmitProgram.h"
#include "codegen/RunCompiler.h"
#include "codegen/Text.h"
#include "codegen/WriteWeights.h"
#include "frontend/ExportTemplate.h"
#include "frontend/Identity.h"
#include "frontend/StoredMatrix.h"
#include "ir/TensorName.h"
#include "ir/Train.h"
#include "passes/kernels/HostKernels.h"
#include "runtime/files/File.h"
#include "runtime/files/OutputFile.h"
#include "tools/FilePreparation.h"
#include "tools/PlanReport.h"
#include "tools/TemporaryFolder.h"
#include "tools/Version.h"

#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <sys/file.h>
#include <tuple>
#include <unistd.h>

using namespace mlir;
using namespace sluice;
namespace fs = std::filesystem;

namespace {

Error fileError(const fs::path &path, const std::string &what) { return Error{path.string() + ": " + what}; }

/// `name`: where the file will lie.
Status writeText(const fs::path &path, const std::string &text, const fs::path &name) {
  try {
    writeFile(path.string(), text, name.string());
  } catch (const DataError &error) {
    return Error{error.what()};
  }
  return Success{};
}

/// Moves a file to its place. Its bytes are on the disk first: a name without them would be worse than the file before.
/// What came there since it was free is asked for once more.
Status moveTo(const fs::path &from, const fs::path &to, Made made, const Destinations &destinations) {
  int file = open(from.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = file >= 0 && fsync(file) == 0;
  const int failure = errno;
  if (file >= 0)
    close(file);
  if (!synced)
    return fileError(to, std::string("cannot be written: ") + std::strerror(failure));
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0)
    return Success{};
  // There is a file, or the file system knows no such rename.
  if (Status free = destinations.check(to, made); !free)
    return free;
  std::error_code error;
  fs::rename(from, to, error);
  if (error)
    return fileError(to, "cannot be written: " + error.message());
  return Success{};
}

/// One at a time moves files into a folder, so that the files of a program are those of one compilation.
class Turn {
public:
  explicit Turn(const fs::path &output)
      : folder(open(parentFolder(output.string()).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (folder >= 0 && flock(folder, LOCK_EX) != 0 && errno == EINTR)
      ;
  }
  ~Turn() {
    if (folder >= 0)
      close(folder);
  }
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;

private:
  int folder;
};

std::string levelText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  OpPrintingFlags flags;
  module->print(out, flags.enableDebugInfo().useLocalScope());
  return text + "\n";
}

std::string programFile(const DriverOptions &options) {
  return std::string("program") + factsOf(options.pipeline.target).suffix;
}

/// Source, weights, and what --emit makes of them, in `folder`.
class ProgramWriter {
public:
  ProgramWriter(const DriverOptions &options, const OnnxFile &file, ModuleOp module, fs::path folder, std::string name)
      : options(options), file(file), module(module), symbols(module), folder(std::move(folder)),
        name(std::move(name)) {}

  /// The template comes before the source, which holds the places of its tensors.
  Status write() {
    codegen::EmitOptions emit;
    emit.model = fs::path(options.model).filename().string();
    emit.commandLine = options.commandLine;
    emit.identity = modelIdentity(file.model());
    emit.target = options.pipeline.target;
    emit.threads = options.pipeline.threads;
    emit.level = reachableLevel(options.pipeline.level);
    emit.workspaceLimit = options.pipeline.workspaceLimit
                              ? options.pipeline.workspaceLimit
                              : factsOf(options.pipeline.target).workspaceLimit(options.spec.precision);
    emit.hostBudget = options.pipeline.hostBudget;
    emit.oneMemory = options.pipeline.oneMemory && !options.pipeline.budget.empty();
    if (codegen::needsWeights(module)) {
      emit.weightsFile = true;
      emit.weightsName = name + ".safetensors";
      emit.preparation = preparationOf(file);
    }
    ExportTemplate exported;
    if (options.emit == Emit::Library)
      emit.library = codegen::libraryIdentifier(name);
    emit.dataFormats = options.dataFormats;
    // A project whose weights are drawn stays small: it carries no template either.
    const bool hasTemplate = options.emit == Emit::Binary || options.emit == Emit::Library ||
                             (options.emit == Emit::Project && emit.weightsFile);
    if (Status written = writeTemplate(hasTemplate, exported, emit); !written)
      return written;
    const std::string program = codegen::emitProgram(module, emit);
    if (Status source = writeText(folder / programFile(options), program, outputPath(options)); !source)
      return source;
    if (options.emit == Emit::Source || !emit.weightsFile)
      return Success{};
    const Status weights =
        codegen::writeWeights((folder / emit.weightsName).string(), emit.identity, module, [&](StringRef tensor) {
          const FileTensor *found = file.tensor(tensor.str());
          codegen::SourceTensor source{found ? found->bytes : std::string_view()};
          if (found && found->stored)
            source.form = [stored = found->stored] { return stored->bytes(); };
          return source;
        });
    return weights ? Status(Success{}) : Error{options.model + ": " + weights.error()};
  }

private:
  /// Fills `exported`, which `emit` refers to from then on.
  Status writeTemplate(bool wanted, ExportTemplate &exported, codegen::EmitOptions &emit) {
    auto made = wanted ? exportTemplate(file, trainedTensors()) : noTemplate(file);
    if (!made)
      return made.takeError();
    exported = std::move(*made);
    emit.exportOffset = [&](StringRef variable) {
      auto found = exported.offsets.find(originOf(variable));
      return found == exported.offsets.end() ? int64_t(-1) : found->second;
    };
    if (!exported.bytes.empty()) {
      emit.exportTemplate = name + ".onnx-template";
      const fs::path path = outputPath(options).parent_path() / emit.exportTemplate;
      return writeText(folder / emit.exportTemplate, exported.bytes, path);
    }
    if (wanted)
      std::cerr << "sluicec: note: with its weights the model is larger than the 2 GiB that one ONNX file can hold: "
                   "the program exports FILE.safetensors, but no ONNX"
                << std::endl;
    return Success{};
  }

  /// ONNX name of a variable's tensor.
  std::string originOf(StringRef variable) {
    Operation *op = symbols.lookup(variable);
    auto source = op ? op->getAttrOfType<StringAttr>(train::sourceAttribute) : StringAttr();
    return source ? source.str() : variable.str();
  }

  std::vector<TrainedTensor> trainedTensors() {
    std::vector<TrainedTensor> tensors;
    for (auto variable : module.getOps<train::VariableOp>())
      if (variable.getRole() == train::Role::Parameter || variable.getRole() == train::Role::State)
        tensors.push_back({originOf(variable.getSymName()), variable.wholeType().getShape().vec()});
    return tensors;
  }

  const DriverOptions &options;
  const OnnxFile &file;
  ModuleOp module;
  SymbolTable symbols;
  fs::path folder;
  std::string name;
};

/// The folder that was worked in becomes the project: nobody sees half of one.
Status emitProject(const DriverOptions &options, const fs::path &folder, const fs::path &output,
                   const Destinations &destinations) {
  codegen::Names names;
  if (Status made =
          codegen::writeProjectFiles(folder.string(), names.unique(output.filename().string()), options.pipeline.target,
                                     options.cpu, !options.spec.ranks.empty(), compilerVersionText());
      !made)
    return Error{options.output + ": " + made.error()};
  Turn turn(output);
  if (Status free = destinations.checkProject(output); !free)
    return free;
  std::error_code ignored;
  fs::permissions(folder,
                  fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read |
                      fs::perms::others_exec,
                  ignored);
  // A former project changes places with the new one and goes with the workshop.
  if (fs::exists(output, ignored) && !fs::remove(output, ignored))
    return renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, output.c_str(), RENAME_EXCHANGE) == 0
               ? Status(Success{})
               : fileError(output, std::string("cannot be written: ") + std::strerror(errno));
  std::error_code error;
  fs::rename(folder, output, error);
  return error ? fileError(output, "cannot be written: " + error.message()) : Status(Success{});
}

/// A file that a compilation leaves.
struct Left {
  std::string name;
  Made made;
  bool always; ///< even where there is none yet
};

std::vector<Left> filesOf(Emit emit, const std::string &name) {
  std::vector<Left> files = {{name + ".safetensors", Made::Weights, false},
                             {name + ".onnx-template", Made::Template, false}};
  if (emit != Emit::Library)
    files.push_back({name, Made::Program, true});
  else
    files.insert(files.end(), {{name + ".h", Made::Header, true},
                               {name + ".pc", Made::Package, true},
                               {"lib" + name + ".a", Made::Archive, true},
                               {"lib" + name + ".so", Made::Library, true}});
  return files;
}

Status build(const DriverOptions &options, const fs::path &folder, const fs::path &output, const std::string &name) {
  const std::string source = (folder / programFile(options)).string(), program = (folder / name).string();
  if (options.emit == Emit::Library) {
    Status built = codegen::buildLibrary(source, folder.string(), name, options.pipeline.target, options.cpu,
                                         compilerVersionText());
    return built ? Status(Success{}) : Error{output.string() + ": " + built.error()};
  }
  if (Status made = codegen::buildExecutable(source, program, options.pipeline.target, options.cpu,
                                             !options.spec.ranks.empty(), compilerVersionText());
      !made)
    return Error{output.string() + ": " + made.error()};
  if (std::error_code ignored; !fs::is_regular_file(program, ignored))
    return fileError(output,
                     "the C++ compiler said that it has built the program, but there is none; set CXX to another one");
  return Success{};
}

/// A program or a library.
Status emitBinary(const DriverOptions &options, const fs::path &folder, const fs::path &output, const std::string &name,
                  const Destinations &destinations) {
  std::vector<std::tuple<fs::path, fs::path, Made>> moves;
  // All or nothing: none is moved while another cannot be. Asked twice: compiling takes a while.
  auto check = [&]() -> Status {
    moves.clear();
    for (const auto &[file, made, always] : filesOf(options.emit, name)) {
      const fs::path from = folder / file, to = output.parent_path() / file;
      if (!always && !fs::exists(from))
        continue;
      moves.emplace_back(from, to, made);
      if (Status free = destinations.check(to, made); !free)
        return free;
    }
    return Success{};
  };
  if (Status free = check(); !free)
    return free;
  codegen::limitCompiler({options.spec.limits.compilerSeconds, options.spec.limits.compilerBytes});
  if (Status built = build(options, folder, output, name); !built)
    return built;
  Turn turn(output);
  if (Status free = check(); !free)
    return free;
  for (const auto &[from, to, made] : moves)
    if (Status moved = moveTo(from, to, made, destinations); !moved)
      return moved;
  return Success{};
}

} // namespace

Status sluice::writeReportFile(const fs::path &output, const Sweep &sweep, const Destinations &destinations) {
  if (Status free = destinations.check(output, Made::Report); !free)
    return free;
  try {
    const std::string text = output.extension() == ".csv" ? csvOf(sweep) : htmlOf(sweep);
    OutputFile file(output.string());
    file.write(text.data(), text.size());
    file.commit();
  } catch (const DataError &error) {
    return Error{error.what()};
  }
  return Success{};
}

Status sluice::checkDestination(const DriverOptions &options, const OnnxFile &file) {
  if (options.emit <= Emit::Placed && options.output.empty())
    return Success{};
  const Destinations destinations(inputsOf(options, modelFiles(file.path(), file.model())), options.force);
  const fs::path output = outputPath(options);
  if (options.emit == Emit::Project)
    return destinations.checkProject(output);
  if (options.emit == Emit::Library) {
    for (const auto &[file, made, always] : filesOf(options.emit, output.filename().string()))
      if (Status free = always ? destinations.check(output.parent_path() / file, made) : Success{}; !free)
        return free;
    return Success{};
  }
  return destinations.check(output, options.emit <= Emit::Placed   ? Made::Level
                                    : options.emit == Emit::Source ? Made::Source
                                                                   : Made::Program);
}

/// The output's place is looked at again, as it may have changed while the plan was made.
Status sluice::emit(const DriverOptions &options, const OnnxFile &file, ModuleOp module) {
  if (options.emit <= Emit::Placed && options.output.empty()) {
    llvm::outs() << levelText(module);
    return Success{};
  }
  const fs::path output = outputPath(options);
  if (Status free = checkDestination(options, file); !free)
    return free;
  TemporaryFolder workshop(output);
  if (workshop.folder.empty())
    return fileError(output, "cannot be written: nothing can be made in its folder: " + workshop.reason);
  const Destinations destinations(inputsOf(options, modelFiles(file.path(), file.model())), options.force);
  if (options.emit <= Emit::Placed) {
    if (Status text = writeText(workshop.folder / "level.mlir", levelText(module), output); !text)
      return text;
    return moveTo(workshop.folder / "level.mlir", output, Made::Level, destinations);
  }
  std::string name = output.filename().string();
  ProgramWriter writer(options, file, module, workshop.folder, name);
  if (Status written = writer.write(); !written)
    return written;
  if (options.emit == Emit::Source)
    return moveTo(workshop.folder / programFile(options), output, Made::Source, destinations);
  return options.emit == Emit::Project ? emitProject(options, workshop.folder, output, destinations)
                                       : emitBinary(options, workshop.folder, output, name, destinations);
}
