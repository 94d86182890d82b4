// SPDX-License-Identifier: Apache-2.0
// Making #sched.call attributes from what the runtime's constructors take, see KernelTable.h, and reading them back.
#pragma once

#include "ir/KernelTable.h"

#include <string>
#include <type_traits>
#include <vector>

namespace sluice {

/// An enumerator of the runtime that the compiler itself has no use for.
struct Enumerator {
  llvm::StringRef type;
  std::string name;
};

/// Enumerators of the runtime by name, in order.
template <typename E> struct Enumerators;
template <> struct Enumerators<ConvPass> {
  static constexpr const char *type = "ConvPass", *names[] = {"Forward", "BackwardData", "BackwardWeight"};
};
template <> struct Enumerators<AttentionPass> {
  static constexpr const char *type = "AttentionPass", *names[] = {"Forward", "Backward"};
};
template <> struct Enumerators<LossKind> {
  static constexpr const char *type = "LossKind",
                              *names[] = {"SoftmaxCrossEntropy", "MeanSquaredError", "BceWithLogits"};
};
template <> struct Enumerators<RecurrentCell> {
  static constexpr const char *type = "RecurrentCell",
                              *names[] = {"Lstm", "Gru", "GruLinearBeforeReset", "RnnTanh", "RnnRelu"};
};
template <> struct Enumerators<Coding> {
  static constexpr const char *type = "Coding", *names[] = {"Symmetric", "Asymmetric", "NormalFloat"};
};
template <> struct Enumerators<DataType> {
  static constexpr const char *type = "DataType", *names[] = {"F32", "BF16", "F16", "I64", "I32", "U8", "Bit"};
};
template <> struct Enumerators<ResizeMode> {
  static constexpr const char *type = "ResizeMode", *names[] = {"Nearest", "Linear"};
};
template <> struct Enumerators<ResizeCoordinates> {
  static constexpr const char *type = "ResizeCoordinates",
                              *names[] = {"HalfPixel", "PytorchHalfPixel", "AlignCorners", "Asymmetric"};
};
template <> struct Enumerators<NearestRounding> {
  static constexpr const char *type = "NearestRounding",
                              *names[] = {"RoundPreferFloor", "RoundPreferCeil", "Floor", "Ceil"};
};

/// An argument as an attribute.
mlir::Attribute attributeOf(mlir::Builder &b, bool value);
mlir::Attribute attributeOf(mlir::Builder &b, int64_t value);
mlir::Attribute attributeOf(mlir::Builder &b, float value);
mlir::Attribute attributeOf(mlir::Builder &b, const Shape &value);
mlir::Attribute attributeOf(mlir::Builder &b, const Numbers &value);
mlir::Attribute attributeOf(mlir::Builder &b, const Window &value);
mlir::Attribute attributeOf(mlir::Builder &b, const Algorithm &value);
mlir::Attribute attributeOf(mlir::Builder &b, Codec value);
mlir::Attribute attributeOf(mlir::Builder &b, const TensorArgument &value);
mlir::Attribute attributeOf(mlir::Builder &b, llvm::ArrayRef<Slot> values);
mlir::Attribute attributeOf(mlir::Builder &b, const Enumerator &value);
template <typename E, typename = std::enable_if_t<std::is_enum_v<E>>>
mlir::Attribute attributeOf(mlir::Builder &b, E value) {
  return attributeOf(b, Enumerator{Enumerators<E>::type, Enumerators<E>::names[static_cast<size_t>(value)]});
}

/// Reads an argument back from an attribute; false if the attribute has another type. A tensor is known by its slot.
bool readArgument(mlir::Attribute from, bool &value);
bool readArgument(mlir::Attribute from, int64_t &value);
bool readArgument(mlir::Attribute from, float &value);
bool readArgument(mlir::Attribute from, Shape &value);
bool readArgument(mlir::Attribute from, Numbers &value);
bool readArgument(mlir::Attribute from, Window &value);
bool readArgument(mlir::Attribute from, Algorithm &value);
bool readArgument(mlir::Attribute from, Codec &value);
bool readArgument(mlir::Attribute from, TensorArgument &value);
template <typename E> std::enable_if_t<std::is_enum_v<E>, bool> readArgument(mlir::Attribute from, E &value) {
  auto named = llvm::dyn_cast<sched::EnumeratorAttr>(from);
  for (auto [number, name] : llvm::enumerate(Enumerators<E>::names))
    if (named && named.getType() == Enumerators<E>::type && named.getName() == name) {
      value = static_cast<E>(number);
      return true;
    }
  return false;
}

/// What a constructor is given for a member of the table's structs.
template <typename T> struct Given {
  using type = T;
};
template <> struct Given<TensorArgument> {
  using type = const Tensor &;
};
template <> struct Given<Numbers> {
  using type = std::initializer_list<int>;
};

/// Whether the class of A takes options.
template <typename A, typename = void> constexpr bool hasOptions = false;
template <typename A> constexpr bool hasOptions<A, std::void_t<typename A::Options>> = true;

/// The number of arguments that the constructor of A's class requires, options aside. The table agrees with the
/// constructor, or this does not compile.
template <typename A, size_t... I> constexpr bool isConstructible(std::index_sequence<I...>) {
  using Members = decltype(std::declval<A &>().members());
  using Class = typename A::Kernel;
  if constexpr (hasOptions<A>)
    return std::is_constructible_v<
        Class, Node, typename Given<std::remove_reference_t<std::tuple_element_t<I, Members>>>::type..., const A &>;
  else
    return std::is_constructible_v<Class, Node,
                                   typename Given<std::remove_reference_t<std::tuple_element_t<I, Members>>>::type...>;
}
/// How many arguments the class's constructor cannot do without, asked of the class itself: defaults are said once,
/// there.
template <typename A, size_t count = 0> constexpr size_t requiredArguments() {
  constexpr size_t all = std::tuple_size_v<decltype(std::declval<A &>().members())>;
  static_assert(count <= all && isConstructible<A>(std::make_index_sequence<all>()),
                "KernelTable.h and the constructor of the class disagree");
  if constexpr (isConstructible<A>(std::make_index_sequence<count>()))
    return count;
  else
    return requiredArguments<A, count + 1>();
}

/// The names of a list that one of the table's macros wrote out.
llvm::SmallVector<llvm::StringRef> namesIn(llvm::StringRef list);

/// The options that are no defaults, by name; null: all are.
template <typename A> mlir::DictionaryAttr optionsOf(mlir::Builder &b, const A &arguments) {
  const auto list = [&](const A &of) {
    return std::apply([&](const auto &...each) { return llvm::SmallVector<mlir::Attribute>{attributeOf(b, each)...}; },
                      of.options());
  };
  llvm::SmallVector<mlir::NamedAttribute> unusual;
  for (auto [name, value, usual] : llvm::zip_equal(namesIn(A::optionNames), list(arguments), list(A{})))
    if (value != usual)
      unusual.push_back(b.getNamedAttr(name, value));
  return unusual.empty() ? mlir::DictionaryAttr() : b.getDictionaryAttr(unusual);
}

/// All arguments but the last ones that are the constructor's defaults, then options that are none.
template <typename A> llvm::SmallVector<mlir::Attribute> attributesOf(mlir::Builder &b, const A &arguments) {
  const auto list = [&](const A &of) {
    return std::apply([&](const auto &...each) { return llvm::SmallVector<mlir::Attribute>{attributeOf(b, each)...}; },
                      of.members());
  };
  llvm::SmallVector<mlir::Attribute> all = list(arguments);
  const llvm::SmallVector<mlir::Attribute> defaults = list(A{});
  while (all.size() > requiredArguments<A>() && all.back() == defaults[all.size() - 1])
    all.pop_back();
  if constexpr (hasOptions<A>)
    if (mlir::DictionaryAttr options = optionsOf(b, arguments))
      all.push_back(options);
  return all;
}

/// Collects the calls of one op.
class KernelCalls {
public:
  explicit KernelCalls(mlir::Operation *op) : op(op), b(op->getContext()) {}

  /// The op's tensors in the runtime's terms.
  Shape shape(Slot slot) const { return shapeOf(typeOf(slot)); }
  DataType type(Slot slot) const { return tensorOf(typeOf(slot)).type; }
  /// What estimate-cost chose, or the kernel's own choice.
  Algorithm algorithm() const;

  /// `method` of an object that is constructed from `arguments`, one of KernelTable.
  template <typename A> KernelCalls &object(const A &arguments, llvm::StringRef method, llvm::ArrayRef<Slot> operands) {
    return add(A::kernel, attributesOf(b, arguments), method, operands);
  }
  /// A function of the runtime: stream, operands, `arguments`, node.
  template <typename... Arguments>
  KernelCalls &function(llvm::StringRef name, llvm::ArrayRef<Slot> operands, const Arguments &...arguments) {
    return add("", {attributeOf(b, arguments)...}, name, operands);
  }

  operator llvm::SmallVector<sched::CallAttr>() const { return calls; }

private:
  mlir::RankedTensorType typeOf(Slot slot) const;
  KernelCalls &add(llvm::StringRef kernel, llvm::ArrayRef<mlir::Attribute> arguments, llvm::StringRef method,
                   llvm::ArrayRef<Slot> operands);

  mlir::Operation *op;
  mlir::Builder b;
  llvm::SmallVector<sched::CallAttr> calls;
};

/// A window as an argument; absent dilations are 1.
Window windowOf(llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> pads,
                mlir::DenseI64ArrayAttr dilations = {});

/// Gives tensors that a call's arguments name their types; `op` is the op whose call it is.
void resolve(mlir::Operation *op, TensorArgument &argument);
template <typename T> void resolve(mlir::Operation *, T &) {}

/// Reads the options that are given by name into those of the same names; false where one is of another type, and
/// `wrong` is its name.
template <typename A> bool readOptions(mlir::DictionaryAttr given, A &arguments, llvm::StringRef &wrong) {
  const llvm::SmallVector<llvm::StringRef> names = namesIn(A::optionNames);
  size_t i = 0;
  const auto read = [&](auto &option) {
    const mlir::Attribute value = given.get(names[i++]);
    if (value && !readArgument(value, option))
      wrong = names[i - 1];
  };
  std::apply([&](auto &...option) { (read(option), ...); }, arguments.options());
  return wrong.empty();
}

/// The arguments of a call that verifies, empty for one of another class. `op` is the op whose call it is.
template <typename A> std::optional<A> argumentsOf(mlir::Operation *op, sched::CallAttr call) {
  if (call.getKernel() != A::kernel)
    return std::nullopt;
  A arguments{};
  const auto given = call.getArguments();
  size_t i = 0;
  const auto read = [&](auto &member) {
    if (i >= given.size())
      return;
    [[maybe_unused]] const bool fits = readArgument(given[i++], member);
    assert(fits && "a call that was not verified");
    resolve(op, member);
  };
  std::apply([&](auto &...member) { (read(member), ...); }, arguments.members());
  if constexpr (hasOptions<A>)
    if (auto options = given.empty() ? nullptr : llvm::dyn_cast<mlir::DictionaryAttr>(given.getValue().back())) {
      llvm::StringRef wrong;
      [[maybe_unused]] const bool fit = readOptions(options, arguments, wrong);
      assert(fit && "a call that was not verified");
    }
  return arguments;
}

template <typename Visitor, typename... A>
bool visitIn(KernelList<A...>, mlir::Operation *op, sched::CallAttr call, Visitor &visitor) {
  const auto visit = [&](const auto &arguments) {
    if (arguments)
      visitor(*arguments);
    return arguments.has_value();
  };
  return (visit(argumentsOf<A>(op, call)) || ...);
}
/// Calls `visitor` with the arguments of the call, of whichever class it is; false for a function's.
template <typename Visitor> bool visitArguments(mlir::Operation *op, sched::CallAttr call, Visitor visitor) {
  return visitIn(KernelTable(), op, call, visitor);
}

/// Whether the runtime has the class and its constructor takes these arguments; errors name class and argument.
mlir::LogicalResult verifyArguments(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, llvm::StringRef kernel,
                                    llvm::ArrayRef<mlir::Attribute> arguments);

} // namespace sluice
