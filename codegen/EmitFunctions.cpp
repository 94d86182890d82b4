// SPDX-License-Identifier: Apache-2.0
// The functions of the emitted program: forward and backward of a step, and evaluation; one line a call, in issue
// order.
#include "codegen/Document.h"
#include "ir/TensorName.h"
#include "ir/Together.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::codegen;

namespace {

/// Prints the ops of one program in issue order. Steps are counted as the plan counts them, by runs and copies, so that
/// each slot is released where the schedule has freed it.
class FunctionPrinter {
public:
  FunctionPrinter(const Document &document, sched::ProgramOp program) : d(document), symbols(document.module) {
    int number = 0;
    for (Operation &op : program.ops())
      if (isa<sched::RunOp, sched::CopyOp>(op))
        stepOf[&op] = ++number;
    for (auto buffer : program.getBody().getOps<sched::BufferOp>())
      if (buffer.getLast() && !buffer.getKept() && buffer.onDevice() && !isScratch(buffer))
        endingAt[*buffer.getLast()].push_back(buffer);
    for (KeptBuffer kept : d.keptActivations())
      shown.insert(kept.buffer.getBuffer());
  }

  void print(llvm::raw_ostream &out, Operation &op) {
    if (d.isIssuedByReader(&op))
      return;
    // After compute's waits that follow a step, but before its records: h2d may write the bytes once it has seen such
    // an event.
    auto record = dyn_cast<sched::RecordOp>(op);
    bool isStep = isa<sched::RunOp, sched::CopyOp>(op);
    // What is launched together is released together.
    auto member = dyn_cast<sched::RunOp>(op);
    if (member && sched::isTogether(member)) {
      done = stepOf[&op];
      return;
    }
    if (isStep || (record && record.getStream() == sched::Stream::Compute))
      releaseBefore(out, done + 1);
    if (isStep)
      done = stepOf[&op];
    if (auto run = dyn_cast<sched::RunOp>(op))
      printLaunch(out, run);
    else if (auto copy = dyn_cast<sched::CopyOp>(op))
      printCopy(out, copy);
    else if (record)
      out << "  s." << stream(record.getStream()) << ".record(" << d.eventOf(record.getEvent()) << ");\n";
    else if (auto wait = dyn_cast<sched::WaitOp>(op))
      out << "  s." << stream(wait.getStream()) << ".wait(" << d.eventOf(wait.getEvent()) << ");\n";
  }

private:
  /// A workspace: free after its one step, without further synchronization.
  static bool isScratch(sched::BufferOp buffer) {
    return llvm::all_of(buffer.getBuffer().getUsers(), [&](Operation *user) {
      auto run = dyn_cast<sched::RunOp>(user);
      return run && run.getScratch() == buffer.getBuffer();
    });
  }

  static const char *stream(sched::Stream stream) { return sched::factsOf(stream).member; }

  /// Slots whose last step lies before this one: their bytes are free, and every access is ordered before what compute
  /// does next.
  void releaseBefore(llvm::raw_ostream &out, int step) {
    SmallVector<std::string> names;
    for (; released < step; ++released)
      for (sched::BufferOp buffer : endingAt.lookup(released))
        names.push_back(d.nameOf(buffer.getBuffer()));
    for (StringRef name : names)
      out << "  s.release(" << name << ");\n";
  }

  /// A comment with the node's name, once for all calls in a row that come of it.
  void printNode(llvm::raw_ostream &out, Location loc, StringRef note) {
    std::string node = train::nodeName(loc);
    std::string text = commentText(node + (note.empty() ? "" : std::string(node.empty() ? "" : ": ") + note.str()));
    if (text != lastNode && !text.empty())
      out << "  // " << text << "\n";
    lastNode = text;
  }

  /// The run and those that are launched with it, call by call: all of one kind next to each other.
  void printLaunch(llvm::raw_ostream &out, sched::RunOp first) {
    const SmallVector<sched::RunOp> runs = sched::launchOf(first);
    if (runs.size() == 1) {
      printNode(out, first.getLoc(), factsOf(first.getRole()).note);
      printActivations(out, first);
      printGradient(out, first);
      for (const KernelCallText &call : d.callsOf(first))
        printCall(out, first, call);
      return;
    }
    out << "  // one launch for " << runs.size() << " nodes\n";
    lastNode.clear();
    for (sched::RunOp run : runs) {
      printActivations(out, run);
      printGradient(out, run);
    }
    const std::string on = std::string("(s.") + stream(first.getStream()) + ");\n";
    out << "  gather" << on;
    for (size_t i = 0; i < d.callsOf(first).size(); ++i)
      for (sched::RunOp run : runs)
        printCall(out, run, d.callsOf(run)[i]);
    out << "  launchGathered" << on;
  }

  /// Those whose first reader of the backward half this is.
  void printActivations(llvm::raw_ostream &out, sched::RunOp run) {
    if (!run.getBackward())
      return;
    for (Value in : run.getIns())
      if (shown.erase(in))
        out << "  showActivation(s, " << stringLiteral(in.getDefiningOp<sched::BufferOp>().getName()) << ", "
            << d.nameOf(in) << ");\n";
  }

  /// Before the update, which may write over the gradient. One of rows says which row of the parameter is its first.
  void printGradient(llvm::raw_ostream &out, sched::RunOp run) {
    if (!run.getParameter())
      return;
    const RankedTensorType gradient = run.inType(0);
    out << "  s.captureGradient("
        << stringLiteral(train::tensorName(symbols.lookup<train::VariableOp>(*run.getParameter()))) << ", "
        << d.use(run.getIns()[0], gradient, run.inFirst(0));
    if (const std::optional<int64_t> first = run.outFirst(0); first && *first > 0)
      out << ", " << *first / (train::bytes(gradient) / gradient.getDimSize(0));
    out << ");\n";
  }

  void printCall(llvm::raw_ostream &out, sched::RunOp run, const KernelCallText &call) {
    out << "  " << (call.object.empty() ? "" : "k->" + call.object + ".") << call.method << "(s."
        << stream(run.getStream()) << ", " << llvm::join(call.operands, ", ") << ");\n";
  }

  /// A copy between the device and another arena. The device's side is always a tensor; the other one holds packed
  /// bytes where the copy has a codec.
  void printCopy(llvm::raw_ostream &out, sched::CopyOp copy) {
    auto device = copy.getFrom().getDefiningOp<sched::BufferOp>(), away = copy.getTo().getDefiningOp<sched::BufferOp>();
    const bool leaves = device.onDevice();
    if (!leaves)
      std::swap(device, away);
    printNode(out, copy.getLoc(), sizeText(device.getBytes()) + (leaves ? " leave the device" : " come back"));
    lastNode.clear();
    const auto side = [&](Value buffer) {
      const bool packs = copy.getType() && buffer == device.getBuffer();
      return packs ? d.use(buffer, cast<RankedTensorType>(*copy.getType())) : d.nameOf(buffer);
    };
    const ArenaFacts &arena = sched::factsOf(away.getSpace());
    out << "  " << (leaves ? arena.copyOut : arena.copyIn) << "(s." << stream(copy.getStream()) << ", "
        << side(copy.getFrom()) << ", " << side(copy.getTo()) << ", " << stringLiteral(train::nodeName(copy.getLoc()));
    if (copy.getCodec())
      out << ", " << codecText(*parseCodec(*copy.getCodec()));
    out << ");\n";
  }

  const Document &d;
  SymbolTable symbols;
  llvm::DenseMap<Operation *, int> stepOf;
  llvm::DenseMap<int, SmallVector<sched::BufferOp>> endingAt;
  llvm::DenseSet<Value> shown; ///< kept activations that no op of the backward half has read yet
  int released = 0, done = 0;  ///< steps
  std::string lastNode;
};

bool isBackward(Operation &op) {
  auto run = dyn_cast<sched::RunOp>(op);
  return run && run.getBackward();
}

} // namespace

/// The step is printed as two functions for whoever reads it; between them nothing happens. The first run of a gradient
/// begins the second one.
static void printStep(const Document &d, const BucketPrograms &bucket, llvm::raw_ostream &out) {
  const std::string &ending = bucket.ending;
  FunctionPrinter printer(d, bucket.step);
  out << "\n// ---- One training step" << (bucket.name.empty() ? "" : " of " + commentText(bucket.name))
      << ".\nSLUICE_SEQUENCE static void forward" << ending << "(Session &s) {\n";
  bool backward = false;
  for (Operation &op : bucket.step.ops()) {
    if (!backward && isBackward(op)) {
      backward = true;
      out << "}\n\n// Gradients, and each parameter's update as soon as nothing reads the parameter any "
             "more.\nSLUICE_SEQUENCE static void backward"
          << ending << "(Session &s) {\n";
    }
    printer.print(out, op);
  }
  out << "}\n\nstatic void step" << ending << "(Session &s) {\n  forward" << ending << "(s);\n"
      << (backward ? "  backward" + ending + "(s);\n" : "") << "}\n";
}

static void printEvaluation(const Document &d, const BucketPrograms &bucket, llvm::raw_ostream &out) {
  out << "\n// ---- One batch" << (bucket.name.empty() ? "" : " of " + commentText(bucket.name))
      << (bucket.decodes < 0 ? "" : ", behind what caches hold,")
      << " with running statistics and without dropout.\nSLUICE_SEQUENCE static void evaluate" << bucket.ending
      << "(Session &s) {\n";
  FunctionPrinter evaluation(d, bucket.evaluate);
  for (Operation &op : bucket.evaluate.ops())
    evaluation.print(out, op);
  out << "}\n";
}

std::string codegen::emitFunctions(const Document &d) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const BucketPrograms &bucket : llvm::reverse(d.buckets)) {
    printStep(d, bucket, out);
    if (bucket.evaluate)
      printEvaluation(d, bucket, out);
  }
  if (d.decode)
    printEvaluation(d, *d.decode, out);
  return text;
}
