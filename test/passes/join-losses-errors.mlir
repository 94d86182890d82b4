// RUN: sluice-opt --sluice-join-losses --split-input-file --verify-diagnostics %s
// The pass refuses what is linearized: where the gradient works is decided there; what it leaves is verified, see train.loss_and_gradient.

func.func @after_linearize(%x: tensor<2x3xf32>) {
  // expected-error @below {{is as sluice-linearize leaves it; run sluice-join-losses before that}}
  %y = train.relu %x {train.stage = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
