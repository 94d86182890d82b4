// RUN: sluice-opt --sluice-pad-products --split-input-file --verify-diagnostics %s
// The pass refuses what is linearized, as pieces and what works in place follow from types; what it leaves is verified, see train.cast and the losses.

func.func @after_linearize(%x: tensor<2x3xf32>) {
  // expected-error @below {{is as sluice-linearize leaves it; run sluice-pad-products before that}}
  %y = train.relu %x {train.stage = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
