// RUN: sluice-opt %s --sluice-reduce-gradients --split-input-file --verify-diagnostics

// expected-error @below {{knows no train.ranks = "any"; there are "ordered" and "fast"}}
module attributes {train.ranks = "any"} {
}

// -----

// expected-error @below {{has no update in @step; run sluice-build-backward before sluice-reduce-gradients}}
module attributes {train.ranks = "fast"} {
  func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

// Twice would sum over all ranks twice.
module attributes {train.ranks = "fast"} {
  train.variable @w role(parameter) init(zero) : tensor<8xf32>
  train.variable @m role(optimizer) init(zero) : tensor<8xf32>
  func.func @step(%g: tensor<8xf32>) -> tensor<8xf32> {
    %w = train.read @w : tensor<8xf32>
    %m = train.read @m : tensor<8xf32>
    // expected-error @below {{is as itself leaves it; run sluice-reduce-gradients before that}}
    %all = train.all_reduce %g {mean} : (tensor<8xf32>) -> tensor<8xf32>
    %w2, %m2 = train.update(%all, %w, %m) rule(sgd) : tensor<8xf32>
    return %g : tensor<8xf32>
  }
}
