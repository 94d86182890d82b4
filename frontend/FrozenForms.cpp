// SPDX-License-Identifier: Apache-2.0
// A product reads a weight as x W or x W^T; groups lie along the dimension that it sums over, so that a scale is of
// weights of one output, and outputs with large weights take no digits from others. Through a transpose, which
// recompose takes away, the dimensions change places.
#include "frontend/FrozenForms.h"

#include "frontend/Refusals.h"
#include "frontend/StoredMatrix.h"
#include "ir/TensorName.h"
#include "runtime/Printable.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>
#include <map>

using namespace mlir;

namespace sluice {
namespace {

/// Below that scales, a kernel more and a slot of its own cost more than is saved.
constexpr int64_t fewestElements = 4096;

/// Along which dimension of a matrix its readers sum. Any: they take rows as they are.
enum class Summed { Rows, Columns, Any, Unknown };

Summed asTransposed(Summed dimension) {
  return dimension == Summed::Rows ? Summed::Columns : dimension == Summed::Columns ? Summed::Rows : Summed::Unknown;
}

/// Whether all that comes of an op is a value that no gradient passes, as the lengths of DoRA.
bool isDetached(Operation *op) {
  for (; !op->use_empty(); op = *op->user_begin()) {
    if (isa<train::DetachOp>(op))
      return true;
    if (!llvm::all_equal(op->getUsers()))
      return false;
  }
  return false;
}

/// What one reader does with the matrix; Unknown: something else than a product or, of forms that have rows, a gather.
Summed summedBy(OpOperand &use, bool hasRows) {
  if (auto product = dyn_cast<train::MatmulOp>(use.getOwner()); product && use.getOperandNumber() < 2) {
    const bool isFirst = use.getOperandNumber() == 0;
    return isFirst != (isFirst ? product.getTransposeA() : product.getTransposeB()) ? Summed::Columns : Summed::Rows;
  }
  return isDetached(use.getOwner()) || (hasRows && isa<train::EmbeddingOp>(use.getOwner())) ? Summed::Any
                                                                                            : Summed::Unknown;
}

/// What all readers do with the matrix, where products differ the first one.
Summed summedDimension(Value matrix, bool hasRows) {
  Summed first = Summed::Any;
  for (OpOperand &use : matrix.getUses()) { // in reverse order
    auto transpose = dyn_cast<train::TransposeOp>(use.getOwner());
    const Summed one = transpose ? asTransposed(summedDimension(transpose.getY(), hasRows)) : summedBy(use, hasRows);
    if (one == Summed::Unknown)
      return one;
    first = one == Summed::Any ? first : one;
  }
  return first;
}

/// The form of a variable in all functions; null: it stays as it is.
train::QuantizedAttr formOf(ModuleOp module, train::VariableOp variable, const FrozenForm &wanted) {
  const auto type = cast<RankedTensorType>(variable.getType());
  if (type.getRank() != 2 || !type.getElementType().isF32() || type.getNumElements() < fewestElements ||
      variable.getValue() || variable.getInit() != train::Init::File)
    return {};
  const bool grouped = wanted.bits != 16;
  Summed dimension = Summed::Any;
  for (auto function : module.getOps<func::FuncOp>())
    for (auto read : function.getOps<train::ReadOp>()) {
      if (read.getVariable() != variable.getSymName())
        continue;
      const Summed here = summedDimension(read.getResult(), grouped);
      if (here == Summed::Unknown)
        return {};
      dimension = dimension == Summed::Any ? here : dimension;
    }
  return formAttr(module.getContext(),
                  {wanted.bits, grouped ? wanted.group : 0, grouped && dimension != Summed::Rows ? 1 : 0,
                   type.getDimSize(0), type.getDimSize(1), wanted.coding});
}

std::string wordsOf(const Quantization &form) {
  return form.bits == 16 ? std::string(form.name())
                         : std::string(form.name()) + " in groups of " + std::to_string(form.group);
}

/// The file's tensor that a variable begins as; null where there is none.
const FileTensor *tensorOf(train::VariableOp variable, const OnnxFile &file) {
  auto source = variable->getAttrOfType<StringAttr>(train::sourceAttribute);
  return file.tensor(source ? source.str() : train::tensorName(variable).str());
}

} // namespace

train::QuantizedAttr formAttr(MLIRContext *context, const Quantization &form) {
  return train::QuantizedAttr::get(context, {form.rows, form.columns}, form.bits, form.group, form.dimension,
                                   static_cast<train::Coding>(form.coding));
}

void reportStored(ModuleOp module, const OnnxFile &file, std::vector<std::string> &remarks) {
  std::map<std::string, int64_t> counts; // by words
  int64_t bytes = 0, floats = 0, count = 0;
  for (auto variable : module.getOps<train::VariableOp>())
    if (const FileTensor *tensor = tensorOf(variable, file); tensor && tensor->stored) {
      ++counts[wordsOf(tensor->stored->form)];
      ++count;
      bytes += tensor->stored->form.bytes();
      floats += train::bytes(variable.getType());
    }
  std::string words;
  for (const auto &[form, times] : counts)
    words += (words.empty() ? "" : "; ") + std::to_string(times) + " in " + form;
  if (count > 0)
    remarks.push_back(counted(count, "weight") + " that the file has in fewer bits " + (count == 1 ? "is" : "are") +
                      " kept so, and held fixed: " + words + ", " + std::to_string(bytes) + " bytes instead of " +
                      std::to_string(floats));
}

Status giveForms(ModuleOp module, const std::vector<train::VariableOp> &frozen, const FrozenForm &wanted,
                 std::vector<std::string> &remarks) {
  const std::string flag = "--frozen=" + wanted.word;
  if (frozen.empty())
    return Error{flag + " keeps weights that are held fixed in fewer bits, and this model has none: --freeze=REGEX "
                        "holds some, --adapter=lora all but its adapters"};
  size_t count = 0;
  int64_t before = 0, after = 0;
  for (train::VariableOp variable : frozen)
    if (train::QuantizedAttr form = formOf(module, variable, wanted)) {
      train::attr::set<train::attr::Quantized>(variable, form);
      ++count;
      before += train::bytes(variable.getType());
      after += form.form().bytes();
    }
  if (count == 0)
    return Error{flag + ": of " + counted(frozen.size(), "tensor") + " held fixed none is a matrix of " +
                 std::to_string(fewestElements) +
                 " elements or more that only products and gathers of rows read: leave the flag out"};
  const Quantization form{wanted.bits, wanted.group, 0, 0, 0, wanted.coding};
  remarks.push_back(std::to_string(count) + " of the " + counted(frozen.size(), "tensor") + " that flags hold fixed " +
                    (count == 1 ? "is" : "are") + " kept in " + wordsOf(form) + ": " + std::to_string(after) +
                    " bytes instead of " + std::to_string(before) + ", " + std::to_string(before - after) + " less");
  return Success{};
}

std::string describeForm(train::VariableOp variable, const OnnxFile *file) {
  const auto quantized = train::attr::get<train::attr::Quantized>(variable);
  if (!quantized)
    return "";
  const Quantization form = quantized.form();
  std::string text = "; kept in " + wordsOf(form) + ", " + std::to_string(form.bytes()) + " bytes";
  const std::string name = train::tensorName(variable).str();
  const FileTensor *tensor = file ? tensorOf(variable, *file) : nullptr;
  if (tensor && tensor->stored)
    return text + " as in the file";
  if (!tensor || static_cast<int64_t>(tensor->bytes.size()) != 4 * form.rows * form.columns)
    return text;
  const double error = relativeError(
      form, name, [&](size_t first, void *to, size_t bytes) { std::memcpy(to, tensor->bytes.data() + first, bytes); });
  return text + ", relative error " + llvm::formatv("{0:E2}", error).str();
}

} // namespace sluice
