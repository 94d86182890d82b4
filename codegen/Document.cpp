// SPDX-License-Identifier: Apache-2.0
// Names and types of everything that the emitted file mentions, see Document.h.
#include "codegen/Document.h"
#include "ir/TensorName.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <array>

using namespace mlir;
using namespace sluice;
using namespace sluice::codegen;

/// "_128" of "tokens=128": extents, which --dim reads as numbers, and an x between them; "_critic" of a turn's name.
static std::string endingOf(const std::string &name) {
  return name.empty() ? "" : "_" + name.substr(name.rfind('=') + 1);
}

/// Buffers and events of all programs get their names before kernels do, whose calls print them, and numbers of
/// variables with them.
Document::Document(ModuleOp module, const EmitOptions &options, Names given)
    : module(module), options(options), names(std::move(given)), fused(names) {
  for (const train::Bucket &bucket : train::bucketsOf(module))
    buckets.push_back({bucket, bucket.name, endingOf(bucket.name), module.lookupSymbol<sched::ProgramOp>(bucket.step),
                       module.lookupSymbol<sched::ProgramOp>(bucket.evaluate)});
  if (const std::optional<train::DecodeStep> found = train::decodeStepOf(module))
    decode = {
        {},           "one token of each text", "_decode", {}, module.lookupSymbol<sched::ProgramOp>(found->function),
        found->output};
  step = buckets.back().step;
  evaluate = buckets.back().evaluate;
  plan = train::attr::get<train::attr::Plan>(step);
  assert(plan && "programs are emitted of planned modules");
  for (sched::ProgramOp program : programs()) {
    nameBuffers(program);
    noteTypes(program);
    skipNextBatch(program);
    nameEvents(program);
  }
  for (auto variable : module.getOps<train::VariableOp>())
    if (variableBuffer(variable.getSymName())) {
      numbers[variable.getSymName()] = static_cast<int>(variables.size());
      variables.push_back(variable);
    }
  for (sched::ProgramOp program : programs())
    makeKernelCalls(program);
}

SmallVector<sched::ProgramOp> Document::programs() const {
  SmallVector<sched::ProgramOp> all;
  for (const BucketPrograms &bucket : llvm::reverse(buckets))
    for (sched::ProgramOp program : {bucket.step, bucket.evaluate})
      if (program)
        all.push_back(program);
  if (decode)
    all.push_back(decode->evaluate);
  return all;
}

/// What a persistent buffer is known by, the same for both batches of an input.
static sched::Persistent sharedKey(sched::BufferOp buffer) {
  sched::Persistent key = buffer.persistent();
  if (key.kind == sched::Persistent::Kind::Batch)
    key.number = 0;
  return key;
}

/// Both batches of an input are one constant array; what outlives a step is one constant for all programs.
const void *Document::keyOf(Value buffer) const {
  auto op = buffer.getDefiningOp<sched::BufferOp>();
  if (!op.outlivesStep())
    return buffer.getAsOpaquePointer();
  auto found = persistent.find(sharedKey(op));
  return found == persistent.end() ? nullptr : found->second.getAsOpaquePointer();
}

void Document::nameBuffers(sched::ProgramOp program) {
  for (auto buffer : program.getBody().getOps<sched::BufferOp>()) {
    if (buffer.outlivesStep()) {
      if (!persistent.try_emplace(sharedKey(buffer), buffer.getBuffer()).second)
        continue;
    }
    StringRef wanted = buffer.getVariable() ? *buffer.getVariable() : buffer.getName();
    tensorNames[buffer.getBuffer().getAsOpaquePointer()] = names.uniqueValue(wanted);
  }
}

/// A variable or an input is declared with its own type, another buffer with that of its first use, a host buffer with
/// that of what is copied into it.
void Document::noteTypes(sched::ProgramOp program) {
  SymbolTable symbols(module);
  auto note = [&](Value buffer, RankedTensorType type) { tensorTypes.try_emplace(keyOf(buffer), type); };
  for (auto buffer : program.getBody().getOps<sched::BufferOp>()) {
    if (buffer.getType())
      note(buffer.getBuffer(), cast<RankedTensorType>(*buffer.getType()));
    if (buffer.getVariable())
      if (auto variable = symbols.lookup<train::VariableOp>(*buffer.getVariable()))
        note(buffer.getBuffer(), variable.getType());
  }
  for (Operation &op : program.ops()) {
    if (auto run = dyn_cast<sched::RunOp>(op)) {
      for (auto [i, buffer] : llvm::enumerate(run.getOuts()))
        if (!run.outFirst(i))
          note(buffer, run.outType(i));
      for (auto [i, buffer] : llvm::enumerate(run.getIns()))
        if (!run.inFirst(i))
          note(buffer, run.inType(i));
    }
  }
  // After all runs: a copy has no type of its own, but that of the buffer at its other end.
  for (auto copy : program.getBody().getOps<sched::CopyOp>()) {
    if (copy.getCodec())
      continue; // the host's bytes are packed: typeOf() says how many
    for (auto [from, to] : {std::pair<Value, Value>{copy.getFrom(), copy.getTo()}, {copy.getTo(), copy.getFrom()}})
      if (auto known = tensorTypes.find(keyOf(from)); known != tensorTypes.end())
        note(to, known->second);
  }
}

RankedTensorType Document::typeOf(Value buffer) const {
  auto found = tensorTypes.find(keyOf(buffer));
  if (found != tensorTypes.end())
    return found->second;
  // Scratch: plain bytes.
  auto op = buffer.getDefiningOp<sched::BufferOp>();
  return RankedTensorType::get({static_cast<int64_t>(op.getBytes())}, IntegerType::get(op.getContext(), 8));
}

std::string codegen::typeArguments(RankedTensorType type) {
  Tensor tensor = tensorOf(type);
  bool nhwc = tensor.layout == Layout::NHWC;
  if (tensor.type == DataType::F32)
    return nhwc ? ", Layout::NHWC" : "";
  return std::string(nhwc ? ", Layout::NHWC, " : ", Layout::RowMajor, ") + dataTypeText(tensor.type);
}

/// A buffer has one declaration but may be used with several types, as views are no copies, and as a piece of it.
std::string Document::fitted(const std::string &name, Value buffer, RankedTensorType type,
                             std::optional<int64_t> first) const {
  if (type == typeOf(buffer))
    return name;
  const std::string bytes = first.value_or(0) ? "piece(" + name + ", " + hexOffset(*first) + ")" : name;
  return "as(" + bytes + ", " + shapeText(type) + typeArguments(type) + ")";
}

std::string Document::use(Value buffer, RankedTensorType type, std::optional<int64_t> first) const {
  auto op = buffer.getDefiningOp<sched::BufferOp>();
  bool batch = op.getInput() && op.onDevice();
  return fitted(batch ? "s.batch(" + nameOf(buffer) + ")" : nameOf(buffer), buffer, type, first);
}

std::string Document::constant(Value buffer, RankedTensorType type, std::optional<int64_t> first) const {
  auto op = buffer.getDefiningOp<sched::BufferOp>();
  bool batch = op.getInput() && op.onDevice();
  return fitted(nameOf(buffer) + (batch ? "[0]" : ""), buffer, type, first);
}

void Document::skipNextBatch(sched::ProgramOp program) {
  auto ops = sched::issuedByReader(program);
  skipped.insert(ops.begin(), ops.end());
}

/// Events that only the copies of the next batch record are the runtime's own.
void Document::nameEvents(sched::ProgramOp program) {
  for (auto record : program.getBody().getOps<sched::RecordOp>())
    if (!isIssuedByReader(record)) {
      std::string name = names.uniqueValue(record.getName());
      eventNames[record.getEvent().getAsOpaquePointer()] = name;
      events.push_back(name);
    }
}

Value Document::variableBuffer(StringRef symbol) const {
  auto found = persistent.find({sched::Persistent::Kind::Variable, symbol, 0});
  return found == persistent.end() ? Value() : found->second;
}

std::string Document::resultName(int64_t index) const {
  auto found = persistent.find({sched::Persistent::Kind::Result, "", index});
  return found == persistent.end() ? "" : nameOf(found->second);
}

std::string Document::keptName(sched::ProgramOp evaluation, int64_t number) const {
  if (evaluation)
    for (auto buffer : evaluation.getBody().getOps<sched::BufferOp>())
      if (buffer.getKept() && static_cast<int64_t>(*buffer.getKept()) == number)
        return nameOf(buffer.getBuffer());
  return "";
}

RankedTensorType Document::inputType(sched::ProgramOp program, StringRef name) const {
  for (auto buffer : program.getBody().getOps<sched::BufferOp>())
    if (buffer.getInput() == name && buffer.onDevice() && buffer.getType())
      return cast<RankedTensorType>(*buffer.getType());
  return {};
}

int64_t Document::inputNumber(StringRef name) const {
  for (auto [i, input] : llvm::enumerate(inputs()))
    if (input.name == name)
      return static_cast<int64_t>(i);
  return -1;
}

std::vector<Document::InputNames> Document::inputs() const {
  std::vector<InputNames> list;
  llvm::StringMap<std::string> staging;
  for (auto buffer : step.getBody().getOps<sched::BufferOp>())
    if (buffer.getInput() && !buffer.onDevice())
      staging.try_emplace(*buffer.getInput(), nameOf(buffer.getBuffer()));
  for (auto buffer : step.getBody().getOps<sched::BufferOp>())
    if (buffer.getInput() && buffer.onDevice() && buffer.getBatch() && *buffer.getBatch() == 0)
      list.push_back({buffer.getInput()->str(), nameOf(buffer.getBuffer()),
                      staging.try_emplace(*buffer.getInput(), "none").first->second});
  return list;
}

/// Each input has two device slots, of which a step reads one by turns, and one staging slot in host memory. All three
/// have one type, which is the device's.
std::string Document::inputDeclarations() const {
  std::string text;
  auto place = [&](sched::BufferOp buffer, RankedTensorType type) {
    return std::string(buffer.onDevice() ? "device(" : "host(") + hexOffset(buffer.getOffset().value_or(0)) + ", " +
           shapeText(type) + typeArguments(type) + ")";
  };
  llvm::StringMap<std::array<sched::BufferOp, 3>> places; // both batches, and where they are staged
  for (auto buffer : step.getBody().getOps<sched::BufferOp>())
    if (buffer.getInput())
      places[*buffer.getInput()][buffer.onDevice() ? *buffer.getBatch() : 2] = buffer;
  for (const InputNames &input : inputs()) {
    auto [first, second, staged] = places[input.name];
    sched::BufferOp slots[2] = {first, second};
    RankedTensorType type = typeOf(slots[0].getBuffer());
    text +=
        "constexpr Tensor " + input.slots + "[2] = {" + place(slots[0], type) + ", " + place(slots[1], type) + "};\n";
    text += "constexpr Tensor " + input.staging + " = " + place(staged, type) + ";\n";
  }
  return text;
}

/// What lossyPlanOf() allows and the plan keeps. A storage may have several buffers; the first one that a step uses is
/// the one that is measured.
std::vector<KeptBuffer> Document::keptActivations() const {
  const train::LossyPlan lossy = train::lossyPlanOf(module);
  llvm::StringMap<Comparison> kept;
  for (train::DecisionAttr decision : plan.getDecisions())
    if (const train::LossyTensor *tensor = lossy.find(decision.getStorage().getValue());
        tensor && decision.getAction() == train::ActionKind::Keep)
      kept[decision.getStorage().getValue()] = tensor->compared;
  std::vector<KeptBuffer> found;
  for (auto buffer : step.getBody().getOps<sched::BufferOp>())
    if (auto at = kept.find(buffer.getName()); buffer.onDevice() && buffer.getFirst() && at != kept.end()) {
      found.push_back({buffer, at->second});
      kept.erase(at);
    }
  return found;
}

int64_t Document::batch() const {
  auto list = step.getBody().getOps<sched::BufferOp>();
  for (auto buffer : list)
    if (buffer.getInput() && buffer.onDevice() && !train::isShared(module, *buffer.getInput()))
      return typeOf(buffer.getBuffer()).getDimSize(0);
  return 1;
}
