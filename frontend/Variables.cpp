// SPDX-License-Identifier: Apache-2.0
// Role of a variable from where its values come from and how it is used; the reason is kept for --list-parameters.
#include "frontend/Variables.h"
#include "frontend/ElementTypes.h"
#include "frontend/FrozenForms.h"
#include "frontend/StoredMatrix.h"
#include "ir/TensorName.h"
#include "onnx/onnx_pb.h"
#include <cmath>
#include <cstring>
#include <set>

using namespace mlir;

namespace sluice {
namespace {

using train::Init;
using train::Role;

/// Constants up to this many elements are written into the IR.
constexpr int64_t smallConstant = 64;

/// Masks do, and an optimizer would make NaN of them. Looks at the bits, as the bytes need not be aligned.
bool holdsInfinity(const Source &source) {
  if (source.value)
    return llvm::any_of(source.value->floats, [](double number) { return std::isinf(number); });
  if (!source.tensor || source.elementType != onnx::TensorProto::FLOAT)
    return false;
  const char *bytes = source.tensor->bytes.data();
  for (size_t i = 0; i + sizeof(float) <= source.tensor->bytes.size(); i += sizeof(float)) {
    uint32_t bits;
    std::memcpy(&bits, bytes + i, sizeof bits);
    if ((bits & 0x7fffffff) == 0x7f800000)
      return true;
  }
  return false;
}

/// Product of all extents but the first two.
int64_t receptiveField(ArrayRef<int64_t> shape) {
  int64_t field = 1;
  for (int64_t extent : shape.drop_front(std::min<size_t>(shape.size(), 2)))
    field *= extent;
  return field;
}

/// Equal elements are written once, whatever the shape.
template <typename T, typename Values> DenseElementsAttr denseOf(RankedTensorType type, const Values &values) {
  SmallVector<T> list(values.begin(), values.end());
  if (llvm::all_equal(list) && !list.empty())
    list.resize(1);
  return DenseElementsAttr::get(type, ArrayRef<T>(list));
}

DenseElementsAttr denseValue(RankedTensorType type, const HostTensor &value) {
  return value.integral ? denseOf<int64_t>(type, value.ints) : denseOf<float>(type, value.floats);
}

} // namespace

Variables::Variables(ModuleOp module, const TrainingSpec &spec, const HandRoles &hand, bool constantsAreWeights)
    : module(module), builder(module.getContext()), spec(spec), hand(hand), constantsAreWeights(constantsAreWeights) {}

/// First value under --init=kaiming or xavier, as PyTorch's layers are set up.
Init Variables::firstValue(const Source &source, const Use &use) const {
  if (spec.init == InitialValues::Keep)
    return Init::File;
  if (use.kind == Use::Scale || use.kind == Use::Factor || use.kind == Use::Variance)
    return Init::One;
  if (use.kind == Use::Table)
    return Init::Kaiming;
  if (use.kind != Use::Weight || source.shape.size() < 2)
    return Init::Zero;
  return spec.init == InitialValues::Kaiming ? Init::Kaiming : Init::Xavier;
}

/// The first rule that holds decides: state comes before all flags, since steps write it, and --freeze before --train.
/// Infinities are held even against --train: a step would make NaN of them.
Variables::Decision Variables::decideAlone(const Source &source, const Use &use, const std::string &user) const {
  static const char *const kinds[] = {"weight", "bias",   "scale",        "table",           "summand",
                                      "factor", "branch", "running mean", "running variance"};
  std::string what = std::string(kinds[use.kind]) + " of " + user;
  if (use.isState())
    return {Role::State, firstValue(source, use), what};
  if (source.tensor && source.tensor->stored)
    return {Role::Constant, Init::File, "held in fewer bits by the file, " + what};
  const bool isFloat = source.elementType == onnx::TensorProto::FLOAT,
             trains = isFloat && !source.invented && hand.trains(source.name);
  // A begins as PEFT draws it, evenly within 1/sqrt(inputs), B with zeros and lengths as they are, so that nothing
  // changes at first.
  if (const auto part = hand.adapterPart(source.name); part && !source.invented)
    return {Role::Parameter,
            *part == AdapterPart::First    ? Init::Xavier
            : *part == AdapterPart::Second ? Init::Zero
                                           : Init::Norm,
            "adapter, " + what};
  if (isFloat && !source.invented && hand.freezes(source.name))
    return {Role::Constant, Init::File,
            (hand.adapters.empty() ? "frozen by --freeze, " : "held fixed beside adapters, ") + what};
  if (source.constantNode && !trains && !(constantsAreWeights && use.isWeightOperand()))
    return {Role::Constant, Init::File,
            (source.invented ? "made of the graph's numbers" : describe(source.hold.value_or(Hold::ConstantNode))) +
                (", " + what)};
  if (!isFloat)
    return {Role::Constant, Init::File, elementTypeName(source.elementType) + " tensor, " + what};
  if (trains && !holdsInfinity(source))
    return {Role::Parameter, firstValue(source, use), "trained by --train, " + what};
  // What masks put in place of scores: the most negative number, zero.
  if (use.kind == Use::Branch && source.shape.empty())
    return {Role::Constant, Init::File, "a single number, " + what};
  if (holdsInfinity(source))
    return {Role::Constant, Init::File, "holds infinities, " + what};
  return {Role::Parameter, firstValue(source, use), what};
}

/// What would be trained and is in no turn is held as by --freeze.
Variables::Decision Variables::decide(const Source &source, const Use &use, const std::string &user) const {
  Decision alone = decideAlone(source, use, user);
  if (alone.role != Role::Parameter || !hand.isInNoTurn(source.name))
    return alone;
  return {Role::Constant, Init::File, "trained in no turn, " + alone.reason};
}

/// The module's functions share its symbols.
bool Variables::isFunctionName(const std::string &symbol) const {
  const auto isOf = [&](const TurnRequest &turn) {
    return symbol == "step." + turn.name || symbol == "evaluate." + turn.name;
  };
  return symbol == "step" || symbol == "evaluate" || std::any_of(spec.turns.begin(), spec.turns.end(), isOf);
}

/// The ONNX name, unless a function or another variable has it.
std::string Variables::symbolFor(const Source &source, bool isState) const {
  std::string symbol = source.name;
  while (isFunctionName(symbol) || symbols.count(symbol))
    symbol += isState ? "/statistic" : "/value";
  return symbol;
}

/// Small constants are written into the IR, so that passes may look at them; values of others stay in the file. Fans
/// are those of PyTorch's init functions: inputs, or outputs, times the receptive field, of which a matrix has 1.
train::VariableOp Variables::create(const Source &source, const Use &use, const Decision &decision,
                                    const std::string &symbol) {
  bool integral = source.value ? source.value->integral : source.elementType != onnx::TensorProto::FLOAT;
  Type element = integral ? Type(builder.getI64Type()) : Type(builder.getF32Type());
  auto type = RankedTensorType::get(source.shape, element);
  ElementsAttr value;
  if (decision.init == Init::File && source.value)
    value = denseValue(type, *source.value);
  else if (decision.init == Init::File && decision.role == Role::Constant && type.getNumElements() <= smallConstant)
    if (auto small = HostTensor::from(*source.tensor); small && small->size() > 0)
      value = denseValue(type, *small);
  int64_t fanIn = 0, fanOut = 0;
  if (decision.init == Init::Kaiming || decision.init == Init::Xavier) {
    const size_t rank = source.shape.size();
    int64_t field = use.inputsFirst || use.inputsLast ? 1 : receptiveField(source.shape);
    size_t in = use.inputsFirst  ? rank - 2
                : use.inputsLast ? rank - 1
                                 : 1,
           out = use.inputsFirst  ? rank - 1
                 : use.inputsLast ? rank - 2
                                  : 0;
    const bool table = use.kind == Use::Table; // of standard deviation 1, as PyTorch's embeddings are
    fanIn = table ? 2 : source.shape[in] * field;
    fanOut = table ? 2 : source.shape[out] * field;
  }
  if (hand.adapterPart(source.name) == AdapterPart::First) { // for the bound of Xavier, sqrt(6 / (fanIn + fanOut))
    fanIn = source.shape[1] * receptiveField(source.shape);
    fanOut = 5 * fanIn;
  }
  // In order of first use, before the functions.
  builder.setInsertionPoint(*module.getOps<func::FuncOp>().begin());
  auto loc = NameLoc::get(builder.getStringAttr(source.name));
  auto variable = train::VariableOp::create(builder, loc, symbol, decision.role, decision.init, type, value,
                                            static_cast<uint64_t>(fanIn), static_cast<uint64_t>(fanOut),
                                            builder.getStringAttr(decision.reason), StringAttr());
  if (const StoredMatrix *stored = source.tensor ? source.tensor->stored.get() : nullptr)
    train::attr::set<train::attr::Quantized>(variable, formAttr(builder.getContext(), stored->form));
  if (isFunctionName(source.name) && !use.isState())
    variable->setAttr(train::tensorNameAttribute, builder.getStringAttr(source.name));
  if (symbol != source.initializer && !source.initializer.empty() && !value)
    variable->setAttr(train::sourceAttribute, builder.getStringAttr(source.initializer));
  return variable;
}

Result<train::VariableOp> Variables::get(const Source &source, const Use &use, const std::string &user) {
  bool known = source.elementType == onnx::TensorProto::FLOAT || source.elementType == onnx::TensorProto::INT64;
  if (!known && !source.value)
    return Error{"tensor '" + source.name + "' has element type " + elementTypeName(source.elementType) +
                 "; only float32 models are trained, convert it to float32"};
  if (source.tensor && source.tensor->stored && hand.trains(source.name))
    return Error{"tensor '" + source.name + "' is held in " + describe(source.tensor->stored->form) +
                 " by the file, which no step can train: leave it out of --train, and train adapters beside it "
                 "(--adapter)"};
  train::VariableOp &variable = made[{source.name, use.isState(), source.invented}];
  if (!variable)
    variable = create(source, use, decide(source, use, user), *symbols.insert(symbolFor(source, use.isState())).first);
  return variable;
}

/// Importers ask for operands that they may not need in the end.
void Variables::removeUnused() {
  std::set<StringRef> used;
  module.walk([&](Operation *op) {
    if (auto read = dyn_cast<train::ReadOp>(op))
      used.insert(read.getVariable());
  });
  for (auto entry = made.begin(); entry != made.end();) {
    bool keep = used.count(entry->second.getSymName());
    if (!keep)
      entry->second.erase();
    entry = keep ? std::next(entry) : made.erase(entry);
  }
}

void Variables::setTied(const std::map<std::string, std::vector<std::string>> &names) {
  for (auto &[key, variable] : made)
    if (auto found = names.find(std::get<0>(key)); found != names.end() && !std::get<1>(key) && !std::get<2>(key)) {
      SmallVector<StringRef> list(found->second.begin(), found->second.end());
      variable->setAttr(train::tiedNamesAttribute, builder.getStrArrayAttr(list));
    }
}

std::vector<train::VariableOp> Variables::frozen() const {
  std::vector<train::VariableOp> list;
  for (auto [key, variable] : made)
    if (const auto &[name, isState, invented] = key;
        !isState && !invented && variable.getRole() == Role::Constant && hand.freezes(name) &&
        !train::attr::has<train::attr::Quantized>(variable) &&
        cast<RankedTensorType>(variable.getType()).getElementType().isF32())
      list.push_back(variable);
  return list;
}

std::vector<std::pair<std::string, Role>> Variables::roles() const {
  std::vector<std::pair<std::string, Role>> roles;
  for (const auto &[key, variable] : made)
    if (!std::get<2>(key))
      roles.push_back({std::get<0>(key), train::VariableOp(variable).getRole()});
  return roles;
}

} // namespace sluice
