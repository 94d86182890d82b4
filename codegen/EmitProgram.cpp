// SPDX-License-Identifier: Apache-2.0
// The order of the emitted document: preface, slots, events, fused regions, kernels, functions of the step, tables,
// main.
#include "codegen/EmitProgram.h"

#include "codegen/Document.h"
#include "codegen/LineBreaks.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::codegen;

static std::string prediction(train::PlanAttr plan) {
  const double seconds = plan.getSeconds().getValueAsDouble(), keepSeconds = plan.getKeepSeconds().getValueAsDouble();
  if (!(keepSeconds > 0))
    return "";
  return llvm::formatv("// Predicted: {0:F1} ms a step, {1:F1} % more than keep.\n", seconds * 1e3,
                       100 * (seconds / keepSeconds - 1));
}

/// What a reader wants first: which model, which command, how much memory, and how long a step is predicted to take.
std::string codegen::emitPreface(const Document &d) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "// " << commentText(d.options.model) << ": one training step and one evaluation batch, written by\n//   "
      << commentText(d.options.commandLine) << "\n";
  const int64_t device = d.step.bytesOf(sched::Space::Device);
  out << "// Strategy " << d.plan.getStrategy().getValue() << ": " << device << " bytes on the device ("
      << sizeText(device) << "; keep needs " << sizeText(d.plan.getKeepArena())
      << (d.options.oneMemory ? " with the host's" : "") << "), " << d.step.bytesOf(sched::Space::Host)
      << " bytes on the host";
  if (d.step.getPool())
    out << ", of them " << *d.step.getPool() << " for packed tensors";
  out << ".\n" << prediction(d.plan);
  if (d.options.library.empty())
    out << "// Build it with the project's CMakeLists.txt, or compile it and link the runtime library; see --help of "
           "the "
           "program for its flags.\n";
  out << "#include \"runtime/Runtime.h\"\n"
      << (d.options.library.empty() ? "" : "#include \"runtime/library/Library.h\"\n")
      << "\n#include <cmath>\n#include <memory>\n\nusing namespace sluice;\n\nnamespace {\n";
  return text;
}

/// One line a slot: name, place, type, and what lives there in which steps.
static std::string slotLine(const Document &d, sched::BufferOp buffer) {
  Value value = buffer.getBuffer();
  RankedTensorType type = d.typeOf(value);
  const StringRef space = sched::stringifySpace(buffer.getSpace());
  const std::string place = buffer.getSpace() <= sched::Space::Host
                                ? space.str() + "("
                                : "slotIn(Space::" + space.take_front().upper() + space.drop_front().str() + ", ";
  std::string offset = hexOffset(buffer.getOffset().value_or(0));
  std::string text = "constexpr Tensor " + d.nameOf(value) + " = ";
  bool isScratch = llvm::all_of(value.getUsers(), [&](Operation *user) {
    auto run = dyn_cast<sched::RunOp>(user);
    return run && run.getScratch() == value;
  });
  if (isScratch && !value.use_empty())
    text += "scratch(" + offset + ", " + std::to_string(buffer.getBytes()) + ");";
  else
    text += place + offset + ", " + shapeText(type) + typeArguments(type) + ");";
  std::string comment;
  if (buffer.getFirst())
    comment = std::to_string(*buffer.getFirst()) + "-" + std::to_string(*buffer.getLast());
  if (isScratch)
    comment += " workspace";
  std::string node = train::nodeName(buffer.getLoc());
  if (!node.empty() && !buffer.getVariable())
    comment += "  " + node;
  text.resize(std::max<size_t>(text.size(), 84), ' ');
  return text + " // " + commentText(comment.empty() ? sizeText(buffer.getBytes()) : comment) + "\n";
}

/// In the order in which one reads a memory map: what outlives steps, inputs, transients, other arenas. Evaluation's
/// transients lie in the bytes of the step's, as the two never run at once.
std::string codegen::emitSlots(const Document &d) {
  std::string text;
  llvm::raw_string_ostream out(text);
  auto list = [&](sched::ProgramOp program, llvm::function_ref<bool(sched::BufferOp)> wanted) {
    if (program)
      for (auto buffer : program.getBody().getOps<sched::BufferOp>())
        if (wanted(buffer) && buffer.getBuffer() && d.isDeclaredBy(buffer))
          out << slotLine(d, buffer);
  };
  out << "\n// ---- Device memory: what outlives a step. Variables, then results.\n";
  for (sched::ProgramOp program : d.programs())
    list(program, [](sched::BufferOp b) { return b.outlivesStep() && !b.getInput() && b.onDevice(); });
  out << "\n// Inputs have two slots: the next batch arrives in one while a step reads the other. Staging slots lie in "
         "host memory.\n";
  out << d.inputDeclarations();
  for (const BucketPrograms &bucket : llvm::reverse(d.buckets)) {
    const std::string of = bucket.name.empty() ? "" : " of " + commentText(bucket.name);
    out << "\n// ---- Transients of a step" << of
        << ". Slots may share bytes where the schedule orders their users; the "
        << "numbers are the steps in which a slot is in use.\n";
    list(bucket.step, [](sched::BufferOp b) { return !b.outlivesStep() && b.onDevice(); });
    out << "\n// ---- Host memory" << of << ".\n";
    list(bucket.step, [](sched::BufferOp b) { return !b.getInput() && b.getSpace() == sched::Space::Host; });
    for (const ArenaFacts &arena : arenaTable)
      if (arena.space > Space::Host && d.step.bytesOf(sched::spaceOf(arena.space)) > 0) {
        out << "\n// ---- The arena '" << arena.name << "'" << of << ".\n";
        list(bucket.step, [&](sched::BufferOp b) { return b.getSpace() == sched::spaceOf(arena.space); });
      }
    if (bucket.evaluate) {
      out << "\n// ---- Transients of an evaluation batch" << of << ", in the same bytes.\n";
      list(bucket.evaluate, [](sched::BufferOp b) { return !b.outlivesStep(); });
    }
  }
  if (d.decode) {
    out << "\n// ---- Transients of a decode step, in the same bytes.\n";
    list(d.decode->evaluate, [](sched::BufferOp b) { return !b.outlivesStep(); });
  }
  if (!d.events.empty()) {
    out << "\n// ---- Events that order the streams.\n";
    for (auto [i, name] : llvm::enumerate(d.events))
      out << "constexpr Event " << name << "{" << i << "};\n";
  }
  return text;
}

/// Compiling a constructor takes a time that grows with the square of its members, each of which may throw: 10 s for
/// 4,000 kernels by a hundred, 48 s for all at once.
static constexpr size_t kernelsTogether = 100;

/// The struct of all kernels, which has them as members or inherits them.
static void emitStructs(llvm::raw_ostream &out, ArrayRef<std::string> declarations) {
  const auto structOf = [&](const std::string &name, ArrayRef<std::string> members) {
    out << "struct " << name << " {\n  SLUICE_SEQUENCE " << name << "() {}\n";
    for (const std::string &member : members)
      out << "  const " << member << "\n";
    out << "};\n";
  };
  if (declarations.size() <= kernelsTogether)
    return structOf("Kernels", declarations);
  std::string bases;
  for (int part = 1; !declarations.empty(); ++part) {
    const std::string name = "Kernels" + std::to_string(part);
    structOf(name, declarations.take_front(kernelsTogether));
    bases += (part > 1 ? ", " : "") + name;
    declarations = declarations.drop_front(std::min(declarations.size(), kernelsTogether));
  }
  out << "struct Kernels : " << bases << " {};\n";
}

/// Objects are made in the order of their calls. Their workspaces are compared with the slots once, at the start, since
/// a vendor's library may ask for another size than the one that was planned.
std::string codegen::emitKernels(const Document &d) {
  std::string text, checks;
  llvm::raw_string_ostream out(text);
  if (!d.fused.definitions().empty())
    out << "\n// ---- Elementwise regions: the scalar rule of each, run for every element of a tensor.\n"
        << d.fused.definitions();
  SmallVector<std::string> declarations;
  for (sched::ProgramOp program : d.programs())
    for (auto run : program.getBody().getOps<sched::RunOp>())
      for (const KernelCallText &call : d.callsOf(run)) {
        if (!call.object.empty())
          declarations.push_back(call.declaration);
        if (call.scratch)
          checks += "  k->" + call.object + ".checkWorkspace(" + d.nameOf(run.getScratch()) + ");\n";
      }
  out << "\n// ---- Kernels, made once before any memory is allocated.\n";
  emitStructs(out, declarations);
  out << "static std::unique_ptr<const Kernels> k;\n\n";
  out << "SLUICE_SEQUENCE static void makeKernels() {\n  k = std::make_unique<const Kernels>();\n" << checks << "}\n";
  return text;
}

static std::string emit(const Document &document) {
  return emitPreface(document) + emitSlots(document) + emitKernels(document) + emitFunctions(document) +
         emitTables(document);
}

/// A model may name its tensors as it likes, but none after what the text itself says: a first text, in which nothing
/// has the model's names, shows what that is.
std::string codegen::emitProgram(ModuleOp module, const EmitOptions &options) {
  std::set<std::string> own;
  for (const std::string &word : identifiersIn(emit(Document(module, options, Names::placeholders()))))
    if (!Names::isPlaceholder(word))
      own.insert(word);
  return breakLines(emit(Document(module, options, Names(own))));
}
