// SPDX-License-Identifier: Apache-2.0
// The one header of the train dialect: dialect, attributes, types, interfaces and ops, with the few helpers that their
// methods share.
#pragma once

#include "ir/OpKind.h"
#include "ir/OpWork.h"
#include "ir/Sched.h"
#include "runtime/ActionTable.h"
#include "runtime/Quantization.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace sluice::train {

/// Elements and bytes of a static ranked tensor type; a mask (i1) has whole 64-bit words. 0 for other types; neither
/// wraps: a size that is no int64_t ends the program, verified ops have none.
int64_t elements(mlir::Type type);
int64_t bytes(mlir::Type type);
/// Whether the runtime can hold a tensor of this type: a static shape of at most Shape::maxRank dimensions, with bytes
/// in an int64_t.
bool isAddressable(mlir::Type type);
/// The tensor that a handle holds; any other type is itself.
mlir::Type heldTensor(mlir::Type type);

/// Which physical order an op wants for those of its operands and results that are images, see LayoutAware.
enum class LayoutPreference { RowMajor, ChannelsLast, Follow };

/// Which element types an op's floats may have, see PrecisionAware.
enum class PrecisionPreference { Product, Same, Mixed };

/// Memory-effect resource that stands for all variables.
struct Variables : mlir::SideEffects::Resource::Base<Variables> {
  llvm::StringRef getName() final { return "variables"; }
};

/// What an op changes of a variable: bytes from `first` on, of that type.
struct VariablePiece {
  int64_t first;
  mlir::RankedTensorType type;
};

/// Gradient bookkeeping of one reverse sweep. Values without a contribution have no gradient (null). Contributions to
/// one value are summed with train.add in the order in which they arrive. All train.reads of one variable are one value
/// here: what is added to any of them is the gradient of all.
class Gradients {
public:
  virtual ~Gradients() = default;
  /// Gradient of a forward value; null when nothing contributed.
  virtual mlir::Value of(mlir::Value value) = 0;
  /// True when some trained parameter lies upstream of `value`.
  virtual bool wanted(mlir::Value value) = 0;
  /// `gradient` joins the gradient of `value`, whose type it has; may be called several times, for one value, too.
  /// `builder` stands where the op's gradient ops go, after the definition of `gradient`: the sum is made there.
  virtual void add(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Value gradient) = 0;
};

/// The default role of ops of this kind.
constexpr sched::Role roleOf(OpKind kind) {
  return kind == OpKind::Update ? sched::Role::Update : sched::Role::Compute;
}

/// What an op reads of an operand, or writes of a result, where that is a piece of a variable which it changes there;
/// none: all of the value.
std::optional<VariablePiece> changedPieceOf(mlir::OpOperand &operand);
std::optional<VariablePiece> changedPieceOf(mlir::OpResult result);

/// Verifiers of the interfaces Elementwise, PrecisionAware and ChangesVariables.
llvm::LogicalResult verifyElementwise(mlir::Operation *op);
llvm::LogicalResult verifyChanges(mlir::Operation *op);
llvm::LogicalResult verifyPrecision(mlir::Operation *op);

/// Name of the ONNX node(s) an op comes from: the names of its location, joined by ", ".
std::string nodeName(mlir::Location loc);

/// `name` as an identifier: other characters than letters and digits become _.
std::string sanitized(std::string name);
/// Identifier made from the names of ONNX nodes: "/layer1/layer1.0/conv1/Conv" -> "layer1_0_conv1".
std::string identifierOf(llvm::StringRef nodeName);

/// Gives `to` the ordinal of `from`, forward or backward.
void copyOrdinal(mlir::Operation *from, mlir::Operation *to);
/// The ordinal, or -1; whether the op belongs to the forward part.
int64_t ordinalOf(mlir::Operation *op);
bool isForward(mlir::Operation *op);

} // namespace sluice::train

#include "ir/TrainEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/TrainAttrs.h.inc"

#include "ir/TrainDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/TrainTypes.h.inc"

#include "ir/TrainInterfaces.h.inc"

#define GET_OP_CLASSES
#include "ir/TrainOps.h.inc"

namespace sluice::train {

/// The variable whose value this is, as a train.read gives it or as an op has changed it since; null: no variable's.
mlir::FlatSymbolRefAttr variableOf(mlir::Value value);

/// Whether the views, alike but for their offsets, cover each of a tensor's `elements` exactly once.
bool coverOnce(llvm::ArrayRef<ViewAttr> views, int64_t elements);

/// What passes attach to ops, see the dialect's description: `attr::get<attr::Cost>(op)` is its #train.cost, or null.
namespace attr {
using Forward = TrainDialect::ForwardAttrHelper;
using Backward = TrainDialect::BackwardAttrHelper;
using Stage = TrainDialect::StageAttrHelper;
using Recompute = TrainDialect::RecomputeAttrHelper;
using Inverse = TrainDialect::InverseAttrHelper;
using InPlace = TrainDialect::InPlaceAttrHelper;
using Cost = TrainDialect::CostAttrHelper;
using Algorithm = TrainDialect::AlgorithmAttrHelper;
using Rule = TrainDialect::RuleAttrHelper;
using Plan = TrainDialect::PlanAttrHelper;
using Unreached = TrainDialect::UnreachedAttrHelper;
using Offsets = TrainDialect::OffsetsAttrHelper;
using Quantized = TrainDialect::QuantizedAttrHelper;

template <typename Attached> auto get(mlir::Operation *op) { return Attached(op->getContext()).getAttr(op); }
template <typename Attached> bool has(mlir::Operation *op) { return Attached(op->getContext()).isAttrPresent(op); }
template <typename Attached, typename Value> void set(mlir::Operation *op, Value value) {
  Attached(op->getContext()).setAttr(op, value);
}
} // namespace attr

/// The role that a plan runs the op for, else the op's own.
sched::Role roleOf(HasKernel op);

/// The tensor's layout: its encoding, or row-major.
LayoutKind layoutOf(mlir::Type type);
/// Whether the tensor may have channels last: [N,C,...] with one to three spatial dimensions.
bool isImage(mlir::Type type);
/// The same shape and elements in `layout`.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, LayoutKind layout);
/// The tensor has floats, f32, bf16 or f16; no masks, indices, class ids or packed bytes.
bool isReal(mlir::Type type);
/// The tensor has floats of 16 bits.
bool isHalf(mlir::Type type);
/// The floats of 16 bits that `train.precision` of the module asks for; null: none.
mlir::FloatType halfOf(mlir::ModuleOp module);
/// Whether a declared result type may stand for an inferred one: it may differ in its encoding, and floats in their
/// width. Layouts and precision are assigned after the op is made, and have verifiers of their own.
bool compatibleTypes(mlir::TypeRange a, mlir::TypeRange b);
/// Numpy's broadcast of two shapes; false when they conflict.
bool broadcast(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b, llvm::SmallVectorImpl<int64_t> &out);
/// True when a tensor of this shape has the same bytes in row-major and NHWC order (no spatial dimensions, or one
/// channel, or one pixel).
bool layoutsCoincide(mlir::RankedTensorType type);
/// Whether x and y = transpose(x), in their layouts, have the same bytes.
bool keepsOrder(mlir::RankedTensorType x, mlir::RankedTensorType y, llvm::ArrayRef<int64_t> permutation);
/// Whether x and y differ in their spatial dimensions alone, so that one is a view of the other with channels last,
/// too.
bool keepsChannels(mlir::RankedTensorType x, mlir::RankedTensorType y);
/// Parts whose largest |x| and |y| train.check_cancellation writes, two floats each.
constexpr int64_t cancellationParts = 512;
/// Whether an operand of a fused region over `domain` advances along the innermost physical dimension, or is constant
/// there. Channel operands are [C] vectors indexed by dimension 1.
bool advancesInnermost(mlir::RankedTensorType operand, bool isChannel, mlir::RankedTensorType domain);

/// What the variables of an optimizer's state are called after their parameter's name, in the order of an update's
/// states.
llvm::ArrayRef<llvm::StringRef> stateSuffixes(UpdateRule rule);
/// The same for its running average, which comes after them, and for the sum of its gradients.
constexpr llvm::StringRef averageSuffix = "/ema", sumSuffix = "/gradient_sum";

/// Of a module for several ranks: how gradients are summed, and how many sums of a rank's batches there are.
constexpr const char *ranksAttribute = "train.ranks", *sumsAttribute = "train.sums", *orderedRanks = "ordered",
                     *fastRanks = "fast";
/// The variable that its sums over ranks have as their room.
constexpr llvm::StringRef roomName = "train/room";
/// The same, of one whose ranks have shares of the optimizer's states: how many ranks it has at least.
constexpr const char *sharesAttribute = "train.shares";
/// Beside it: they have shares of the gradients as well.
constexpr const char *gradientSharesAttribute = "train.gradient_shares";
/// Beside both: of the parameters, too.
constexpr const char *parameterSharesAttribute = "train.parameter_shares";
/// The same, of one whose BatchNorms are synchronized: the ranks whose batches they normalize together.
constexpr const char *normRanksAttribute = "train.norm_ranks";

/// Of a variable that holds a rank's share of what belongs to a parameter: that one's symbol.
constexpr const char *shareOfAttribute = "train.share_of";
/// Of a parameter of which the variable is a rank's share: the whole one's type.
constexpr const char *wholeAttribute = "train.whole";

/// Of a variable with init(copy): the symbol of the one whose value it takes.
constexpr const char *copyOfAttribute = "train.copy_of";

/// What a module says (train.id_limits) of an integer input that names rows or classes once the graph has moved or
/// shifted it: values lie in [lower, upper), or are `ignored`. Where both are 0, nothing but what is ignored, which
/// targets of floats may have, too.
struct IdLimit {
  int64_t lower = 0, upper = 0;
  std::optional<int64_t> ignored = {};
  bool isThere() const { return lower < upper; }
};
IdLimit idLimitOf(mlir::ModuleOp module, llvm::StringRef input);
/// Intersects with the limit that is already there, if any.
void addIdLimit(mlir::ModuleOp module, llvm::StringRef input, IdLimit limit);

/// The list of a module's outputs (train.outputs), those with attached losses first.
llvm::SmallVector<OutputAttr> outputsOf(mlir::ModuleOp module);
void setOutputs(mlir::ModuleOp module, llvm::ArrayRef<OutputAttr> outputs);

/// The list of a module's adapters (train.adapters), by their variables' symbols.
llvm::SmallVector<AdapterAttr> adaptersOf(mlir::ModuleOp module);
void setAdapters(mlir::ModuleOp module, llvm::ArrayRef<AdapterAttr> adapters);

/// What a value that a train function returns is to whoever runs it. Kept: a tensor, by its number among those; else a
/// scalar: 0 the loss, 1 the count of right answers, 2 the norm of the gradients, from firstPart on the losses that the
/// first one is the sum of.
struct ReturnedValue {
  bool isKept;
  unsigned number;
};
constexpr unsigned firstPart = 3;
ReturnedValue returnedValue(mlir::OpOperand &returned);

/// What a module says (train.shared) of inputs that all samples have in common: they have no dimension of samples.
bool isShared(mlir::ModuleOp module, llvm::StringRef input);
void setShared(mlir::ModuleOp module, llvm::ArrayRef<llvm::StringRef> inputs);

/// What a module says (train.engines) of the engines that a profile recorded, see runtime/Engines.h.
struct RecordedEngine {
  llvm::StringRef convolution, name;
  int64_t parts;
};
llvm::SmallVector<RecordedEngine> enginesOf(mlir::ModuleOp module);
void setEngines(mlir::ModuleOp module, llvm::ArrayRef<RecordedEngine> engines);

} // namespace sluice::train
