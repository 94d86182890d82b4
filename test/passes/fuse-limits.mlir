// RUN: sluice-opt %s --sluice-fuse | FileCheck %s
// Regions stop growing where more arithmetic in them saves nothing: 60 activations, one behind the other, are no single kernel.

// CHECK-LABEL: func.func @chain
// CHECK-COUNT-3: train.fused
// CHECK-NOT: train.fused
// CHECK: return
func.func @chain(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %1 = train.sigmoid %x {train.forward = 0 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = train.sigmoid %1 {train.forward = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = train.sigmoid %2 {train.forward = 2 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = train.sigmoid %3 {train.forward = 3 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = train.sigmoid %4 {train.forward = 4 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = train.sigmoid %5 {train.forward = 5 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %7 = train.sigmoid %6 {train.forward = 6 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %8 = train.sigmoid %7 {train.forward = 7 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %9 = train.sigmoid %8 {train.forward = 8 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %10 = train.sigmoid %9 {train.forward = 9 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %11 = train.sigmoid %10 {train.forward = 10 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %12 = train.sigmoid %11 {train.forward = 11 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %13 = train.sigmoid %12 {train.forward = 12 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %14 = train.sigmoid %13 {train.forward = 13 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %15 = train.sigmoid %14 {train.forward = 14 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %16 = train.sigmoid %15 {train.forward = 15 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %17 = train.sigmoid %16 {train.forward = 16 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %18 = train.sigmoid %17 {train.forward = 17 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %19 = train.sigmoid %18 {train.forward = 18 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %20 = train.sigmoid %19 {train.forward = 19 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %21 = train.sigmoid %20 {train.forward = 20 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %22 = train.sigmoid %21 {train.forward = 21 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %23 = train.sigmoid %22 {train.forward = 22 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %24 = train.sigmoid %23 {train.forward = 23 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %25 = train.sigmoid %24 {train.forward = 24 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %26 = train.sigmoid %25 {train.forward = 25 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %27 = train.sigmoid %26 {train.forward = 26 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %28 = train.sigmoid %27 {train.forward = 27 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %29 = train.sigmoid %28 {train.forward = 28 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %30 = train.sigmoid %29 {train.forward = 29 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %31 = train.sigmoid %30 {train.forward = 30 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %32 = train.sigmoid %31 {train.forward = 31 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %33 = train.sigmoid %32 {train.forward = 32 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %34 = train.sigmoid %33 {train.forward = 33 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %35 = train.sigmoid %34 {train.forward = 34 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %36 = train.sigmoid %35 {train.forward = 35 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %37 = train.sigmoid %36 {train.forward = 36 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %38 = train.sigmoid %37 {train.forward = 37 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %39 = train.sigmoid %38 {train.forward = 38 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %40 = train.sigmoid %39 {train.forward = 39 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %41 = train.sigmoid %40 {train.forward = 40 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %42 = train.sigmoid %41 {train.forward = 41 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %43 = train.sigmoid %42 {train.forward = 42 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %44 = train.sigmoid %43 {train.forward = 43 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %45 = train.sigmoid %44 {train.forward = 44 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %46 = train.sigmoid %45 {train.forward = 45 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %47 = train.sigmoid %46 {train.forward = 46 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %48 = train.sigmoid %47 {train.forward = 47 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %49 = train.sigmoid %48 {train.forward = 48 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %50 = train.sigmoid %49 {train.forward = 49 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %51 = train.sigmoid %50 {train.forward = 50 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %52 = train.sigmoid %51 {train.forward = 51 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %53 = train.sigmoid %52 {train.forward = 52 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %54 = train.sigmoid %53 {train.forward = 53 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %55 = train.sigmoid %54 {train.forward = 54 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %56 = train.sigmoid %55 {train.forward = 55 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %57 = train.sigmoid %56 {train.forward = 56 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %58 = train.sigmoid %57 {train.forward = 57 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %59 = train.sigmoid %58 {train.forward = 58 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %60 = train.sigmoid %59 {train.forward = 59 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %61 = train.sigmoid %60 {train.forward = 60 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %61 : tensor<8x4xf32>
}

// Sums run over the shape of an operand: what no operand has the shape of stays a tensor.
// CHECK-LABEL: func.func @outer
// CHECK: %[[X:.*]] = train.fused(%{{.*}}, %{{.*}} : tensor<8x4x1x1xf32>, tensor<1x1x3x3xf32>)
// CHECK: train.fused(%[[X]], %[[X]], {{.*}} sums 2
func.func @outer(%a: tensor<8x4x1x1xf32>, %b: tensor<1x1x3x3xf32>, %mean: tensor<4xf32>, %rstd: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %x = train.add %a, %b {train.forward = 0 : i64} : (tensor<8x4x1x1xf32>, tensor<1x1x3x3xf32>) -> tensor<8x4x3x3xf32>
  %dscale, %dbias = train.normalize_reduce %x, %x, %mean, %rstd {train.backward = 0 : i64} : (tensor<8x4x3x3xf32>, tensor<8x4x3x3xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %dscale, %dbias : tensor<4xf32>, tensor<4xf32>
}
