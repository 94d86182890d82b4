// SPDX-License-Identifier: Apache-2.0
// Matrix products by one of the host's ways.
#include "runtime/host/MatmulBias.h"
#include "runtime/host/MatmulProduct.h"

namespace sluice {

struct Matmul::Impl {
  MatmulProduct product;
  MatmulBias bias;

  void run(const void *pa, const void *pb, const void *pBias, void *pc, void *pad) const {
    bias.begin(pBias, pc);
    product.run(pa, pb, pBias, pc, pad);
    bias.finish(pBias, pc);
  }
};

Matmul::Matmul(Node node, Shape a, Shape b, Shape c, MatmulOptions options)
    : Kernel(node), impl(std::make_unique<Impl>()) {
  const MatmulGeometry geometry{a, b, c, options};
  impl->product = MatmulProduct(node, geometry);
  impl->bias = MatmulBias(shapeOf(node, geometry), options.result, impl->product.addsRow());
  workspace = impl->product.workspaceBytes();
}

Matmul::~Matmul() = default;
Matmul::Matmul(Matmul &&) = default;

void Matmul::run(Stream &stream, const Tensor &a, const Tensor &b, const Tensor &bias, const Tensor &c,
                 const Tensor &scratch) const {
  const void *pa = stream.address(a), *pb = stream.address(b), *pBias = stream.address(bias);
  void *pc = stream.address(c), *pad = stream.address(scratch);
  stream.launch(node, "matmul", [impl = impl.get(), pa, pb, pBias, pc, pad] { impl->run(pa, pb, pBias, pc, pad); });
}

} // namespace sluice
