// SPDX-License-Identifier: Apache-2.0
// Registration of the train dialect, and the small helpers declared in Train.h.
#include "ir/Cache.h"
#include "runtime/Tensor.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sluice::train;

#include "ir/TrainDialect.cpp.inc"
#include "ir/TrainEnums.cpp.inc"
#include "ir/TrainInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/TrainAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/TrainTypes.cpp.inc"

#define GET_OP_CLASSES
#include "ir/TrainOps.cpp.inc"

void TrainDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/TrainAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/TrainTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/TrainOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/CacheOps.cpp.inc"
      >();
}

/// Elements of a static shape, or nothing when they are no int64_t.
static std::optional<int64_t> checkedElements(RankedTensorType tensor) {
  int64_t count = 1;
  for (int64_t extent : tensor.getShape())
    if (extent < 0 || llvm::MulOverflow(count, extent, count))
      return std::nullopt;
  return count;
}

/// A mask is counted by whole words of 64 bits, which kernels read and write at once.
static std::optional<int64_t> checkedBytes(RankedTensorType tensor) {
  std::optional<int64_t> count = checkedElements(tensor);
  int64_t size = 0;
  if (count && tensor.getElementType().isInteger(1))
    return *count / 64 * 8 + (*count % 64 ? 8 : 0);
  if (!count || llvm::MulOverflow<int64_t>(*count, std::max<int64_t>(1, tensor.getElementTypeBitWidth() / 8), size))
    return std::nullopt;
  return size;
}

static int64_t sizeOf(Type type, llvm::function_ref<std::optional<int64_t>(RankedTensorType)> measure) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return 0;
  return measure(tensor).value(); // ops and checkTensors() let no others through
}

int64_t sluice::train::elements(Type type) { return sizeOf(type, checkedElements); }

int64_t sluice::train::bytes(Type type) { return sizeOf(type, checkedBytes); }

bool sluice::train::isAddressable(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && tensor.getRank() <= Shape::maxRank && checkedBytes(tensor);
}

Type sluice::train::heldTensor(Type type) {
  auto handle = dyn_cast<HostHandleType>(type);
  return handle ? Type(handle.getTensor()) : type;
}

/// Names of the nodes that an op came of, each once, in order: fused ops have several.
static void collectNames(Location loc, llvm::SmallVectorImpl<llvm::StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    if (!llvm::is_contained(names, name.getName().getValue()))
      names.push_back(name.getName().getValue());
  } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      collectNames(part, names);
  }
}

std::string sluice::train::nodeName(Location loc) {
  llvm::SmallVector<llvm::StringRef> names;
  collectNames(loc, names);
  return llvm::join(names, ", ");
}

LayoutKind sluice::train::layoutOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto layout = tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding()) : LayoutAttr();
  return layout ? layout.getKind() : LayoutKind::RowMajor;
}

bool sluice::train::isImage(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() >= 3 && tensor.getRank() <= 5;
}

RankedTensorType sluice::train::withLayout(RankedTensorType type, LayoutKind layout) {
  Attribute encoding;
  if (layout != LayoutKind::RowMajor)
    encoding = LayoutAttr::get(type.getContext(), layout);
  return RankedTensorType::get(type.getShape(), type.getElementType(), encoding);
}

bool sluice::train::layoutsCoincide(RankedTensorType type) {
  return type.getRank() < 3 || type.getDimSize(1) == 1 ||
         llvm::all_of(type.getShape().drop_front(2), [](int64_t extent) { return extent == 1; });
}

/// Dimensions of more than one element, outermost first.
static SmallVector<int64_t> physicalOrder(RankedTensorType type) {
  const sluice::Layout layout = layoutOf(type) == LayoutKind::NHWC ? sluice::Layout::NHWC : sluice::Layout::RowMajor;
  SmallVector<int64_t> order =
      llvm::map_to_vector(llvm::seq<int64_t>(0, type.getRank()), [&](int64_t place) -> int64_t {
        return dimensionAt(static_cast<int>(place), static_cast<int>(type.getRank()), layout);
      });
  llvm::erase_if(order, [&](int64_t dimension) { return type.getDimSize(dimension) == 1; });
  return order;
}

bool sluice::train::keepsOrder(RankedTensorType x, RankedTensorType y, ArrayRef<int64_t> permutation) {
  return physicalOrder(x) == llvm::map_to_vector(physicalOrder(y), [&](int64_t i) { return permutation[i]; });
}

bool sluice::train::keepsChannels(RankedTensorType x, RankedTensorType y) {
  return isImage(x) && isImage(y) && x.getShape().take_front(2) == y.getShape().take_front(2);
}

void sluice::train::copyOrdinal(Operation *from, Operation *to) {
  if (IntegerAttr ordinal = attr::get<attr::Forward>(from))
    attr::set<attr::Forward>(to, ordinal);
  if (IntegerAttr ordinal = attr::get<attr::Backward>(from))
    attr::set<attr::Backward>(to, ordinal);
}

int64_t sluice::train::ordinalOf(Operation *op) {
  IntegerAttr number = isForward(op) ? attr::get<attr::Forward>(op) : attr::get<attr::Backward>(op);
  return number ? number.getInt() : -1;
}

bool sluice::train::isForward(Operation *op) { return attr::has<attr::Forward>(op); }

std::string sluice::train::sanitized(std::string name) {
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  if (name.empty() || llvm::isDigit(name[0]))
    name = "n" + name;
  return name;
}

/// In /module/Op: whether the module's name says the op already ("conv1", "bn1", "relu"), or is that of a block with
/// several such ops.
static bool namesOp(StringRef module, StringRef op) {
  op = op.split('_').first;
  std::string lower = module.lower();
  return llvm::StringSwitch<bool>(op)
      .Cases({"Conv", "ConvTranspose", "BatchNormalization", "Gemm", "MatMul"}, true)
      .Default(StringRef(lower).starts_with(op.lower()));
}

// PyTorch names a module by its path, and repeats the name of a block in that of its members: what is the beginning of
// the next part goes. Names are made unique later (Storages): two nodes may come to the same one.
std::string sluice::train::identifierOf(StringRef nodeName) {
  // The last of several fused nodes is what the value is known as.
  StringRef node = nodeName.substr(nodeName.rfind(", ") == StringRef::npos ? 0 : nodeName.rfind(", ") + 2);
  SmallVector<StringRef> parts;
  node.split(parts, '/', -1, /*KeepEmpty=*/false);
  if (parts.size() > 1 && namesOp(parts[parts.size() - 2], parts.back()))
    parts.pop_back();
  std::string name;
  for (size_t i = 0; i < parts.size(); ++i)
    if (i + 1 == parts.size() || !parts[i + 1].starts_with((parts[i] + ".").str()))
      name += (name.empty() ? "" : "_") + parts[i].str();
  name = sanitized(name);
  name[0] = llvm::toLower(name[0]);
  return name;
}

// Shapes align at their last dimension, as numpy broadcasts: `missing` are those that the operand lacks in front.
bool sluice::train::advancesInnermost(RankedTensorType operand, bool isChannel, RankedTensorType domain) {
  bool nhwc = layoutOf(domain) == LayoutKind::NHWC;
  if (isChannel)
    return nhwc || domain.getRank() == 2;
  int64_t innermost = nhwc ? 1 : domain.getRank() - 1, missing = domain.getRank() - operand.getRank();
  if (innermost < 0 || domain.getDimSize(innermost) == 1)
    return true;
  return innermost >= missing && operand.getDimSize(innermost - missing) != 1;
}
