// SPDX-License-Identifier: Apache-2.0
// Making and reading #sched.call attributes, see KernelCall.h.
#include "ir/KernelCall.h"

using namespace mlir;
using namespace sluice;

Attribute sluice::attributeOf(Builder &b, bool value) { return b.getBoolAttr(value); }
Attribute sluice::attributeOf(Builder &b, int64_t value) { return b.getI64IntegerAttr(value); }
Attribute sluice::attributeOf(Builder &b, float value) { return b.getF32FloatAttr(value); }
Attribute sluice::attributeOf(Builder &b, const Shape &value) {
  return b.getDenseI64ArrayAttr({value.dims, static_cast<size_t>(value.rank)});
}
Attribute sluice::attributeOf(Builder &b, const Numbers &value) { return b.getDenseI64ArrayAttr(value); }
Attribute sluice::attributeOf(Builder &b, const Window &value) {
  // Two dimensions leave the last extents at 0.
  const size_t spatial = value.kernel[2] ? 3 : 2;
  const auto list = [&](const int64_t *from, size_t count) { return b.getDenseI64ArrayAttr({from, count}); };
  return sched::WindowAttr::get(b.getContext(), list(value.kernel, spatial), list(value.strides, spatial),
                                list(value.pads, 2 * spatial), list(value.dilations, spatial));
}
Attribute sluice::attributeOf(Builder &b, const Algorithm &value) {
  return train::AlgorithmAttr::get(b.getContext(), b.getStringAttr(value.name), value.parts, value.workspace);
}
Attribute sluice::attributeOf(Builder &b, Codec value) {
  if (value.bits() == Codec().bits())
    value.rate = 0; // one attribute for what is packed in one way
  return sched::CodecAttr::get(b.getContext(), b.getStringAttr(codecName(value)));
}
Attribute sluice::attributeOf(Builder &b, const TensorArgument &value) {
  return sched::OperandAttr::get(b.getContext(), value.slot.kind, value.slot.index);
}
Attribute sluice::attributeOf(Builder &b, ArrayRef<Slot> values) {
  return b.getArrayAttr(llvm::map_to_vector(values, [&](Slot slot) { return attributeOf(b, TensorArgument(slot)); }));
}
Attribute sluice::attributeOf(Builder &b, const Enumerator &value) {
  return sched::EnumeratorAttr::get(b.getContext(), b.getStringAttr(value.type), b.getStringAttr(value.name));
}

bool sluice::readArgument(Attribute from, bool &value) {
  auto truth = dyn_cast<BoolAttr>(from);
  return truth && (value = truth.getValue(), true);
}
bool sluice::readArgument(Attribute from, int64_t &value) {
  auto number = dyn_cast<IntegerAttr>(from);
  return number && number.getType().isInteger(64) && (value = number.getInt(), true);
}
bool sluice::readArgument(Attribute from, float &value) {
  auto number = dyn_cast<FloatAttr>(from);
  return number && number.getType().isF32() && (value = number.getValue().convertToFloat(), true);
}
bool sluice::readArgument(Attribute from, Shape &value) {
  auto list = dyn_cast<DenseI64ArrayAttr>(from);
  if (!list || list.size() > Shape::maxRank)
    return false;
  value = Shape();
  for (int64_t extent : list.asArrayRef())
    value.append(extent);
  return true;
}
bool sluice::readArgument(Attribute from, Numbers &value) {
  auto list = dyn_cast<DenseI64ArrayAttr>(from);
  return list && (value = Numbers(list.asArrayRef()), true);
}
bool sluice::readArgument(Attribute from, Window &value) {
  auto window = dyn_cast<sched::WindowAttr>(from);
  if (!window)
    return false;
  value = windowOf(window.getKernel(), window.getStrides(), window.getPads(), window.getDilations());
  return true;
}
bool sluice::readArgument(Attribute from, Algorithm &value) {
  auto algorithm = dyn_cast<train::AlgorithmAttr>(from);
  if (!algorithm)
    return false;
  const StringRef name = algorithm.getName().getValue(); // lives as long as the context; an empty one has no data
  value = {name.empty() ? "" : name.data(), algorithm.getParts(), algorithm.getGranted()};
  return true;
}
bool sluice::readArgument(Attribute from, Codec &value) {
  auto named = dyn_cast<sched::CodecAttr>(from);
  const std::optional<Codec> codec = named ? parseCodec(named.getName().getValue()) : std::nullopt;
  return codec && (value = *codec, true);
}
bool sluice::readArgument(Attribute from, TensorArgument &value) {
  auto slot = dyn_cast<sched::OperandAttr>(from);
  return slot && (value = Slot{slot.getKind(), slot.getIndex()}, true);
}

static RankedTensorType typeIn(Operation *op, Slot slot) {
  assert(slot.index && "no tensor of the op");
  return cast<RankedTensorType>(slot.kind == sched::OperandKind::In ? op->getOperand(*slot.index).getType()
                                                                    : op->getResult(*slot.index).getType());
}

RankedTensorType KernelCalls::typeOf(Slot slot) const { return typeIn(op, slot); }

void sluice::resolve(Operation *op, TensorArgument &argument) { argument.tensor = tensorOf(typeIn(op, argument.slot)); }

Algorithm KernelCalls::algorithm() const {
  Algorithm algorithm;
  if (auto chosen = train::attr::get<train::attr::Algorithm>(op))
    readArgument(chosen, algorithm);
  return algorithm;
}

KernelCalls &KernelCalls::add(StringRef kernel, ArrayRef<Attribute> arguments, StringRef method,
                              ArrayRef<Slot> operands) {
  auto places = llvm::map_to_vector(
      operands, [&](Slot slot) { return sched::OperandAttr::get(b.getContext(), slot.kind, slot.index); });
  calls.push_back(sched::CallAttr::get(b.getContext(), b.getStringAttr(kernel), b.getArrayAttr(arguments),
                                       b.getStringAttr(method), places));
  return *this;
}

Window sluice::windowOf(ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides, ArrayRef<int64_t> pads,
                        DenseI64ArrayAttr dilations) {
  Window window{};
  llvm::copy(kernel, window.kernel);
  llvm::copy(strides, window.strides);
  llvm::copy(pads, window.pads);
  if (dilations)
    llvm::copy(dilations.asArrayRef(), window.dilations);
  return window;
}

SmallVector<StringRef> sluice::namesIn(StringRef list) {
  SmallVector<StringRef> names;
  list.split(names, ',');
  for (StringRef &name : names)
    name = name.trim();
  return names;
}

/// Takes the options from the end of a call's arguments.
template <typename A>
static LogicalResult verifyOptions(function_ref<InFlightDiagnostic()> emitError, ArrayRef<Attribute> &arguments,
                                   A &read) {
  auto options = arguments.empty() ? DictionaryAttr() : dyn_cast<DictionaryAttr>(arguments.back());
  if (!options)
    return success();
  arguments = arguments.drop_back();
  for (NamedAttribute option : options)
    if (!llvm::is_contained(namesIn(A::optionNames), option.getName().getValue()))
      return emitError() << A::kernel << " has no option " << option.getName() << " (" << A::optionNames << ")";
  StringRef wrong;
  if (!readOptions(options, read, wrong))
    return emitError() << "'" << wrong << "', an option of " << A::kernel << ", is never " << options.get(wrong);
  return success();
}

/// Arguments of one class, from the left. Their number is looked at before their types, since one that is missing
/// shifts all after it; then the first of a wrong type is named.
template <typename A>
static LogicalResult verifyFor(function_ref<InFlightDiagnostic()> emitError, ArrayRef<Attribute> arguments) {
  constexpr size_t required = requiredArguments<A>();
  A read{};
  if constexpr (hasOptions<A>)
    if (failed(verifyOptions(emitError, arguments, read)))
      return failure();
  size_t i = 0, wrong = arguments.size();
  const auto check = [&](auto &member) {
    if (i < arguments.size() && !readArgument(arguments[i], member))
      wrong = std::min(wrong, i);
    ++i;
  };
  std::apply([&](auto &...member) { (check(member), ...); }, read.members());
  if (arguments.size() < required || arguments.size() > i)
    return emitError() << A::kernel << " takes " << required << (required < i ? " to " + std::to_string(i) : "")
                       << " arguments (" << A::names << "), not " << arguments.size();
  if (wrong < arguments.size())
    return emitError() << "'" << namesIn(A::names)[wrong] << "', argument " << wrong << " of " << A::kernel
                       << ", is never " << arguments[wrong];
  return success();
}

template <typename... A>
/// Finds the class by its name and has the arguments read as its constructor would take them.
static LogicalResult verifyIn(KernelList<A...>, function_ref<InFlightDiagnostic()> emitError, StringRef kernel,
                              ArrayRef<Attribute> arguments) {
  std::optional<LogicalResult> verified;
  const auto check = [&](StringRef name,
                         LogicalResult (*verify)(function_ref<InFlightDiagnostic()>, ArrayRef<Attribute>)) {
    if (kernel == name)
      verified = verify(emitError, arguments);
  };
  (check(A::kernel, verifyFor<A>), ...);
  return verified ? *verified : emitError() << "the runtime has no class " << kernel;
}

LogicalResult sluice::verifyArguments(function_ref<InFlightDiagnostic()> emitError, StringRef kernel,
                                      ArrayRef<Attribute> arguments) {
  return verifyIn(KernelTable(), emitError, kernel, arguments);
}
