// SPDX-License-Identifier: Apache-2.0
// quantize-frozen, for each variable with train.quantized, which --frozen gave it:
//  1. the variable and its reads become the form's bytes, or bf16;
//  2. each op that reads it gets the floats from a train.dequantize, or a train.cast, of its own right in front of it,
//  which belongs to that op's forward op. A train.embedding becomes one of the rows that it reads, a train.matmul on
//  the host a train.quantized_matmul, whose kernel makes floats of a part at a time.
// After build-backward, so that a product and its gradient each have one: floats that both shared would live from the
// forward half to the backward one, and take the bytes that the form saves. After assign-layouts, which takes no
// halves, and before assign-precision, by which the floats become what products read.
#include "passes/Passes.h"

#include "llvm/ADT/SetVector.h"

namespace sluice {
#define GEN_PASS_DEF_QUANTIZEFROZEN
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

struct QuantizeFrozen : sluice::impl::QuantizeFrozenBase<QuantizeFrozen> {
  using QuantizeFrozenBase::QuantizeFrozenBase;

  void runOnOperation() override {
    llvm::StringMap<QuantizedAttr> forms;
    for (auto variable : getOperation().getOps<VariableOp>())
      if (auto form = attr::get<attr::Quantized>(variable); form && variable.getType() != form.heldType()) {
        forms[variable.getSymName()] = form;
        variable.setType(form.heldType());
      }
    if (forms.empty())
      return;
    if (failed(checkRunsBefore(getOperation(), "sluice-quantize-frozen", "sluice-linearize", attr::has<attr::Stage>)))
      return signalPassFailure();
    quantized += forms.size();
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (auto read : llvm::make_early_inc_range(function.getOps<ReadOp>()))
        if (QuantizedAttr form = forms.lookup(read.getVariable()))
          restoreAtUses(read, form);
  }

private:
  /// Halves are factors as they are where products read such.
  bool takesForm(MatmulOp product, Value weight, QuantizedAttr form) {
    return target == Target::Host && !(form.getBits() == 16 && halfOf(getOperation())) && product.getB() == weight &&
           product.getA() != weight && product.getBias() != weight && !product.getTransposeA();
  }

  void restoreAtUses(ReadOp read, QuantizedAttr form) {
    const Type floats = read.getResult().getType();
    const auto users = llvm::SmallSetVector<Operation *, 4>(read->user_begin(), read->user_end());
    read.getResult().setType(form.heldType());
    for (Operation *user : users) {
      OpBuilder b(user);
      ++uses;
      if (auto product = dyn_cast<MatmulOp>(user); product && takesForm(product, read, form)) {
        auto quantized = QuantizedMatmulOp::create(b, product.getLoc(), product.getY().getType(), product.getA(), read,
                                                   product.getBias(), product.getTransposeBAttr(),
                                                   product.getAlphaAttr(), product.getBetaAttr(), form);
        copyOrdinal(product, quantized);
        product.getY().replaceAllUsesWith(quantized.getY());
        product.erase();
        continue;
      }
      auto rows = dyn_cast<EmbeddingOp>(user);
      const bool takesRows = rows && form.getBits() != 16;
      Value restored = form.getBits() == 16
                           ? CastOp::create(b, user->getLoc(), floats, read.getResult()).getY()
                           : DequantizeOp::create(b, user->getLoc(), takesRows ? rows.getY().getType() : floats,
                                                  read.getResult(), takesRows ? rows.getIds() : Value(), form)
                                 .getY();
      copyOrdinal(user, restored.getDefiningOp());
      if (!takesRows) {
        user->replaceUsesOfWith(read.getResult(), restored);
        continue;
      }
      rows.getY().replaceAllUsesWith(restored);
      rows.erase();
    }
  }
};

} // namespace
