// RUN: sluice-opt %s --sluice-assign-precision=turns-gradients=true | FileCheck %s
// RUN: sluice-opt %s --sluice-assign-precision | FileCheck %s --check-prefix=WIDE
// Gradients of convolutions' weights as cuda's engines leave them; that of an image with more channels than it had is cut in f32, and one that nobody reads stays.

module attributes {train.precision = "bf16"} {
// CHECK-LABEL: func.func @gradients
// CHECK: %[[DW:.*]] = train.conv_backward_weight {{.*}} -> tensor<16x8x3x3xbf16, #train.layout<nhwc>>
// CHECK-NEXT: %[[TURNED:.*]] = train.cast %[[DW]] {train.backward = 1 : i64} : (tensor<16x8x3x3xbf16, #train.layout<nhwc>>) -> tensor<16x8x3x3xf32>
// CHECK: %[[WIDER:.*]] = train.conv_backward_weight {{.*}} -> tensor<16x8x3x3xf32>
// CHECK-NEXT: %[[CUT:.*]] = train.slice %[[WIDER]]
// CHECK: train.conv_backward_weight {{.*}} -> (tensor<16x8x3x3xf32>, tensor<16xf32>)
// CHECK-NEXT: return %[[TURNED]], %[[CUT]]
// WIDE-LABEL: func.func @gradients
// WIDE: train.conv_backward_weight {{.*}} -> tensor<16x8x3x3xf32>
func.func @gradients(%dy: tensor<4x16x8x8xf32, #train.layout<nhwc>>, %x: tensor<4x8x8x8xf32, #train.layout<nhwc>>, %image: tensor<4x3x8x8xf32, #train.layout<nhwc>>)
    -> (tensor<16x8x3x3xf32>, tensor<16x3x3x3xf32>, tensor<16xf32>) {
  %dw = train.conv_backward_weight %dy, %x {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64, train.backward = 1 : i64} : (tensor<4x16x8x8xf32, #train.layout<nhwc>>, tensor<4x8x8x8xf32, #train.layout<nhwc>>) -> tensor<16x8x3x3xf32>
  %dv = train.conv_backward_weight %dy, %image {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64, train.backward = 0 : i64} : (tensor<4x16x8x8xf32, #train.layout<nhwc>>, tensor<4x3x8x8xf32, #train.layout<nhwc>>) -> tensor<16x3x3x3xf32>
  %unread, %db = train.conv_backward_weight %dy, %x {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64, train.backward = 1 : i64} : (tensor<4x16x8x8xf32, #train.layout<nhwc>>, tensor<4x8x8x8xf32, #train.layout<nhwc>>) -> (tensor<16x8x3x3xf32>, tensor<16xf32>)
  return %dw, %dv, %db : tensor<16x8x3x3xf32>, tensor<16x3x3x3xf32>, tensor<16xf32>
}
}
