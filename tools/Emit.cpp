// SPDX-License-Identifier: Apache-2.0
// Output of sluicec: textual levels, source, project, binary. Everything is written into a folder beside the target and moved when done.
#include "tools/Emit.h"

#include "codegen/BuildExecutable.h"
#include "codegen/EmitProgram.h"
#include "codegen/Text.h"
#include "codegen/WriteWeights.h"
#include "frontend/ExportTemplate.h"
#include "ir/Train.h"
#include "passes/CudaKernels.h"
#include "tools/PlanReport.h"
#include "tools/Workshop.h"

#include "llvm/Support/raw_ostream.h"

#include <filesystem>
#include <fstream>

using namespace mlir;
using namespace sluice;
namespace fs = std::filesystem;

namespace {

Error fileError(const fs::path &path, const std::string &what) { return Error{path.string() + ": " + what}; }

Status writeText(const fs::path &path, const std::string &text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out)
    return fileError(path, "cannot be written");
  return Success{};
}

/// Renaming replaces whatever has the name, were it a device.
Status checkReplaceable(const fs::path &path) {
  std::error_code ignored;
  fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status))
    return fileError(path, "is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status))
    return fileError(path, "exists and is no regular file");
  return Success{};
}

Status moveTo(const fs::path &from, const fs::path &to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error)
    return fileError(to, "cannot be written: " + error.message());
  return Success{};
}

std::string levelText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  OpPrintingFlags flags;
  module->print(out, flags.enableDebugInfo().useLocalScope());
  return text + "\n";
}

const char *programFile(const DriverOptions &options) { return options.target == "cuda" ? "program.cu" : "program.cpp"; }

/// Source, weights, and what --emit makes of them, in `folder`.
class ProgramWriter {
public:
  ProgramWriter(const DriverOptions &options, const OnnxFile &file, ModuleOp module, fs::path folder, std::string name)
      : options(options), file(file), module(module), symbols(module), folder(std::move(folder)), name(std::move(name)) {}

  Status write() {
    codegen::EmitOptions emit;
    emit.model = fs::path(options.model).filename().string();
    emit.commandLine = options.commandLine;
    emit.threads = options.threads;
    emit.workspaceLimit = options.pipeline.workspaceLimit ? options.pipeline.workspaceLimit : defaultCudaWorkspace(options.spec.precision);
    if (codegen::needsWeights(module)) {
      emit.weightsFile = true;
      emit.weightsName = name + ".safetensors";
    }
    ExportTemplate exported;
    // A project whose weights are drawn stays small: it carries no template either.
    if (options.emit == Emit::Binary || (options.emit == Emit::Project && emit.weightsFile)) {
      auto built = exportTemplate(file, trainedTensors());
      if (!built)
        return built.takeError();
      exported = std::move(*built);
      emit.exportTemplate = name + ".onnx-template";
      emit.exportOffset = [&](StringRef variable) {
        auto found = exported.offsets.find(originOf(variable));
        return found == exported.offsets.end() ? int64_t(-1) : found->second;
      };
      if (Status written = writeText(folder / emit.exportTemplate, exported.bytes); !written)
        return written;
    }
    if (Status source = writeText(folder / programFile(options), codegen::emitProgram(module, emit)); !source)
      return source;
    if (options.emit == Emit::Source || !emit.weightsFile)
      return Success{};
    std::string error = codegen::writeWeights((folder / emit.weightsName).string(), module, [&](StringRef tensor) {
      const FileTensor *found = file.tensor(tensor.str());
      return found ? found->bytes : std::string_view();
    });
    if (!error.empty())
      return Error{options.model + ": " + error};
    return Success{};
  }

private:
  /// ONNX name of a variable's tensor.
  std::string originOf(StringRef variable) {
    Operation *op = symbols.lookup(variable);
    auto source = op ? op->getAttrOfType<StringAttr>("train.source") : StringAttr();
    return source ? source.str() : variable.str();
  }

  std::vector<TrainedTensor> trainedTensors() {
    std::vector<TrainedTensor> tensors;
    for (auto variable : module.getOps<train::VariableOp>())
      if (variable.getRole() == train::Role::Parameter || variable.getRole() == train::Role::State)
        tensors.push_back({originOf(variable.getSymName()), variable.getType().getShape().vec()});
    return tensors;
  }

  const DriverOptions &options;
  const OnnxFile &file;
  ModuleOp module;
  SymbolTable symbols;
  fs::path folder;
  std::string name;
};

Status emitProject(const DriverOptions &options, const fs::path &folder, const fs::path &output) {
  codegen::Names names;
  if (std::string error = codegen::writeProjectFiles(folder.string(), names.unique(output.filename().string()), options.target); !error.empty())
    return Error{options.output + ": " + error};
  if (fs::exists(output) && !(fs::is_directory(output) && fs::is_empty(output)))
    return fileError(output, "exists and is no empty folder");
  std::error_code ignored;
  fs::permissions(folder, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read | fs::perms::others_exec, ignored);
  fs::remove(output, ignored);
  return moveTo(folder, output);
}

Status emitBinary(const DriverOptions &options, const fs::path &folder, const fs::path &output, const std::string &name) {
  if (std::string error = codegen::buildExecutable((folder / programFile(options)).string(), (folder / name).string(), options.target); !error.empty())
    return Error{output.string() + ": " + error};
  // All or nothing: none is moved while another cannot be.
  std::vector<std::pair<fs::path, fs::path>> moves;
  for (const char *suffix : {".safetensors", ".onnx-template", ""})
    if (fs::path made = folder / (name + suffix); fs::exists(made))
      moves.emplace_back(made, output.parent_path() / made.filename());
  for (const auto &[from, to] : moves)
    if (Status replaceable = checkReplaceable(to); !replaceable)
      return replaceable;
  for (const auto &[from, to] : moves)
    if (Status moved = moveTo(from, to); !moved)
      return moved;
  return Success{};
}

} // namespace

Status sluice::writeReportFile(const DriverOptions &options, const Sweep &sweep) {
  fs::path output = options.output.empty() ? fs::path(options.model).stem().string() + "-report.html" : options.output;
  if (fs::is_directory(output))
    return fileError(output, "is a folder");
  Workshop workshop(output);
  if (workshop.folder.empty())
    return fileError(output, "cannot be written: its folder is missing or not writable");
  if (Status text = writeText(workshop.folder / "report", output.extension() == ".csv" ? csvOf(sweep) : htmlOf(sweep)); !text)
    return text;
  return moveTo(workshop.folder / "report", output);
}

Status sluice::emit(const DriverOptions &options, const OnnxFile &file, ModuleOp module) {
  if (options.emit <= Emit::Placed && options.output.empty()) {
    llvm::outs() << levelText(module);
    return Success{};
  }
  fs::path output = options.output;
  if (output.empty())
    output = fs::path(options.model).stem().string() + (options.emit == Emit::Source ? (options.target == "cuda" ? ".cu" : ".cpp") : options.emit == Emit::Project ? "-project" : "");
  // What a link names is replaced, not the link; the number ends circles.
  for (int links = 0; links < 40 && fs::is_symlink(output); ++links)
    output = output.parent_path() / fs::read_symlink(output);
  if (options.emit != Emit::Project)
    if (Status replaceable = checkReplaceable(output); !replaceable)
      return replaceable;
  Workshop workshop(output);
  if (workshop.folder.empty())
    return fileError(output, "cannot be written: its folder is missing or not writable");
  if (options.emit <= Emit::Placed) {
    if (Status text = writeText(workshop.folder / "level.mlir", levelText(module)); !text)
      return text;
    return moveTo(workshop.folder / "level.mlir", output);
  }
  std::string name = output.filename().string();
  ProgramWriter writer(options, file, module, workshop.folder, name);
  if (Status written = writer.write(); !written)
    return written;
  if (options.emit == Emit::Source)
    return moveTo(workshop.folder / programFile(options), output);
  return options.emit == Emit::Project ? emitProject(options, workshop.folder, output) : emitBinary(options, workshop.folder, output, name);
}
