// SPDX-License-Identifier: Apache-2.0
// Kernel objects of the emitted file: ir/KernelTable.h says which class with which arguments, this prints them.
#include "codegen/Document.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::codegen;

std::string codegen::codecText(Codec codec) {
  std::string kind = std::string("Codec{Codec::") + factsOf(codec)->kindName;
  return kind + (codec.kind == Codec::Zfp ? ", " + std::to_string(codec.rate) : "") + "}";
}

std::string codegen::dataTypeText(DataType type) {
  static const char *const names[] = {"F32", "BF16", "I64", "I32", "U8", "Bit"};
  return std::string("DataType::") + names[static_cast<int>(type)];
}

namespace {

std::string list(ArrayRef<int64_t> values) {
  std::string out = "{";
  for (auto [i, value] : llvm::enumerate(values))
    out += (i ? ", " : "") + std::to_string(value);
  return out + "}";
}

/// The node as traces and errors name it; the report tells re-runs, and what inversions run, by their ending.
std::string nodeLiteral(sched::RunOp run) {
  bool again = run.getParameters().get(train::attr::recompute) != nullptr,
       inverse = run.getParameters().get(train::attr::inverse) != nullptr;
  return stringLiteral(train::nodeName(run.getLoc()) + (again ? " (again)" : inverse ? " (inverse)" : ""));
}

/// Prints constructor arguments and calls of one run; also the maker that makeKernels calls.
class KernelPrinter {
public:
  KernelPrinter(const Document &document, sched::RunOp run, std::string base)
      : document(document), run(run), base(std::move(base)) {}

  template <typename K, typename... Arguments>
  void kernel(const char *type, const std::string &suffix, const KernelCall &call, const Arguments &...arguments) {
    add(type, suffix, call, true, {print(arguments)...});
  }
  template <typename... Arguments>
  void simple(const char *type, const std::string &suffix, const KernelCall &call, const Arguments &...arguments) {
    add(type, suffix, call, false, {print(arguments)...});
  }

  std::vector<KernelObject> objects;

private:
  void add(const char *type, const std::string &suffix, const KernelCall &call, bool scratch,
           std::vector<std::string> arguments) {
    KernelObject object;
    object.name = base + suffix;
    object.declaration =
        std::string(type) + " " + object.name + "{" + nodeLiteral(run) + ", " + llvm::join(arguments, ", ") + "};";
    object.method = call.method;
    object.scratch = scratch && run.getScratch();
    for (Slot slot : call.arguments)
      object.arguments.push_back(argument(slot));
    objects.push_back(std::move(object));
  }

  /// A tensor in the call; operands that the op leaves out are `none`.
  std::string argument(Slot slot) {
    switch (slot.kind) {
    case Slot::In:
      return slot.index < run.getIns().size() ? document.use(run.getIns()[slot.index], run.inType(slot.index)) : "none";
    case Slot::Out:
      return slot.index < run.getOuts().size() ? document.use(run.getOuts()[slot.index], run.outType(slot.index))
                                               : "none";
    case Slot::Scratch:
      return run.getScratch() ? document.nameOf(run.getScratch()) : "none";
    }
    return "none";
  }

  std::string print(const ShapeArgument &a) { return list(ArrayRef<int64_t>(a.shape.dims, a.shape.rank)); }
  std::string print(const TensorArgument &a) {
    bool in = a.slot.kind == Slot::In;
    return document.constant(in ? run.getIns()[a.slot.index] : run.getOuts()[a.slot.index],
                             in ? run.inType(a.slot.index) : run.outType(a.slot.index));
  }
  std::string print(const Window &w) {
    return "{" + list({w.kernel[0], w.kernel[1]}) + ", " + list({w.strides[0], w.strides[1]}) + ", " +
           list({w.pads[0], w.pads[1], w.pads[2], w.pads[3]}) + ", " + list({w.dilations[0], w.dilations[1]}) + "}";
  }
  std::string print(ConvPass pass) {
    return pass == ConvPass::Forward        ? "ConvPass::Forward"
           : pass == ConvPass::BackwardData ? "ConvPass::BackwardData"
                                            : "ConvPass::BackwardWeight";
  }
  std::string print(const Algorithm &a) {
    if (a.workspace)
      return "{" + stringLiteral(a.name) + ", " + std::to_string(a.parts) + ", " + std::to_string(a.workspace) + "}";
    if (a.parts > 1)
      return "{" + stringLiteral(a.name) + ", " + std::to_string(a.parts) + "}";
    return *a.name ? "{" + stringLiteral(a.name) + "}" : "{}";
  }
  std::string print(LossKind kind) {
    return kind == LossKind::SoftmaxCrossEntropy ? "LossKind::SoftmaxCrossEntropy"
           : kind == LossKind::MeanSquaredError  ? "LossKind::MeanSquaredError"
                                                 : "LossKind::BceWithLogits";
  }
  std::string print(ResizeMode mode) {
    return mode == ResizeMode::Nearest ? "ResizeMode::Nearest" : "ResizeMode::Linear";
  }
  std::string print(ResizeCoordinates c) {
    static const char *const names[] = {"HalfPixel", "PytorchHalfPixel", "AlignCorners", "Asymmetric"};
    return std::string("ResizeCoordinates::") + names[static_cast<int>(c)];
  }
  std::string print(NearestRounding r) {
    static const char *const names[] = {"RoundPreferFloor", "RoundPreferCeil", "Floor", "Ceil"};
    return std::string("NearestRounding::") + names[static_cast<int>(r)];
  }
  std::string print(const std::vector<int64_t> &values) { return list(values); }
  std::string print(Codec codec) { return codecText(codec); }
  std::string print(DataType type) { return dataTypeText(type); }
  std::string print(bool value) { return value ? "true" : "false"; }
  std::string print(int64_t value) { return std::to_string(value); }
  std::string print(float value) { return floatLiteral(value); }

  const Document &document;
  sched::RunOp run;
  std::string base;
};

std::string joined(ArrayRef<std::string> parts) { return "{" + llvm::join(parts, ", ") + "}"; }

KernelObject fusedObject(const Document &document, sched::RunOp run, const std::string &function,
                         const std::string &name) {
  RankedTensorType domain = domainOf(run);
  KernelOp op = kernelOf(run);
  unsigned sums = op.integer("sums"), full = run.getOuts().size() - sums;
  SmallVector<std::string> in, out, sum, inUse, outUse, sumUse;
  for (auto [i, buffer] : llvm::enumerate(run.getIns())) {
    std::string tensor = document.constant(buffer, run.inType(i));
    in.push_back(isChannelOperand(run, i)
                     ? "channel(" + tensor + (domain.getRank() == 4 ? "" : ", " + std::to_string(domain.getRank())) +
                           ")"
                     : tensor);
    inUse.push_back(document.use(buffer, run.inType(i)));
  }
  for (auto [i, buffer] : llvm::enumerate(run.getOuts())) {
    (i < full ? out : sum).push_back(document.constant(buffer, run.outType(i)));
    (i < full ? outUse : sumUse).push_back(document.use(buffer, run.outType(i)));
  }
  KernelObject object;
  object.name = name;
  bool nhwc = train::layoutOf(domain) == train::LayoutKind::NHWC;
  object.declaration = "Fused<" + function + "> " + name + "{" + nodeLiteral(run) + ", " + shapeText(domain) +
                       (nhwc ? ", Layout::NHWC, " : ", Layout::RowMajor, ") + joined(in) + ", " + joined(out) + ", " +
                       joined(sum) + "};";
  object.method = "run";
  object.arguments = {joined(inUse), joined(outUse), joined(sumUse),
                      run.getScratch() ? document.nameOf(run.getScratch()) : "none"};
  object.scratch = !!run.getScratch();
  return object;
}

/// What is added to the node's name so that forward and gradient kernels of one node can be told apart.
StringRef suffixOf(StringRef kernel) {
  if (kernel == "conv_backward_data")
    return "_dx";
  if (kernel == "conv_backward_weight")
    return "_dw";
  if (kernel == "batch_norm_statistics")
    return "_statistics";
  if (kernel == "update_statistics")
    return "_running";
  if (kernel == "cast")
    return "_cast";
  if (kernel == "encode" || kernel == "decode")
    return kernel == "encode" ? "_encode" : "_decode";
  if (kernel == "save_guarded_channels" || kernel == "invert_batch_norm_leaky_relu")
    return kernel == "save_guarded_channels" ? "_guard" : "_invert";
  if (kernel == "check_cancellation")
    return "_check";
  return "";
}

} // namespace

void Document::makeKernelObjects(sched::ProgramOp program) {
  bool evaluation = program == evaluate;
  for (auto run : program.getBody().getOps<sched::RunOp>()) {
    StringRef kernel = run.getKernel();
    bool gradient = run.getParameters().get(train::attr::backward) != nullptr;
    std::string suffix = suffixOf(kernel).str();
    if (gradient && suffix.empty())
      suffix = "_grad";
    std::string node = train::nodeName(run.getLoc());
    std::string wanted =
        (evaluation ? "eval_" : "") + (node.empty() ? kernel.str() : train::identifierOf(node)) + suffix;
    auto &objects = kernels[run];
    if (kernel == "update")
      continue;
    std::string name = names.uniqueValue(wanted);
    if (kernel == "fused") {
      objects.push_back(fusedObject(*this, run, fused.objectFor(run), name));
      continue;
    }
    KernelPrinter printer(*this, run, name);
    if (!makeKernels(kernelOf(run), printer))
      llvm::report_fatal_error(llvm::Twine("codegen knows no kernel for ") + kernel);
    objects = std::move(printer.objects);
  }
}
