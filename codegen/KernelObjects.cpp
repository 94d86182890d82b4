// SPDX-License-Identifier: Apache-2.0
// Kernel objects of the emitted file: the calls of a sched.run say which class with which arguments, this prints them.
#include "codegen/Document.h"
#include "ir/KernelCall.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::codegen;

std::string codegen::codecText(Codec codec) {
  if (codec.kind == Codec::None)
    return "{}";
  std::string kind = std::string("Codec{Codec::") + factsOf(codec)->kindName;
  if (codec.mask)
    return kind + ", " + std::to_string(codec.bits()) + ", 0, true}";
  return kind + (codec.kind == Codec::Zfp ? ", " + std::to_string(codec.bits()) : "") + "}";
}

std::string codegen::dataTypeText(DataType type) {
  return std::string("DataType::") + Enumerators<DataType>::names[static_cast<int>(type)];
}

namespace {

std::string list(ArrayRef<int64_t> values) {
  std::string out = "{";
  for (auto [i, value] : llvm::enumerate(values))
    out += (i ? ", " : "") + std::to_string(value);
  return out + "}";
}

/// The node as traces and errors name it, and what a plan runs it for; kernels know themselves what they do else.
std::string nodeLiteral(sched::RunOp run) {
  const std::string node = stringLiteral(train::nodeName(run.getLoc()));
  const OpRoleFacts &facts = factsOf(run.getRole());
  return *facts.ending ? "{" + node + ", OpRole::" + facts.name + "}" : node;
}

std::string text(train::AlgorithmAttr a) {
  const std::string name = stringLiteral(a.getName().getValue()), parts = std::to_string(a.getParts());
  if (a.getGranted())
    return "{" + name + ", " + parts + ", " + std::to_string(a.getGranted()) + "}";
  if (a.getParts() > 1)
    return "{" + name + ", " + parts + "}";
  return a.getName().empty() ? "{}" : "{" + name + "}";
}

std::string text(sched::WindowAttr w) {
  return "{" + list(w.getKernel()) + ", " + list(w.getStrides()) + ", " + list(w.getPads()) + ", " +
         list(w.getDilations()) + "}";
}

/// A tensor in the constructor of an object.
std::string constantOf(const Document &d, sched::RunOp run, sched::OperandAttr slot) {
  if (!slot.getIndex())
    return "none";
  const int64_t i = *slot.getIndex();
  return slot.getKind() == sched::OperandKind::In ? d.constant(run.getIns()[i], run.inType(i), run.inFirst(i))
                                                  : d.constant(run.getOuts()[i], run.outType(i), run.outFirst(i));
}

/// A tensor in a call; operands that the op leaves out, and the scratch of what needs none, are `none`.
std::string useOf(const Document &d, sched::RunOp run, sched::OperandAttr slot) {
  if (slot.getKind() == sched::OperandKind::Parameter)
    return "ParameterId{" + std::to_string(d.variableNumber(*run.getParameter())) + "}";
  if (!slot.getIndex())
    return slot.getKind() == sched::OperandKind::Scratch && run.getScratch() ? d.nameOf(run.getScratch()) : "none";
  const int64_t i = *slot.getIndex();
  return slot.getKind() == sched::OperandKind::In ? d.use(run.getIns()[i], run.inType(i), run.inFirst(i))
                                                  : d.use(run.getOuts()[i], run.outType(i), run.outFirst(i));
}

/// An argument of a constructor. Numbers are printed without a type: the class says which it takes.
std::string argumentText(const Document &d, sched::RunOp run, Attribute argument) {
  return llvm::TypeSwitch<Attribute, std::string>(argument)
      .Case([](BoolAttr a) { return a.getValue() ? "true" : "false"; })
      .Case([](IntegerAttr a) { return integerLiteral(a.getInt()); })
      .Case([](FloatAttr a) { return floatLiteral(static_cast<float>(a.getValueAsDouble())); })
      .Case([](DenseI64ArrayAttr a) { return list(a); })
      .Case([](sched::EnumeratorAttr a) { return (a.getType().getValue() + "::" + a.getName().getValue()).str(); })
      .Case([](sched::CodecAttr a) { return codecText(*parseCodec(a.getName().getValue())); })
      .Case([](sched::WindowAttr a) { return text(a); })
      .Case([](train::AlgorithmAttr a) { return text(a); })
      .Case([&](sched::OperandAttr a) { return constantOf(d, run, a); })
      .Case([&](ArrayAttr a) {
        auto tensors = llvm::map_to_vector(a.getAsRange<sched::OperandAttr>(),
                                           [&](sched::OperandAttr slot) { return constantOf(d, run, slot); });
        return "{" + llvm::join(tensors, ", ") + "}";
      })
      .Default([](Attribute) -> std::string { llvm_unreachable("a verified call has no other arguments"); });
}

/// MatmulOptions().withTransposeB(true): a constructor of many parameters would not say which is which.
std::string optionsText(const Document &d, sched::RunOp run, StringRef kernel, DictionaryAttr options) {
  std::string out = (kernel + "Options()").str();
  for (NamedAttribute option : options) {
    const StringRef name = option.getName();
    out += ".with" + (StringRef(name).take_front().upper() + name.drop_front()).str() + "(" +
           argumentText(d, run, option.getValue()) + ")";
  }
  return out;
}

/// An object of its own, or a function of the runtime, which takes the node with every call.
KernelCallText callText(const Document &d, sched::RunOp run, sched::CallAttr call, const std::string &name) {
  auto arguments = llvm::map_to_vector(call.getArguments(), [&](Attribute argument) {
    auto options = dyn_cast<DictionaryAttr>(argument);
    return options ? optionsText(d, run, call.getKernel(), options) : argumentText(d, run, argument);
  });
  KernelCallText printed{"", "", call.getMethod().str(), {}, false};
  for (sched::OperandAttr slot : call.getOperands())
    printed.operands.push_back(useOf(d, run, slot));
  if (call.getKernel().empty()) {
    llvm::append_range(printed.operands, arguments);
    printed.operands.push_back(nodeLiteral(run));
    return printed;
  }
  printed.object = name;
  printed.declaration =
      call.getKernel().str() + " " + name + "{" + nodeLiteral(run) + ", " + llvm::join(arguments, ", ") + "};";
  printed.scratch = call.usesScratch() && run.getScratch();
  return printed;
}

std::string joined(ArrayRef<std::string> parts) { return "{" + llvm::join(parts, ", ") + "}"; }

/// The runtime's Fused<F>: constructed with the tensors' types, called with the tensors of this step. Inputs, outputs
/// and sums are three lists; an input of one value a channel is wrapped, so that it walks along the channels.
KernelCallText fusedText(const Document &document, sched::RunOp run, const std::string &function,
                         const std::string &name) {
  RankedTensorType domain = run.domain();
  const unsigned full = run.getOuts().size() - *run.getSums();
  SmallVector<std::string> in, out, sum, inUse, outUse, sumUse;
  for (auto [i, buffer] : llvm::enumerate(run.getIns())) {
    std::string tensor = document.constant(buffer, run.inType(i), run.inFirst(i));
    in.push_back(run.isChannel(i) ? "channel(" + tensor +
                                        (domain.getRank() == 4 ? "" : ", " + std::to_string(domain.getRank())) + ")"
                                  : tensor);
    inUse.push_back(document.use(buffer, run.inType(i), run.inFirst(i)));
  }
  for (auto [i, buffer] : llvm::enumerate(run.getOuts())) {
    (i < full ? out : sum).push_back(document.constant(buffer, run.outType(i), run.outFirst(i)));
    (i < full ? outUse : sumUse).push_back(document.use(buffer, run.outType(i), run.outFirst(i)));
  }
  const bool nhwc = train::layoutOf(domain) == train::LayoutKind::NHWC;
  return {
      name,
      "Fused<" + function + "> " + name + "{" + nodeLiteral(run) + ", " + shapeText(domain) +
          (nhwc ? ", Layout::NHWC, " : ", Layout::RowMajor, ") + joined(in) + ", " + joined(out) + ", " + joined(sum) +
          "};",
      "run",
      {joined(inUse), joined(outUse), joined(sumUse), run.getScratch() ? document.nameOf(run.getScratch()) : "none"},
      !!run.getScratch()};
}

/// What the kernel of a run is called after: the node, or itself where there is none.
std::string wantedName(sched::RunOp run) {
  const StringRef suffix = run.getSuffix().empty() && run.getBackward() ? "_grad" : run.getSuffix();
  const std::string node = train::nodeName(run.getLoc());
  return (node.empty() ? run.getKernel().str() : train::identifierOf(node)) + suffix.str();
}

} // namespace

/// One name a run, numbered where it makes several objects. Runs without objects get none, as functions have theirs.
void Document::makeKernelCalls(sched::ProgramOp program) {
  for (auto run : program.getBody().getOps<sched::RunOp>()) {
    const std::string wanted = (program == evaluate ? "eval_" : "") + wantedName(run);
    auto &calls = kernels[run];
    if (run.isFused()) {
      const std::string name = names.uniqueValue(wanted);
      calls.push_back(fusedText(*this, run, fused.objectFor(run), name));
      continue;
    }
    auto isObject = [](Attribute call) { return !cast<sched::CallAttr>(call).getKernel().empty(); };
    const auto objects = llvm::count_if(run.getCalls(), isObject);
    const std::string name = objects ? names.uniqueValue(wanted) : "";
    int part = 0;
    for (auto call : run.getCalls().getAsRange<sched::CallAttr>()) {
      const bool several = isObject(call) && objects > 1;
      calls.push_back(callText(*this, run, call, name + (several ? "_part" + std::to_string(part++) : "")));
    }
  }
}
