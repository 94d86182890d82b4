// RUN: sluice-opt --split-input-file --verify-diagnostics %s
// One op for each numbered constraint of the train dialect, named after it; those of what a pass makes are in test/passes/<pass>-errors.mlir.
// Ops whose result types are inferred say what is wrong and then that inference failed.

func.func @conv_c1(%x: tensor<2x3x4x4xf32>, %w: tensor<6x2x1x1xf32>) {
  // expected-error @below {{in 1 groups does not fit}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<6x2x1x1xf32>) -> tensor<2x6x4x4xf32>
  return
}

// -----

func.func @conv_c1_volume(%x: tensor<2x3x4x4x4xf32>, %w: tensor<6x3x1x1xf32>) {
  // expected-error @below {{in 1 groups does not fit}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x3x4x4x4xf32>, tensor<6x3x1x1xf32>) -> tensor<2x6x4x4x4xf32>
  return
}

// -----

func.func @conv_c2_volume(%x: tensor<2x3x4x4x4xf32>, %w: tensor<6x3x5x1x1xf32>) {
  // expected-error @below {{window 5x1x1 does not fit into the padded image}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.conv %x, %w {strides = array<i64: 1, 1, 1>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>, group = 1 : i64} : (tensor<2x3x4x4x4xf32>, tensor<6x3x5x1x1xf32>) -> tensor<2x6x1x4x4xf32>
  return
}

// -----

func.func @conv_c2_volume_pads(%x: tensor<2x3x4x4x4xf32>, %w: tensor<6x3x1x1x1xf32>) {
  // expected-error @below {{needs 3 positive strides, 6 pads}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.conv %x, %w {strides = array<i64: 1, 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>, group = 1 : i64} : (tensor<2x3x4x4x4xf32>, tensor<6x3x1x1x1xf32>) -> tensor<2x6x4x4x4xf32>
  return
}

// -----

func.func @conv_transpose_c2_volume(%x: tensor<2x3x4x4x4xf32>, %w: tensor<3x6x2x2x2xf32>) {
  // expected-error @below {{cannot map extent 4 to 9}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.conv_transpose %x, %w {strides = array<i64: 1, 2, 2>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>, group = 1 : i64, output_size = array<i64: 9, 8, 8>} : (tensor<2x3x4x4x4xf32>, tensor<3x6x2x2x2xf32>) -> tensor<2x6x9x8x8xf32>
  return
}

// -----

func.func @max_pool_c1_volume(%x: tensor<2x3x4x4x4xf32>) {
  // expected-error @below {{pooling window 2x2x2 with pads 2,0,0,0,0,0 does not fit}}
  // expected-error @below {{failed to infer returned types}}
  %y, %i = train.max_pool %x {kernel = array<i64: 2, 2, 2>, strides = array<i64: 2, 2, 2>, pads = array<i64: 2, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<2x3x4x4x4xf32>) -> (tensor<2x3x3x2x2xf32>, tensor<2x3x3x2x2xi8>)
  return
}

// -----

func.func @average_pool_c1_dilations(%x: tensor<2x3x4x4x4xf32>) {
  // expected-error @below {{pooling needs rank 4 or 5, and for each of 2 or 3 dimensions}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.average_pool %x {kernel = array<i64: 2, 2, 2>, strides = array<i64: 2, 2, 2>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 2>} : (tensor<2x3x4x4x4xf32>) -> tensor<2x3x2x2x2xf32>
  return
}

// -----

func.func @conv_c2(%x: tensor<2x3x4x4xf32>, %w: tensor<6x3x5x5xf32>) {
  // expected-error @below {{window 5x5 does not fit into the padded image}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<6x3x5x5xf32>) -> tensor<2x6x1x1xf32>
  return
}

// -----

func.func @conv_c2_strides(%x: tensor<2x3x4x4xf32>, %w: tensor<6x3x1x1xf32>) {
  // expected-error @below {{needs 2 positive strides}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.conv %x, %w {strides = array<i64: 0, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<6x3x1x1xf32>) -> tensor<2x6x4x4xf32>
  return
}

// -----

func.func @conv_c3(%x: tensor<2x3x4x4xf32>, %w: tensor<6x3x1x1xf32>, %b: tensor<3xf32>) {
  // expected-error @below {{has 6 outputs but a bias 'tensor<3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<6x3x1x1xf32>, tensor<3xf32>) -> tensor<2x6x4x4xf32>
  return
}

// -----

func.func @conv_transpose_c1(%x: tensor<2x3x4x4xf32>, %w: tensor<6x3x2x2xf32>) {
  // expected-error @below {{in 1 groups does not fit}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.conv_transpose %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64, output_size = array<i64: 8, 8>} : (tensor<2x3x4x4xf32>, tensor<6x3x2x2xf32>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @conv_transpose_c2(%x: tensor<2x3x4x4xf32>, %w: tensor<3x6x2x2xf32>) {
  // expected-error @below {{cannot map extent 4 to 10}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.conv_transpose %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64, output_size = array<i64: 8, 10>} : (tensor<2x3x4x4xf32>, tensor<3x6x2x2xf32>) -> tensor<2x6x8x10xf32>
  return
}

// -----

func.func @batch_norm_c1(%x: tensor<2x3x4x4xf32>, %s: tensor<4xf32>) {
  // expected-error @below {{has scale 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %y, %m, %r = train.batch_norm %x, %s, %s {epsilon = 1.0e-5 : f32} : (tensor<2x3x4x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @max_pool_c1(%x: tensor<2x3x4x4xf32>) {
  // expected-error @below {{pooling window 2x2 with pads 2,0,0,0 does not fit}}
  // expected-error @below {{failed to infer returned types}}
  %y, %i = train.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 2, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x4x4xf32>) -> (tensor<2x3x3x2xf32>, tensor<2x3x3x2xi8>)
  return
}

// -----

func.func @max_pool_c2(%x: tensor<2x3x4x4xf32>) {
  // expected-error @below {{are incompatible with return type(s)}}
  // expected-error @below {{failed to infer returned types}}
  %y, %i = train.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x4x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x3x2x2xi32>)
  return
}

// -----

func.func @average_pool_c1(%x: tensor<2x3x4xf32>) {
  // expected-error @below {{pooling needs rank 4}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.average_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  return
}

// -----

func.func @matmul_c1(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @below {{does not fit: inner extents 3 and 4}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.matmul %a, %b : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @matmul_c2(%a: tensor<2x3xf32>, %b: tensor<3x5xf32>, %c: tensor<2xf32>) {
  // expected-error @below {{does not broadcast to 2x5}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.matmul %a, %b, %c : (tensor<2x3xf32>, tensor<3x5xf32>, tensor<2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @softmax_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{softmax axis 2 of}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.softmax %x {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @concat_c1(%a: tensor<2x3xf32>, %b: tensor<3x3xf32>) {
  // expected-error @below {{along dimension 1}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.concat %a, %b {axis = 1 : i64} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @slice_c2(%x: tensor<4x2x32xf32>) {
  // expected-error @below {{is no piece of 'tensor<4x2x32xf32>' that begins at a multiple of 256 bytes: it starts at 1 of dimension 1}}
  %y = train.slice %x {axis = 1 : i64, start = 1 : i64, length = 1 : i64, piece} : (tensor<4x2x32xf32>) -> tensor<4x1x32xf32>
  return
}

// -----

func.func @slice_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{slice [2, 2 + 2) of dimension 1}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.slice %x {axis = 1 : i64, start = 2 : i64, length = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @reshape_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{reshapes 6 elements into 5}}
  %y = train.reshape %x : (tensor<2x3xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @reshape_c2(%x: tensor<2x3x4x5xf32, #train.layout<nhwc>>) {
  // expected-error @below {{is no view of}}
  %y = train.reshape %x : (tensor<2x3x4x5xf32, #train.layout<nhwc>>) -> tensor<2x3x20xf32>
  return
}

// -----

func.func @reshape_c2_channels(%x: tensor<2x3x4x5xf32, #train.layout<nhwc>>) {
  // expected-error @below {{is no view of}}
  %y = train.reshape %x : (tensor<2x3x4x5xf32, #train.layout<nhwc>>) -> tensor<2x6x10xf32, #train.layout<nhwc>>
  return
}

// -----

func.func @transpose_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{no permutation of its dimensions}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.transpose %x {permutation = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @resize_c1(%x: tensor<2x3x4x4xf32>) {
  // expected-error @below {{positive scales}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.resize %x {size = array<i64: 8, 8>, scale_h = 0.0 : f32, scale_w = 2.0 : f32, mode = 0 : i32, coordinates = 3 : i32, nearest = 2 : i32} : (tensor<2x3x4x4xf32>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @broadcast_to_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{does not broadcast to}}
  %y = train.broadcast_to %x : (tensor<2x3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @sum_to_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{does not broadcast to}}
  %y = train.sum_to %x : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @softmax_cross_entropy_c1(%x: tensor<2x3xf32>, %t: tensor<3xi64>) {
  // expected-error @below {{against a target of}}
  // expected-error @below {{failed to infer returned types}}
  %l = train.softmax_cross_entropy %x, %t : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<f32>
  return
}

// -----

func.func @softmax_cross_entropy_c2(%x: tensor<2x3xf32>, %t: tensor<2xi64>) {
  // expected-error @below {{4 classes of the 3 of 'tensor<2x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %l = train.softmax_cross_entropy %x, %t {classes = 4 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<f32>
  return
}

// -----

func.func @softmax_cross_entropy_c3(%x: tensor<2x3xf32>, %t: tensor<4xi64>) {
  // expected-error @below {{rows 'tensor<2x3xf32>' from 3 on against a target of 'tensor<4xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %l = train.softmax_cross_entropy %x, %t {first = 3 : i64} : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<f32>
  return
}

// -----

func.func @softmax_cross_entropy_c3_places(%x: tensor<2x3x2xf32>, %t: tensor<4x2xi64>) {
  // expected-error @below {{rows 'tensor<2x3x2xf32>' from 0 on against a target of 'tensor<4x2xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %l = train.softmax_cross_entropy %x, %t {first = 0 : i64} : (tensor<2x3x2xf32>, tensor<4x2xi64>) -> tensor<f32>
  return
}

// -----

func.func @count_correct_c1(%x: tensor<2x3xf32>, %t: tensor<2xi64>) {
  // expected-error @below {{0 classes of the 3 of 'tensor<2x3xf32>'}}
  %n = train.count_correct %x, %t {classes = 0 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<i64>
  return
}

// -----

func.func @mse_c1(%x: tensor<2x3xf32>, %t: tensor<3x2xf32>) {
  // expected-error @below {{against a target of}}
  // expected-error @below {{failed to infer returned types}}
  %l = train.mse %x, %t : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<f32>
  return
}

// -----

func.func @bce_with_logits_c1(%x: tensor<2x3xf32>, %t: tensor<2xf32>) {
  // expected-error @below {{against a target of}}
  // expected-error @below {{failed to infer returned types}}
  %l = train.bce_with_logits %x, %t : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<f32>
  return
}

// -----

func.func @bce_with_logits_c2(%x: tensor<2x3xf32>, %w: tensor<1x4xf32>) {
  // expected-error @below {{weights 'tensor<1x4xf32>' of 'tensor<2x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %l = train.bce_with_logits %x, %x, %w : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<1x4xf32>) -> tensor<f32>
  return
}

// -----

func.func @bce_with_logits_c2_matrix(%x: tensor<2x3xf32>) {
  // expected-error @below {{weights 'tensor<2x3xf32>' of 'tensor<2x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %l = train.bce_with_logits %x, %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @bce_with_logits_c2_rank(%x: tensor<2x3xf32>, %w: tensor<3xf32>) {
  // expected-error @below {{weights 'tensor<3xf32>' of 'tensor<2x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %l = train.bce_with_logits %x, %x, %w : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @elementwise_c1_broadcast(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @below {{operand 1 of type 'tensor<2xf32>' does not fit 'tensor<2x3xf32>'}}
  %y = train.add %a, %b : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @elementwise_c1_operand(%d: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  // expected-error @below {{operand 1 of type 'tensor<2x4xf32>' does not fit}}
  %x = train.relu_backward %d, %y : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @elementwise_c1_channel(%x: tensor<2x3xf32>, %m: tensor<2xf32>) {
  // expected-error @below {{operand 1 of type 'tensor<2xf32>' does not fit}}
  %y = train.normalize %x, %m, %m, %m, %m : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @elementwise_c1_sum(%x: tensor<2x3xf32>, %m: tensor<3xf32>) {
  // expected-error @below {{result 1 of type 'tensor<2xf32>' does not fit}}
  %y:2 = train.normalize_reduce %x, %x, %m, %m : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<2xf32>)
  return
}

// -----

func.func @conv_backward_data_c1(%d: tensor<2x6x4x4xf32>, %w: tensor<6x3x1x1xf32>) {
  // expected-error @below {{is no gradient of 'train.conv', which gives 'tensor<2x6x5x5xf32>', not 'tensor<2x6x4x4xf32>'}}
  %x = train.conv_backward_data %d, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x6x4x4xf32>, tensor<6x3x1x1xf32>) -> tensor<2x3x5x5xf32>
  return
}

// -----

func.func @conv_backward_weight_c1(%d: tensor<2x6x4x4xf32>, %x: tensor<2x3x4x4xf32>) {
  // expected-error @below {{has 6 outputs but a bias 'tensor<4xf32>'}}
  %w, %b = train.conv_backward_weight %d, %x {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x6x4x4xf32>, tensor<2x3x4x4xf32>) -> (tensor<6x3x1x1xf32>, tensor<4xf32>)
  return
}

// -----

func.func @conv_statistics_c1(%x: tensor<2x3x4x4xf32>, %w: tensor<6x2x1x1xf32>) {
  // expected-error @below {{in 1 groups does not fit}}
  // expected-error @below {{failed to infer returned types}}
  %y, %m, %r = train.conv_statistics %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64, epsilon = 1.0e-5 : f32} : (tensor<2x3x4x4xf32>, tensor<6x2x1x1xf32>) -> (tensor<2x6x4x4xf32>, tensor<6xf32>, tensor<6xf32>)
  return
}

// -----

func.func @conv_backward_norm_c1(%d: tensor<2x6x4x4xf32>, %w: tensor<6x3x1x1xf32>, %z: tensor<2x3x5x5xf32>, %v: tensor<3xf32>) {
  // expected-error @below {{is no gradient of 'train.conv', which gives 'tensor<2x6x5x5xf32>', not 'tensor<2x6x4x4xf32>'}}
  %x, %s, %b = train.conv_backward_norm %d, %w, %z, %z, %v, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x6x4x4xf32>, tensor<6x3x1x1xf32>, tensor<2x3x5x5xf32>, tensor<2x3x5x5xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x5x5xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @conv_backward_norm_c1_addend(%d: tensor<2x6x4x4xf32>, %w: tensor<6x3x1x1xf32>, %z: tensor<2x3x4x4xf32>, %v: tensor<3xf32>, %a: tensor<2x3x1x1xf32>) {
  // expected-error @below {{has tensors of unlike shapes}}
  %x, %s, %b = train.conv_backward_norm %d, %w, %z, %z, %v, %v, %a {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x6x4x4xf32>, tensor<6x3x1x1xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3x1x1xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @conv_backward_norm_c2(%d: tensor<2x6x4x4xf32>, %w: tensor<6x3x1x1xf32>, %z: tensor<2x3x4x4xf32>, %v: tensor<3xf32>, %u: tensor<4xf32>) {
  // expected-error @below {{has statistics 'tensor<4xf32>' of 3 channels}}
  %x, %s, %b = train.conv_backward_norm %d, %w, %z, %z, %v, %u {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x6x4x4xf32>, tensor<6x3x1x1xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<4xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @batch_norm_backward_c1(%d: tensor<2x3x4x4xf32>, %x: tensor<2x3x2x4xf32>, %v: tensor<3xf32>) {
  // expected-error @below {{is no gradient of 'train.batch_norm'}}
  %dx, %s, %b = train.batch_norm_backward %d, %x, %v, %v, %v : (tensor<2x3x4x4xf32>, tensor<2x3x2x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x2x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @max_pool_backward_c1(%d: tensor<2x3x2x2xf32>, %i: tensor<2x3x4x4xi8>) {
  // expected-error @below {{is no gradient of 'train.max_pool'}}
  %dx = train.max_pool_backward %d, %i {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x2x2xf32>, tensor<2x3x4x4xi8>) -> tensor<2x3x4x4xf32>
  return
}

// -----

func.func @average_pool_backward_c1(%d: tensor<2x3x2x2xf32>) {
  // expected-error @below {{is no gradient of 'train.average_pool'}}
  %dx = train.average_pool_backward %d {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x3x2x2xf32>) -> tensor<2x3x6x4xf32>
  return
}

// -----

func.func @layer_norm_c1(%x: tensor<6x3xf32>, %s: tensor<6xf32>) {
  // expected-error @below {{layer normalization of 'tensor<6x3xf32>' has scale 'tensor<6xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %y, %m, %r = train.layer_norm %x, %s, %s {epsilon = 1.0e-5 : f32} : (tensor<6x3xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<6x3xf32>, tensor<6x1xf32>, tensor<6x1xf32>)
  return
}

// -----

func.func @layer_norm_backward_c1(%d: tensor<6x3xf32>, %s: tensor<3xf32>, %m: tensor<3x1xf32>) {
  // expected-error @below {{is no gradient of 'train.layer_norm'}}
  %dx = train.layer_norm_backward %d, %d, %s, %m, %m : (tensor<6x3xf32>, tensor<6x3xf32>, tensor<3xf32>, tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<6x3xf32>
  return
}

// -----

func.func @lrn_backward_c1(%d: tensor<2x3x2x2xf32>, %x: tensor<2x3x2x3xf32>) {
  // expected-error @below {{has tensors of unlike shapes}}
  %dx = train.lrn_backward %d, %x {size = 3 : i64, alpha = 1.0e-4 : f32, beta = 7.5e-1 : f32, bias = 1.0 : f32} : (tensor<2x3x2x2xf32>, tensor<2x3x2x3xf32>) -> tensor<2x3x2x2xf32>
  return
}

// -----

func.func @attention_c1(%q: tensor<2x4x8xf32>, %k: tensor<3x4x8xf32>) {
  // expected-error @below {{does not fit}}
  // expected-error @below {{failed to infer returned types}}
  %y, %l = train.attention %q, %k, %k {scale = 1.0 : f32} : (tensor<2x4x8xf32>, tensor<3x4x8xf32>, tensor<3x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<2x4x8xf32>, %m: tensor<3x4x4xf32>) {
  // expected-error @below {{mask 'tensor<3x4x4xf32>' does not broadcast to the scores}}
  // expected-error @below {{failed to infer returned types}}
  %y, %l = train.attention %q, %q, %q, %m {scale = 1.0 : f32} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<3x4x4xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @attention_c2_masks(%q: tensor<2x4x8xf32>, %m: tensor<4x4xf32>) {
  // expected-error @below {{attention has 3 masks, and takes what is added and what is kept}}
  // expected-error @below {{failed to infer returned types}}
  %y, %l = train.attention %q, %q, %q, %m, %m, %m {scale = 1.0 : f32} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>)
  return
}

// -----

func.func @attention_c3(%q: tensor<2x4x8xf32>) {
  // expected-error @below {{in an order that is no permutation of its dimensions with the last one in its place}}
  // expected-error @below {{failed to infer}}
  %y, %l = train.attention %q, %q, %q {scale = 1.0 : f32, y_order = array<i64: 0, 2, 1>} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x8x4xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @attention_c4(%kv: tensor<2x4x16xf32>, %q: tensor<2x4x8xf32>) {
  // expected-error @below {{attention reads its operands through views that do not cover each element once}}
  // expected-error @below {{failed to infer}}
  %y, %l = train.attention %q, %kv, %kv {scale = 1.0 : f32, k_view = #train.view<[2, 4, 8] from 0 by [64, 16]>, v_view = #train.view<[2, 4, 8] from 0 by [64, 16]>} : (tensor<2x4x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @view_v1(%q: tensor<2x4x8xf32>) {
  // expected-error @below {{a view has two dimensions or more of one element or more each, a step of 1 or more for each but the last, and an offset of 0 or more}}
  %y, %l = train.attention %q, %q, %q {scale = 1.0 : f32, q_view = #train.view<[2, 4, 8] from 0 by [32, 0]>} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @attention_backward_c1(%q: tensor<2x4x8xf32>, %l: tensor<2x5xf32>) {
  // expected-error @below {{is no gradient of 'train.attention'}}
  %dq, %dk, %dv = train.attention_backward %q, %q, %q, %q, %q, %l {scale = 1.0 : f32} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x5xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_backward_gradients(%kv: tensor<2x4x16xf32>, %q: tensor<2x4x8xf32>, %l: tensor<2x4xf32>) {
  // expected-error @below {{has 3 gradients of 2 tensors}}
  %dq, %dk, %dv = train.attention_backward %q, %q, %kv, %kv, %q, %l {scale = 1.0 : f32, k_view = #train.view<[2, 4, 8] from 0 by [64, 16]>, v_view = #train.view<[2, 4, 8] from 8 by [64, 16]>} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @top_c1(%x: tensor<4x8xf32>) {
  // expected-error @below {{the best 9 of a row of 'tensor<4x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %i = train.top %x {count = 9 : i64} : (tensor<4x8xf32>) -> tensor<4x9xi64>
  return
}

// -----

func.func @pick_c1(%x: tensor<4x8xf32>, %i: tensor<3x2xi64>) {
  // expected-error @below {{picks elements of rows of 'tensor<4x8xf32>' by ids 'tensor<3x2xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.pick %x, %i : (tensor<4x8xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  return
}

// -----

func.func @pick_backward_c1(%d: tensor<4x2xf32>, %i: tensor<4x3xi64>) {
  // expected-error @below {{is no gradient of 'train.pick'}}
  %x = train.pick_backward %d, %i : (tensor<4x2xf32>, tensor<4x3xi64>) -> tensor<4x8xf32>
  return
}

// -----

func.func @embedding_c1(%t: tensor<f32>, %i: tensor<2xi64>) {
  // expected-error @below {{which has no rows or whose ids are no integers}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.embedding %t, %i : (tensor<f32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @embedding_backward_c1(%d: tensor<2x4xf32>, %i: tensor<2xi64>) {
  // expected-error @below {{is no gradient of 'train.embedding'}}
  %t = train.embedding_backward %d, %i : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<7x5xf32>
  return
}

// -----

func.func @scatter_rows_c1(%x: tensor<2x4xf32>, %i: tensor<2xi64>) {
  // expected-error @below {{whose rows are others}}
  %y = train.scatter_rows %x, %i : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<7x5xf32>
  return
}

// -----

func.func @recurrence_c1(%x: tensor<5x2x12xf32>, %w: tensor<12x4xf32>, %h: tensor<2x4xf32>) {
  // expected-error @below {{which are not [T,B,G*H] and [G*H,H] with 4 gates}}
  // expected-error @below {{failed to infer returned types}}
  %y, %s, %c = train.recurrence %x, %w, %h, %h {cell = 0 : i32} : (tensor<5x2x12xf32>, tensor<12x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
      -> (tensor<5x2x4xf32>, tensor<5x2x20xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @recurrence_c2(%x: tensor<5x2x12xf32>, %w: tensor<12x4xf32>, %h: tensor<2x4xf32>) {
  // expected-error @below {{recurrence of 2 samples and 4 units has the initial state 'tensor<2x4xf32>' and 'tensor<2x4xf32>' besides}}
  // expected-error @below {{failed to infer returned types}}
  %y, %s = train.recurrence %x, %w, %h, %h {cell = 2 : i32} : (tensor<5x2x12xf32>, tensor<12x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
      -> (tensor<5x2x4xf32>, tensor<5x2x16xf32>)
  return
}

// -----

func.func @recurrence_backward_c1(%d: tensor<5x2x4xf32>, %w: tensor<12x4xf32>, %h: tensor<2x4xf32>, %s: tensor<5x2x16xf32>) {
  // expected-error @below {{is no gradient of 'train.recurrence', whose gates are 'tensor<5x2x12xf32>'}}
  %dx, %dh, %r = train.recurrence_backward %d, %w, %h, %d, %s {cell = 1 : i32} : (tensor<5x2x4xf32>, tensor<12x4xf32>, tensor<2x4xf32>, tensor<5x2x4xf32>,
      tensor<5x2x16xf32>) -> (tensor<5x2x12xf32>, tensor<2x4xf32>, tensor<5x2x4xf32>)
  return
}

// -----

func.func @recurrence_backward_c2(%d: tensor<5x2x4xf32>, %w: tensor<12x4xf32>, %h: tensor<2x4xf32>, %s: tensor<5x2x12xf32>) {
  // expected-error @below {{has 2 results, or some of a shape that is not that of 2 samples and 4 units}}
  %dx, %dh = train.recurrence_backward %d, %w, %h, %d, %s {cell = 1 : i32} : (tensor<5x2x4xf32>, tensor<12x4xf32>, tensor<2x4xf32>, tensor<5x2x4xf32>,
      tensor<5x2x12xf32>) -> (tensor<5x2x12xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @cast_c1(%i: tensor<2xi64>) {
  // expected-error @below {{result 0 is 'tensor<2xbf16>', it must be f32}}
  %x = train.cast %i : (tensor<2xi64>) -> tensor<2xbf16>
  return
}

// -----

func.func @cast_c2(%x: tensor<2x3x4x4xf32>) {
  // expected-error @below {{changes no element type, or more than that and the layout}}
  %y = train.cast %x : (tensor<2x3x4x4xf32>) -> tensor<2x8x4x4xbf16>
  return
}

// -----

func.func @cast_c2_matrix(%x: tensor<5x3xf32>) {
  %rows = train.cast %x : (tensor<5x3xf32>) -> tensor<8x3xbf16>
  %columns = train.cast %x : (tensor<5x3xf32>) -> tensor<5x8xf16>
  // expected-error @below {{changes no element type, or more than that and the layout}}
  %both = train.cast %x : (tensor<5x3xf32>) -> tensor<8x8xbf16>
  return
}

// -----

func.func @cast_c2_fewer(%x: tensor<5x3xf32>) {
  // expected-error @below {{changes no element type, or more than that and the layout}}
  %y = train.cast %x : (tensor<5x3xf32>) -> tensor<4x3xbf16>
  return
}

// -----

func.func @softmax_backward_c1(%d: tensor<2x3xf32>) {
  // expected-error @below {{softmax axis 2 of}}
  %dx = train.softmax_backward %d, %d {axis = 2 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @resize_backward_c1(%d: tensor<2x3x8x8xf32>) {
  // expected-error @below {{is no gradient of 'train.resize'}}
  %dx = train.resize_backward %d {scale_h = 2.0 : f32, scale_w = 2.0 : f32, mode = 0 : i32, coordinates = 3 : i32, nearest = 2 : i32} : (tensor<2x3x8x8xf32>) -> tensor<2x4x4x4xf32>
  return
}

// -----

func.func @pad_slab_c1(%d: tensor<2x3xf32>) {
  // expected-error @below {{slice [2, 2 + 3) of dimension 1}}
  %dx = train.pad_slab %d {axis = 1 : i64, start = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @loss_backward_c1(%x: tensor<2x3xf32>, %t: tensor<2x3xf32>) {
  // expected-error @below {{softmax_cross_entropy, mse, bce_with_logits}}
  %dx = train.loss_backward hinge %x, %t : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @loss_backward_c1_target(%x: tensor<2x3xf32>, %t: tensor<3xi64>) {
  // expected-error @below {{against a target of}}
  %dx = train.loss_backward softmax_cross_entropy %x, %t : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @loss_backward_c1_weights(%x: tensor<2x3xf32>, %w: tensor<1x3xf32>) {
  // expected-error @below {{of mse takes no weights}}
  %dx = train.loss_backward mse %x, %x, %w : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @loss_backward_c2(%x: tensor<2x3xf32>) {
  // expected-error @below {{of mse has no classes}}
  %dx = train.loss_backward mse %x, %x {classes = 3 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @loss_backward_c2_first(%x: tensor<2x3xf32>) {
  // expected-error @below {{of mse has no classes, and no first row}}
  %dx = train.loss_backward mse %x, %x {first = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @loss_backward_c2_rows(%x: tensor<2x3xf32>, %t: tensor<4xi64>) {
  // expected-error @below {{rows 'tensor<2x3xf32>' from 3 on against a target of 'tensor<4xi64>'}}
  %dx = train.loss_backward softmax_cross_entropy %x, %t {first = 3 : i64} : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @loss_backward_c2_number(%x: tensor<2x3xf32>, %t: tensor<2xi64>) {
  // expected-error @below {{4 classes of the 3 of 'tensor<2x3xf32>'}}
  %dx = train.loss_backward softmax_cross_entropy %x, %t {classes = 4 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @loss_and_gradient_c1(%x: tensor<2x3xf32>, %t: tensor<4xi64>) {
  // expected-error @below {{against a target of}}
  %dx, %loss = train.loss_and_gradient %x, %t : (tensor<2x3xf32>, tensor<4xi64>) -> (tensor<2x3xf32>, tensor<f32>)
  return
}

// -----

func.func @ctc_loss_c1(%x: tensor<2x5x3xf32>, %t: tensor<3x4xi64>) {
  // expected-error @below {{loss of 'tensor<2x5x3xf32>' against a target of 'tensor<3x4xi64>'}}
  // expected-error @below {{failed to infer returned types}}
  %loss = train.ctc_loss %x, %t {blank = 0 : i64} : (tensor<2x5x3xf32>, tensor<3x4xi64>) -> tensor<f32>
  return
}

// -----

func.func @ctc_loss_c2(%x: tensor<2x5x3xf32>, %t: tensor<2x4xi64>) {
  // expected-error @below {{blank 3 of 3 classes}}
  // expected-error @below {{failed to infer returned types}}
  %loss = train.ctc_loss %x, %t {blank = 3 : i64} : (tensor<2x5x3xf32>, tensor<2x4xi64>) -> tensor<f32>
  return
}

// -----

func.func @ctc_loss_c3(%x: tensor<2x5x3xf32>, %t: tensor<2x4xi64>, %n: tensor<3xi64>) {
  // expected-error @below {{lengths of other shapes, or in another number}}
  // expected-error @below {{failed to infer returned types}}
  %loss = train.ctc_loss %x, %t, %n {blank = 0 : i64, counts_steps} : (tensor<2x5x3xf32>, tensor<2x4xi64>, tensor<3xi64>) -> tensor<f32>
  return
}

// -----

func.func @ctc_loss_backward_c1(%x: tensor<2x5x3xf32>, %t: tensor<2x4xi64>) {
  // expected-error @below {{blank 7 of 3 classes}}
  %dx = train.ctc_loss_backward %x, %t {blank = 7 : i64} : (tensor<2x5x3xf32>, tensor<2x4xi64>) -> tensor<2x5x3xf32>
  return
}

// -----

// expected-error @below {{static, of at most 6 dimensions and less than 2^63 bytes}}
train.variable @variable_of_unknown_size role(parameter) init(zero) : tensor<?x3xf32>

// -----

// expected-error @below {{needs f32 or i64 elements, has 'tensor<2x3xi32>'}}
train.variable @variable_c1 role(parameter) init(zero) : tensor<2x3xi32>

// -----

// expected-error @below {{has a value of type 'tensor<2xf32>' but is 'tensor<3xf32>'}}
train.variable @variable_c2 role(constant) init(file) : tensor<3xf32> {value = dense<1.0> : tensor<2xf32>}

// -----

// expected-error @below {{has a value of type 'tensor<3xi64>' but is 'tensor<3xf32>'}}
train.variable @variable_c2_elements role(constant) init(file) : tensor<3xf32> {value = dense<1> : tensor<3xi64>}

// -----

train.variable @w role(optimizer) init(zero) : tensor<2x3xf32> {home = "storage"}

func.func @read_c2() {
  // expected-error @below {{reads 'w', which is at home elsewhere, without a train.prefetch}}
  %r = train.read @w : tensor<2x3xf32>
  return
}

// -----

train.variable @w role(optimizer) init(zero) : tensor<2x3xf32>

func.func @read_c2_handle() {
  // expected-error @below {{reads 'w', which is at home on the device, by a handle}}
  %r = train.read @w : !train.host<tensor<2x3xf32>>
  return
}

// -----

// expected-error @below {{cannot be at home in the arena 'spill'}}
train.variable @variable_c3 role(optimizer) init(zero) : tensor<2x3xf32> {home = "spill"}

// -----

func.func @read_c1() {
  // expected-error @below {{names no variable: @nothing}}
  %r = train.read @nothing : tensor<2x3xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<2x3xf32>
train.variable @v role(state) init(zero) : tensor<3xf32>
func.func @read_c1_type() {
  // expected-error @below {{uses variable 'w' as 'tensor<3x2xf32>', but it is 'tensor<2x3xf32>'}}
  %r = train.read @w : tensor<3x2xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<2x3xf32>
func.func @update_c1(%g: tensor<2x3xf32>) {
  %m = train.read @m : tensor<2x3xf32>
  %w = train.read @w : tensor<2x3xf32>
  // expected-error @below {{changes 'm', whose role is optimizer, not parameter}}
  %new:2 = train.update(%g, %m, %w) rule(sgd) : tensor<2x3xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<2x3xf32>
func.func @update_c1_type(%g: tensor<3xf32>) {
  %w = train.read @w : tensor<2x3xf32>
  %m = train.read @m : tensor<2x3xf32>
  // expected-error @below {{has a gradient of 'tensor<3xf32>' for 'w', which is 'tensor<2x3xf32>'}}
  %new:2 = "train.update"(%g, %w, %m) {rule = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 1, 1>} : (tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
func.func @changes_v1(%g: tensor<2x3xf32>) {
  %w = train.read @w : tensor<2x3xf32>
  // expected-error @below {{changes what is no variable's value}}
  %new:2 = train.update(%g, %w, %g) rule(sgd) : tensor<2x3xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<2x3xf32>
func.func @changes_v1_itself(%g: tensor<2x3xf32>) {
  // expected-error @below {{changes what is no variable's value}}
  %sum = train.accumulate %g, %sum : tensor<2x3xf32>
  return
}

// -----

func.func @changes_v1_count(%g: tensor<2x3xf32>) {
  // expected-error @below {{makes 3 values of 2}}
  %new:3 = "train.update"(%g, %g) {rule = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<2x3xf32>
func.func @update_c2_results(%g: tensor<2x3xf32>) {
  %w = train.read @w : tensor<2x3xf32>
  %m = train.read @m : tensor<2x3xf32>
  // expected-error @below {{makes 1 values of a parameter and 1 states}}
  %new = "train.update"(%g, %w, %m) {rule = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 1, 1>} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<2x3xf32>
func.func @changes_v1_type(%g: tensor<2x3xf32>) {
  %w = train.read @w : tensor<2x3xf32>
  %m = train.read @m : tensor<2x3xf32>
  // expected-error @below {{makes 'tensor<3x2xf32>' of the variable 'm', which is read as 'tensor<2x3xf32>'}}
  %new:2 = "train.update"(%g, %w, %m) {rule = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 1, 1>} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>)
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<2x3xf32>
func.func @update_c2(%g: tensor<2x3xf32>) {
  %w = train.read @w : tensor<2x3xf32>
  %m = train.read @m : tensor<2x3xf32>
  // expected-error @below {{has 1 states, rule adam keeps 2}}
  %new:2 = train.update(%g, %w, %m) rule(adam) : tensor<2x3xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<2x3xf32>
func.func @update_c2_average(%g: tensor<2x3xf32>) {
  %w = train.read @w : tensor<2x3xf32>
  %m = train.read @m : tensor<2x3xf32>
  // expected-error @below {{has 1 states, rule lion with an average keeps 2}}
  %new:2 = train.update(%g, %w, %m) rule(lion) {averaged} : tensor<2x3xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<8x64xf32>
train.variable @m role(optimizer) init(zero) : tensor<8x64xf32>
func.func @update_c4_beyond(%g: tensor<3x64xf32>) {
  %w = train.read @w : tensor<8x64xf32>
  %m = train.read @m : tensor<8x64xf32>
  // expected-error @below {{has a gradient of 'tensor<3x64xf32>' for the rows from 6 on of 'tensor<8x64xf32>'}}
  %new:2 = train.update(%g, %w, %m) rule(sgd) {first = 6 : i64} : tensor<3x64xf32> of tensor<8x64xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<8x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<8x3xf32>
func.func @update_c4_alignment(%g: tensor<2x3xf32>) {
  %w = train.read @w : tensor<8x3xf32>
  %m = train.read @m : tensor<8x3xf32>
  // expected-error @below {{begins at byte 12 of 'tensor<8x3xf32>'; rows begin at a multiple of 256}}
  %new:2 = train.update(%g, %w, %m) rule(sgd) {first = 1 : i64} : tensor<2x3xf32> of tensor<8x3xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<8x64xf32>
train.variable @m role(optimizer) init(zero) : tensor<8x64xf32>
train.variable @v role(optimizer) init(zero) : tensor<8x64xf32>
func.func @update_c4_lamb(%g: tensor<4x64xf32>) {
  %w = train.read @w : tensor<8x64xf32>
  %m = train.read @m : tensor<8x64xf32>
  %v = train.read @v : tensor<8x64xf32>
  // expected-error @below {{has no rows of what lamb takes norms of}}
  %new:3 = train.update(%g, %w, %m, %v) rule(lamb) {first = 4 : i64} : tensor<4x64xf32> of tensor<8x64xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
func.func @update_operands(%g: tensor<2x3xf32>) {
  // expected-error @below {{needs a gradient and a parameter, has 1 operands}}
  train.update(%g) rule(sgd) : tensor<2x3xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
func.func @update_rule(%g: tensor<2x3xf32>) {
  %w = train.read @w : tensor<2x3xf32>
  // expected-error @below {{no update rule: newton}}
  %new = train.update(%g, %w) rule(newton) : tensor<2x3xf32>
  return
}

// -----

train.variable @m role(optimizer) init(zero) : tensor<2x3xf32>
func.func @accumulate_c1(%g: tensor<2x3xf32>) {
  %m = train.read @m : tensor<2x3xf32>
  // expected-error @below {{changes 'm', whose role is optimizer, not gradient}}
  %sum = train.accumulate %g, %m : tensor<2x3xf32>
  return
}

// -----

train.variable @s role(optimizer) init(zero) : tensor<f32>
train.variable @c role(state) init(zero) : tensor<f32>
func.func @check_gradients_c1(%g: tensor<3xf32>) {
  %s = train.read @s : tensor<f32>
  %c = train.read @c : tensor<f32>
  // expected-error @below {{changes 'c', whose role is state, not optimizer}}
  %new:3 = train.check_gradients %g of %s, %s, %c : tensor<3xf32> of tensor<f32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<3xf32>
train.variable @v role(state) init(zero) : tensor<3xf32>
func.func @update_statistics_c1(%m: tensor<3xf32>) {
  %v = train.read @v : tensor<3xf32>
  %w = train.read @w : tensor<3xf32>
  // expected-error @below {{changes 'w', whose role is parameter, not state}}
  %new:2 = train.update_statistics %m, %m, %v, %w {momentum = 1.0e-1 : f32, epsilon = 1.0e-5 : f32, count = 8 : i64} : tensor<3xf32>
  return
}

// -----

train.variable @s role(gradient) init(zero) : tensor<2xf32>
func.func @sum_batches_c1(%g: tensor<3xf32>) {
  %s = train.read @s : tensor<2xf32>
  // expected-error @below {{adds 'tensor<3xf32>' to 's', which is 'tensor<2xf32>'}}
  %new = train.sum_batches %g, %s : (tensor<3xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @sum_batches_c1_none(%g: tensor<3xf32>) {
  // expected-error @below {{makes 0 values of 0 sums; it needs one sum or more, and makes a value of each}}
  train.sum_batches %g : (tensor<3xf32>) -> ()
  return
}

// -----

train.variable @s role(optimizer) init(zero) : tensor<3xf32>
func.func @sum_batches_c1_role(%g: tensor<3xf32>) {
  %s = train.read @s : tensor<3xf32>
  // expected-error @below {{changes 's', whose role is optimizer, not gradient}}
  %new = train.sum_batches %g, %s : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @all_reduce_c1(%g: tensor<3xf32>, %room: tensor<8xf32>) {
  // expected-error @below {{makes 1 values of 2; it sums one tensor or more, and makes a value of each and of its room}}
  %all = train.all_reduce %g in %room {ordered} : (tensor<3xf32>, tensor<8xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @all_reduce_c1_type(%g: tensor<3xf32>, %b: tensor<2xf32>) {
  // expected-error @below {{makes 'tensor<3xf32>' of 'tensor<2xf32>'}}
  %all:2 = train.all_reduce %g, %b {ordered} : (tensor<3xf32>, tensor<2xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @reduce_scatter_c1(%g: tensor<3xf32>, %room: tensor<8xf32>) {
  // expected-error @below {{makes 1 values of 2; it sums one tensor or more, and makes a value of each and of its room}}
  %share = train.reduce_scatter %g in %room : (tensor<3xf32>, tensor<8xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce_scatter_c1_share(%g: tensor<3xf32>, %b: tensor<2x2xf32>) {
  // expected-error @below {{makes 'tensor<4xf32>' as a share of 'tensor<2x2xf32>'}}
  %shares:2 = train.reduce_scatter %g, %b : (tensor<3xf32>, tensor<2x2xf32>) -> (tensor<2xf32>, tensor<4xf32>)
  return
}

// -----

func.func @reduce_scatter_c1_room(%g: tensor<3xf32>, %room: tensor<8xf32>) {
  // expected-error @below {{makes 'tensor<9xf32>' of a room of 'tensor<8xf32>'}}
  %share:2 = train.reduce_scatter %g in %room : (tensor<3xf32>, tensor<8xf32>) -> (tensor<2xf32>, tensor<9xf32>)
  return
}

// -----

func.func @shares_norm_c1(%g: tensor<2xf32>, %room: tensor<8xf32>) {
  // expected-error @below {{makes 'tensor<f32>'; it makes a scalar, and its room where it has one}}
  %norm = train.shares_norm %g in %room {elements = 4 : i64} : (tensor<2xf32>, tensor<8xf32>) -> tensor<f32>
  return
}

// -----

func.func @shares_norm_c1_share(%g: tensor<4xf32>) {
  // expected-error @below {{has 'tensor<4xf32>' as a share of 4 elements}}
  %norm = train.shares_norm %g {elements = 4 : i64} : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<3xf32>
func.func @update_c1_share(%g: tensor<2xf32>) {
  %w = train.read @w : tensor<2x3xf32>
  %m = train.read @m : tensor<3xf32>
  // expected-error @below {{has a gradient of 'tensor<2xf32>' for 'w', which is 'tensor<2x3xf32>'}}
  %new:2 = train.update(%g, %w, %m) rule(sgd) {sharded} : tensor<2xf32> of tensor<2x3xf32> keeping tensor<3xf32>
  return
}

// -----

// expected-error @below {{is 'tensor<6xf32>' as a share of tensor<2x3xf32>; it is a shorter vector on the device}}
train.variable @variable_c4 role(parameter) init(zero) : tensor<6xf32> {train.whole = tensor<2x3xf32>}

// -----

// expected-error @below {{is 'tensor<3xf32>' away from the device as a share of tensor<2x3xf32>; it is a shorter vector on the device}}
train.variable @variable_c4_home role(parameter) init(zero) : tensor<3xf32> {home = "host", train.whole = tensor<2x3xf32>}

// -----

train.variable @w role(parameter) init(zero) : tensor<3xf32>
func.func @gather_shares_c1() {
  %s = train.read @w : tensor<3xf32>
  // expected-error @below {{gathers 'tensor<3xf32>', which is no share of a parameter}}
  %w = train.gather_shares %s : (tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<3xf32> {train.whole = tensor<2x3xf32>}
func.func @gather_shares_c1_type() {
  %s = train.read @w : tensor<3xf32>
  // expected-error @below {{makes 'tensor<3x2xf32>' of the shares of 'w', which is 'tensor<2x3xf32>'}}
  %w = train.gather_shares %s : (tensor<3xf32>) -> tensor<3x2xf32>
  return
}

// -----

// Of a share all is of its length.
train.variable @w role(parameter) init(zero) : tensor<3xf32> {train.whole = tensor<2x3xf32>}
train.variable @m role(optimizer) init(zero) : tensor<2xf32>
func.func @update_c3_parameter(%dw: tensor<3xf32>) {
  %w = train.read @w : tensor<3xf32>
  %m = train.read @m : tensor<2xf32>
  // expected-error @below {{takes 'tensor<2xf32>' for the share of 'w', which is 'tensor<3xf32>'}}
  %w2, %m2 = train.update(%dw, %w, %m) rule(sgd) {sharded} : tensor<3xf32> keeping tensor<2xf32>
  return
}

// -----

func.func @all_gather_c1() {
  // expected-error @below {{makes 0 values of 0; it gathers one parameter or more, and makes a value of each}}
  train.all_gather : () -> ()
  return
}

// -----

train.variable @m role(optimizer) init(zero) : tensor<3xf32>
func.func @all_gather_c1_role() {
  %m = train.read @m : tensor<3xf32>
  // expected-error @below {{changes 'm', whose role is optimizer, not parameter}}
  %all = train.all_gather %m : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<6xf32>
func.func @update_c3(%g: tensor<2x3xf32>) {
  %w = train.read @w : tensor<2x3xf32>
  %m = train.read @m : tensor<6xf32>
  // expected-error @below {{keeps 'tensor<6xf32>' as a share of 6 elements; it is a shorter vector}}
  %new:2 = train.update(%g, %w, %m) rule(sgd) {sharded} : tensor<2x3xf32> keeping tensor<6xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<3xf32>
train.variable @v role(optimizer) init(zero) : tensor<3xf32>
func.func @update_c3_lamb(%g: tensor<2x3xf32>) {
  %w = train.read @w : tensor<2x3xf32>
  %m = train.read @m : tensor<3xf32>
  %v = train.read @v : tensor<3xf32>
  // expected-error @below {{has no shares of what lamb takes norms of}}
  %new:3 = train.update(%g, %w, %m, %v) rule(lamb) {sharded} : tensor<2x3xf32> keeping tensor<3xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<2x3xf32>
train.variable @m role(optimizer) init(zero) : tensor<3xf32>
func.func @update_c2_keeping(%g: tensor<2x3xf32>) {
  %w = train.read @w : tensor<2x3xf32>
  %m = train.read @m : tensor<3xf32>
  // expected-error @below {{has a gradient of 'tensor<2x3xf32>' for 'm', which is 'tensor<3xf32>'}}
  %new:2 = train.update(%g, %w, %m) rule(sgd) : tensor<2x3xf32> keeping tensor<3xf32>
  return
}

// -----

func.func @batch_statistics_c1(%m: tensor<3xf32>) {
  // expected-error @below {{makes 'tensor<3x2xf32>' of statistics of 3 channels}}
  %shares = train.batch_statistics %m, %m {momentum = 1.0e-1 : f32, epsilon = 1.0e-5 : f32, count = 8 : i64} : tensor<3xf32> -> tensor<3x2xf32>
  return
}

// -----

train.variable @v role(state) init(zero) : tensor<3xf32>
func.func @apply_statistics_c1(%s: tensor<2x4xf32>) {
  %v = train.read @v : tensor<3xf32>
  // expected-error @below {{takes 'tensor<2x4xf32>' for statistics of 3 channels}}
  %new:2 = train.apply_statistics %s, %v, %v {momentum = 1.0e-1 : f32} : tensor<2x4xf32>, tensor<3xf32>
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<3xf32>
func.func @apply_statistics_c1_role(%s: tensor<2x3xf32>) {
  %w = train.read @w : tensor<3xf32>
  // expected-error @below {{changes 'w', whose role is parameter, not state}}
  %new:2 = train.apply_statistics %s, %w, %w {momentum = 1.0e-1 : f32} : tensor<2x3xf32>, tensor<3xf32>
  return
}

// -----

// What estimate-cost attaches.

func.func @a3_seconds(%x: tensor<2x3xf32>) {
  // expected-error @below {{a cost has seconds and workspace bytes >= 0, not -1.000000e+00 and 0}}
  %y = train.relu %x {train.cost = #train.cost<seconds = -1.0 : f64, workspace = 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @a3_alternatives(%x: tensor<2x3xf32>) {
  // expected-error @below {{an alternative names its algorithm, and has no alternatives of its own: #train.cost<seconds = 1.000000e+00 : f64>}}
  %y = train.relu %x {train.cost = #train.cost<seconds = 1.0 : f64, workspace = 0 alternatives [<seconds = 1.0 : f64, workspace = 0>]>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @a3_kind(%x: tensor<2x3xf32>) {
  // expected-error @below {{needs 'train.cost' to be a #train.cost, has {seconds = 1.000000e+00 : f64}}}
  %y = train.relu %x {train.cost = {seconds = 1.0 : f64}} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @a5_fields(%x: tensor<2x3xf32>) {
  // expected-error @below {{needs 'train.algorithm' to be a #train.algorithm, has {name = "x"}}}
  %y = train.relu %x {train.algorithm = {name = "x"}} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

// expected-error @below {{needs 'train.plan' to be a #train.plan, has {strategy = "hand"}}}
func.func @a6_kind(%x: tensor<2x3xf32>) attributes {train.plan = {strategy = "hand"}} {
  return
}

// -----

func.func @a6_place(%x: tensor<2x3xf32>) {
  // expected-error @below {{is no function and no program, but has 'train.plan'}}
  %y = train.relu %x {train.plan = #train.plan<strategy = "hand">} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @a7_count(%x: tensor<2x3xf32>) {
  // expected-error @below {{needs 'train.offsets' with an offset, or -1, for each of its 1 results and for its workspace, has array<i64: 0>}}
  %y = train.relu %x {train.offsets = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @a8_place(%x: tensor<64x64xf32>) {
  // expected-error @below {{is no variable, but has 'train.quantized'}}
  %y = train.relu %x {train.quantized = #train.quantized<[64, 64] bits 8 group 64 along 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return
}

// -----

// expected-error @below {{is 'tensor<64x32xf32>', neither the floats of #train.quantized<[64, 64] bits 8 group 64 along 0> nor 'tensor<4352xi8>'}}
train.variable @a8_shape role(constant) init(file) : tensor<64x32xf32> {train.quantized = #train.quantized<[64, 64] bits 8 group 64 along 0>}

// -----

// expected-error @below {{is held in 16 bits, groups of 0 along 0, or in 8 or 4 bits, groups of 1 or more along dimension 0 or 1, not in 5 bits, groups of 64 along 0}}
train.variable @quantized_q1 role(constant) init(file) : tensor<64x64xf32> {train.quantized = #train.quantized<[64, 64] bits 5 group 64 along 0>}

// -----

// expected-error @below {{no elements of 8 bits are normal_float}}
train.variable @quantized_q2 role(constant) init(file) : tensor<64x64xf32> {train.quantized = #train.quantized<[64, 64] bits 8 group 64 along 0 coding(normal_float)>}

// -----

func.func @dequantize_c1(%q: tensor<4351xi8>) {
  // expected-error @below {{makes 'tensor<64x64xf32>' of 'tensor<4351xi8>', which #train.quantized<[64, 64] bits 8 group 64 along 0> does not}}
  %w = train.dequantize %q {form = #train.quantized<[64, 64] bits 8 group 64 along 0>} : (tensor<4351xi8>) -> tensor<64x64xf32>
  return
}

// -----

func.func @quantized_matmul_c1(%x: tensor<4x64xf32>, %q: tensor<4351xi8>) {
  // expected-error @below {{makes 'tensor<4x64xf32>' of 'tensor<4x64xf32>' and 'tensor<4351xi8>', which #train.quantized<[64, 64] bits 8 group 64 along 0> does not}}
  %y = train.quantized_matmul %x, %q {form = #train.quantized<[64, 64] bits 8 group 64 along 0>} : (tensor<4x64xf32>, tensor<4351xi8>) -> tensor<4x64xf32>
  return
}

// -----

func.func @quantized_matmul_c1_extents(%x: tensor<4x32xf32>, %q: tensor<32x64xbf16>) {
  // expected-error @below {{makes 'tensor<4x64xf32>' of 'tensor<4x32xf32>' and 'tensor<32x64xbf16>', which #train.quantized<[32, 64] bits 16 group 0 along 0> does not}}
  %y = train.quantized_matmul %x, %q {form = #train.quantized<[32, 64] bits 16 group 0 along 0>, transpose_b = true} : (tensor<4x32xf32>, tensor<32x64xbf16>) -> tensor<4x64xf32>
  return
}

// -----

func.func @quantized_matmul_c2(%x: tensor<4x32xf32>, %q: tensor<32x64xbf16>, %bias: tensor<5x64xf32>) {
  // expected-error @below {{has a bias 'tensor<5x64xf32>', which does not broadcast to 4x64}}
  %y = train.quantized_matmul %x, %q, %bias {form = #train.quantized<[32, 64] bits 16 group 0 along 0>} : (tensor<4x32xf32>, tensor<32x64xbf16>, tensor<5x64xf32>) -> tensor<4x64xf32>
  return
}

// -----

func.func @a5_parts(%x: tensor<2x3xf32>) {
  // expected-error @below {{an algorithm has parts >= 1 and granted bytes >= 0, not 0 and 0}}
  %y = train.relu %x {train.algorithm = #train.algorithm<name = "x", parts = 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

// What the runtime's Shape cannot hold, and what has no size in 64 bits.

func.func @rank(%x: tensor<1x1x1x1x1x1x2xf32>) {
  // expected-error @below {{must be ranked tensor of 32-bit float values, static, of at most 6 dimensions}}
  %y = train.relu %x : (tensor<1x1x1x1x1x1x2xf32>) -> tensor<1x1x1x1x1x1x2xf32>
  return
}

// -----

func.func @bytes(%x: tensor<2x1xf32>) {
  // expected-error @below {{less than 2^63 bytes, but got 'tensor<2x2305843009213693952xf32>'}}
  %y = train.broadcast_to %x {factor = 1.0 : f32} : (tensor<2x1xf32>) -> tensor<2x2305843009213693952xf32>
  return
}

// -----

func.func @scalar_bias(%x: tensor<2x3x4x4xf32>, %w: tensor<6x3x1x1xf32>, %b: tensor<f32>) {
  // expected-error @below {{operand #2 must be 1D tensor of 32-bit float values}}
  %y = train.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x3x4x4xf32>, tensor<6x3x1x1xf32>, tensor<f32>) -> tensor<2x6x4x4xf32>
  return
}

// -----

func.func @transpose_of_a_scalar(%x: tensor<f32>) {
  // expected-error @below {{no permutation of its dimensions}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.transpose %x {permutation = array<i64: 0>} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @fused_c4(%x: tensor<2xf32>) {
  // expected-error @below {{has 32 operands and 1 results, a kernel walks over 32 tensors}}
  %y = train.fused(%x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) channels [] sums 0 -> (tensor<2xf32>) {
  ^bb0(%s0: f32, %s1: f32, %s2: f32, %s3: f32, %s4: f32, %s5: f32, %s6: f32, %s7: f32, %s8: f32, %s9: f32, %s10: f32, %s11: f32, %s12: f32, %s13: f32, %s14: f32, %s15: f32, %s16: f32, %s17: f32, %s18: f32, %s19: f32, %s20: f32, %s21: f32, %s22: f32, %s23: f32, %s24: f32, %s25: f32, %s26: f32, %s27: f32, %s28: f32, %s29: f32, %s30: f32, %s31: f32):
    train.yield %s0 : f32
  }
  return
}

// -----

func.func @fused_c5(%x: tensor<2x3x4xf32>) {
  // expected-error @below {{takes means of rows of 'tensor<2x3x4xf32>'}}
  %y = train.fused (%x : tensor<2x3x4xf32>) channels [] sums 0 -> (tensor<2x3x4xf32>) {
  ^bb0(%s: f32):
    %m = train.row_mean %s : (f32) -> f32
    train.yield %m : f32
  }
  return
}

// -----

func.func @fused_c5_draw(%x: tensor<2x3xf32>) {
  // expected-error @below {{takes means of rows of 'tensor<2x3xf32>', of what draws or other means are behind}}
  %y = train.fused (%x : tensor<2x3xf32>) channels [] sums 0 -> (tensor<2x3xf32>) {
  ^bb0(%s: f32):
    %u = train.uniform {key = 7 : i64} : () -> f32
    %0 = arith.mulf %s, %u : f32
    %m = train.row_mean %0 : (f32) -> f32
    train.yield %m : f32
  }
  return
}

// -----

func.func @fused_c5_mean(%x: tensor<2x3xf32>) {
  // expected-error @below {{of what draws or other means are behind}}
  %y = train.fused (%x : tensor<2x3xf32>) channels [] sums 0 -> (tensor<2x3xf32>) {
  ^bb0(%s: f32):
    %m = train.row_mean %s : (f32) -> f32
    %0 = arith.subf %s, %m : f32
    %v = train.row_mean %0 : (f32) -> f32
    train.yield %v : f32
  }
  return
}

// -----

func.func @dropout_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{groups of 4 do not divide 6 elements}}
  // expected-error @below {{failed to infer returned types}}
  %y = train.dropout %x {ratio = 5.0e-1 : f32, key = 7 : i64, group = 4 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @noise_c1(%x: tensor<3xf32>) {
  // expected-error @below {{operand 0 of type 'tensor<3xf32>' does not fit 'tensor<2x4xf32>'}}
  %y = train.noise %x {distribution = 0 : i32, key = 7 : i64} : (tensor<3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @noise_c2(%x: tensor<f32>) {
  // expected-error @below {{has the key 4294967296, must be below 2^32}}
  %y = train.noise %x {distribution = 1 : i32, key = 4294967296 : i64} : (tensor<f32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @uniform_of_no_group(%x: tensor<2x3xf32>) {
  %y = train.fused (%x : tensor<2x3xf32>) channels [] sums 0 -> (tensor<2x3xf32>) {
  ^bb0(%s: f32):
    // expected-error @below {{attribute 'group' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
    %u = train.uniform {key = 7 : i64, group = 0 : i64} : () -> f32
    train.yield %u : f32
  }
  return
}

// -----

train.variable @c role(gradient) init(zero) : tensor<3x2x8x4xf32>
func.func @cache_rows_c1(%x: tensor<3x2x5x4xf32>) {
  %c = train.read @c : tensor<3x2x8x4xf32>
  // expected-error @below {{stores rows in 'c', which is no cache}}
  %d = train.cache_rows %x, %c : (tensor<3x2x5x4xf32>, tensor<3x2x8x4xf32>) -> tensor<3x2x8x4xf32>
  return
}

// -----

train.variable @c role(gradient) init(zero) : tensor<3x2x8x4xf32> {train.cache}
func.func @cache_rows_c2(%x: tensor<3x2x5x4xf32>, %p: tensor<3xi64>) {
  %c = train.read @c : tensor<3x2x8x4xf32>
  // expected-error @below {{stores rows of 'tensor<3x2x5x4xf32>' in 'tensor<3x2x8x4xf32>', one at the place of each text, which do not fit}}
  %d = train.cache_rows %x, %p, %c : (tensor<3x2x5x4xf32>, tensor<3xi64>, tensor<3x2x8x4xf32>) -> tensor<3x2x8x4xf32>
  return
}

// -----

train.variable @c role(gradient) init(zero) : tensor<3x2x8x4xf32> {train.cache}
func.func @cache_rows_c2_view(%x: tensor<3x5x8xf32>) {
  %c = train.read @c : tensor<3x2x8x4xf32>
  // expected-error @below {{which do not fit}}
  %d = train.cache_rows %x, %c {view = #train.view<[3, 2, 5, 4] from 8 by [40, 4, 8]>} : (tensor<3x5x8xf32>, tensor<3x2x8x4xf32>) -> tensor<3x2x8x4xf32>
  return
}

// -----

func.func @cached_attention_c1(%q: tensor<3x5x1x4xf32>, %k: tensor<3x2x8x4xf32>, %p: tensor<3xi64>) {
  // expected-error @below {{attention of queries 'tensor<3x5x1x4xf32>', keys 'tensor<3x2x8x4xf32>' and values 'tensor<3x2x8x4xf32>' does not fit}}
  %y = train.cached_attention %q, %k, %k, %p {scale = 1.0 : f32} : (tensor<3x5x1x4xf32>, tensor<3x2x8x4xf32>, tensor<3x2x8x4xf32>, tensor<3xi64>) -> tensor<3x5x1x4xf32>
  return
}

// -----

func.func @cached_attention_c2(%q: tensor<3x4x1x4xf32>, %k: tensor<3x2x8x4xf32>, %p: tensor<3xi64>, %m: tensor<8x8xf32>) {
  // expected-error @below {{mask 'tensor<8x8xf32>' does not broadcast to the scores of queries}}
  %y = train.cached_attention %q, %k, %k, %p, %m {scale = 1.0 : f32}
      : (tensor<3x4x1x4xf32>, tensor<3x2x8x4xf32>, tensor<3x2x8x4xf32>, tensor<3xi64>, tensor<8x8xf32>) -> tensor<3x4x1x4xf32>
  return
}
