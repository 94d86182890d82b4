// SPDX-License-Identifier: Apache-2.0
// Reading ops for the kernel table: types in the runtime's terms, attributes by name.
#include "ir/KernelTable.h"

using namespace mlir;
using namespace sluice;

int64_t KernelOp::integer(llvm::StringRef name) const {
  auto attribute = parameters.getAs<IntegerAttr>(name);
  return attribute ? attribute.getInt() : 0;
}
double KernelOp::number(llvm::StringRef name) const {
  auto attribute = parameters.getAs<FloatAttr>(name);
  return attribute ? attribute.getValueAsDouble() : 1;
}
bool KernelOp::flag(llvm::StringRef name) const {
  auto attribute = parameters.getAs<BoolAttr>(name);
  return attribute && attribute.getValue();
}
std::vector<int64_t> KernelOp::list(llvm::StringRef name) const {
  auto attribute = parameters.getAs<DenseI64ArrayAttr>(name);
  return attribute ? std::vector<int64_t>(attribute.asArrayRef()) : std::vector<int64_t>();
}
std::string KernelOp::word(llvm::StringRef name) const {
  auto attribute = parameters.getAs<StringAttr>(name);
  return attribute ? attribute.str() : "";
}

bool KernelOp::present(llvm::StringRef name) const { return parameters.contains(name); }

Algorithm KernelOp::algorithm() const {
  auto chosen = parameters.getAs<DictionaryAttr>(train::attr::algorithm);
  if (!chosen)
    return {};
  return {chosen.getAs<StringAttr>("name").data(), chosen.getAs<IntegerAttr>("parts").getInt(),
          chosen.getAs<IntegerAttr>("granted").getInt()};
}

KernelOp sluice::kernelOf(Operation *op) {
  KernelOp result{op->getName().stripDialect().str(), train::nodeName(op->getLoc()), {}, {}, op->getAttrDictionary()};
  for (Type type : op->getOperandTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      result.ins.push_back(tensor);
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      result.outs.push_back(tensor);
  return result;
}

KernelOp sluice::kernelOf(sched::RunOp run) {
  KernelOp result{run.getKernel().str(), train::nodeName(run.getLoc()), {}, {}, run.getParameters()};
  for (unsigned i = 0; i < run.getIns().size(); ++i)
    result.ins.push_back(run.inType(i));
  for (unsigned i = 0; i < run.getOuts().size(); ++i)
    result.outs.push_back(run.outType(i));
  return result;
}

Shape sluice::shapeOf(RankedTensorType type) {
  // Verified ops have no such types: this guards the array.
  if (type.getRank() > Shape::maxRank)
    llvm::report_fatal_error("a tensor has more dimensions than the runtime can hold");
  Shape shape;
  for (int64_t extent : type.getShape())
    shape.append(extent);
  return shape;
}

Tensor sluice::tensorOf(RankedTensorType type) {
  Type element = type.getElementType();
  DataType data = element.isInteger(64)   ? DataType::I64
                  : element.isInteger(32) ? DataType::I32
                  : element.isInteger(8)  ? DataType::U8
                  : element.isInteger(1)  ? DataType::Bit
                  : element.isBF16()      ? DataType::BF16
                                          : DataType::F32;
  Layout layout = train::layoutOf(type) == train::LayoutKind::NHWC ? Layout::NHWC : Layout::RowMajor;
  return device(0, shapeOf(type), layout, data);
}

FusedOperands sluice::fusedOperands(const KernelOp &op) {
  FusedOperands result;
  result.sums = static_cast<unsigned>(op.integer("sums"));
  result.outputs = static_cast<unsigned>(op.outs.size()) - result.sums;
  RankedTensorType domain = result.outputs ? op.outs.front() : op.ins.front();
  result.shape = shapeOf(domain);
  result.layout = tensorOf(domain).layout;
  std::vector<int64_t> channels = op.list("channels");
  for (unsigned i = 0; i < op.ins.size(); ++i) {
    Tensor operand = tensorOf(op.ins[i]);
    bool channel = llvm::is_contained(channels, static_cast<int64_t>(i));
    if (channel) // [C,1,...], behind an absent batch dimension
      for (int d = 1; d < result.shape.rank - 1; ++d)
        operand.shape.append(1);
    result.inputs.push_back(operand);
    result.channel.push_back(channel);
    result.steps.push_back(train::advancesInnermost(op.ins[i], channel, domain));
  }
  return result;
}
