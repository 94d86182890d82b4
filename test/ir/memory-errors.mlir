// RUN: sluice-opt --split-input-file --verify-diagnostics %s
// One broken constraint of the memory ops each; functions are named after it.

func.func @encode_c1(%x: tensor<8x8xf32>) {
  // expected-error @below {{with codec 'zfp' packs 'tensor<8x8xf32>' as 'tensor<64xi8>', not 'tensor<32xi8>'}}
  %0 = train.encode %x {codec = "zfp"} : (tensor<8x8xf32>) -> tensor<32xi8>
  return
}

// -----

func.func @encode_c1_name(%x: tensor<8x8xf32>) {
  // expected-error @below {{knows no codec 'zip'}}
  %0 = train.encode %x {codec = "zip"} : (tensor<8x8xf32>) -> tensor<64xi8>
  return
}

// -----

func.func @encode_c1_mask(%x: tensor<8x8xf32>) {
  // expected-error @below {{with codec 'mask+zfp:4' packs 'tensor<8x8xf32>' as 'tensor<96xi8>', not 'tensor<32xi8>'}}
  %0 = train.encode %x {codec = "mask+zfp:4"} : (tensor<8x8xf32>) -> tensor<32xi8>
  func.return
}

// -----

func.func @encode_c1_mask_name(%x: tensor<8x8xf32>) {
  // expected-error @below {{knows no codec 'mask+zvc' for 'tensor<8x8xf32>'}}
  %0 = train.encode %x {codec = "mask+zvc"} : (tensor<8x8xf32>) -> tensor<128xi8>
  func.return
}

// -----

func.func @packed_mask_c1(%x: tensor<8x8xf32>) {
  %0 = train.encode %x {codec = "zfp"} : (tensor<8x8xf32>) -> tensor<64xi8>
  // expected-error @below {{finds no mask in a value that no train.encode with a mask gives}}
  %1 = train.packed_mask %0 : (tensor<64xi8>) -> tensor<8x8xi1>
  func.return
}

// -----

func.func @packed_mask_c1_shape(%x: tensor<8x8xf32>) {
  %0 = train.encode %x {codec = "mask+zfp"} : (tensor<8x8xf32>) -> tensor<128xi8>
  // expected-error @below {{takes the mask of 'tensor<8x8xf32>' for 'tensor<4x16xi1>'}}
  %1 = train.packed_mask %0 : (tensor<128xi8>) -> tensor<4x16xi1>
  func.return
}

// -----

func.func @decode_c1(%m: tensor<8x8xi1>) {
  // expected-error @below {{cannot rebuild 'tensor<8x8xf32>' from a mask}}
  %0 = train.decode %m {codec = "mask"} : (tensor<8x8xi1>) -> tensor<8x8xf32>
  return
}

// -----

func.func @offload_c1(%x: tensor<8x8xf32>) {
  // expected-error @below {{copies 'tensor<8x8xf32>' into}}
  %0 = train.offload %x : (tensor<8x8xf32>) -> !train.host<tensor<4x8xf32>>
  return
}

// -----

func.func @offload_c3(%x: tensor<8x8xf32>) {
  // expected-error @below {{cannot offload 'tensor<8x8xf32>' to the arena 'attic'}}
  %0 = train.offload %x {home = "attic"} : (tensor<8x8xf32>) -> !train.host<tensor<8x8xf32>>
  return
}

// -----

func.func @offload_c3_codec(%x: tensor<8x8xf32>) {
  // expected-error @below {{cannot offload 'tensor<8x8xf32>' to the arena 'storage' with codec 'zfp': its copies pack in pieces, which that codec does not}}
  %0 = train.offload %x {codec = "zfp", home = "storage"} : (tensor<8x8xf32>) -> !train.host<tensor<8x8xf32>>
  return
}

// -----

train.variable @w role(optimizer) init(zero) : tensor<8x8xf32> {home = "storage"}

func.func @offload_c4_other(%x: tensor<8x8xf32>) {
  // expected-error @below {{brings 'storage' a value of no variable for 'w', which is at home in 'storage'}}
  %0 = train.offload %x {home = "storage", variable = @w} : (tensor<8x8xf32>) -> !train.host<tensor<8x8xf32>>
  return
}

// -----

train.variable @w role(optimizer) init(zero) : tensor<8x8xf32> {home = "storage"}

func.func @offload_c4_home() {
  %h = train.read @w : !train.host<tensor<8x8xf32>>
  %x = train.prefetch %h : (!train.host<tensor<8x8xf32>>) -> tensor<8x8xf32>
  // expected-error @below {{brings 'host' a value of w for 'w', which is at home in 'storage'}}
  %0 = train.offload %x {variable = @w} : (tensor<8x8xf32>) -> !train.host<tensor<8x8xf32>>
  return
}

// -----

func.func @prefetch_c2(%h: !train.host<tensor<8x8xf32>>) {
  // expected-error @below {{copies back what neither train.offload nor train.read gives}}
  %y = train.prefetch %h : (!train.host<tensor<8x8xf32>>) -> tensor<8x8xf32>
  return
}

// -----

func.func @offload_c2(%x: tensor<8x8xi8>) {
  // expected-error @below {{packs f32 tensors of rank 2 and more only}}
  %0 = train.offload %x {codec = "fp16"} : (tensor<8x8xi8>) -> !train.host<tensor<8x8xi8>>
  return
}

// -----

func.func @offload_c2_halves(%x: tensor<8x8xbf16>) {
  %0 = train.offload %x {codec = "zvc"} : (tensor<8x8xbf16>) -> !train.host<tensor<8x8xbf16>>
  // expected-error @below {{with codec 'fp16' packs f32 tensors of rank 2 and more only}}
  %1 = train.offload %x {codec = "fp16"} : (tensor<8x8xbf16>) -> !train.host<tensor<8x8xbf16>>
  return
}

// -----

func.func @offload_c2_indices(%x: tensor<8x8xi8>) {
  // expected-error @below {{with codec 'zvc' packs floats and halves of rank 2 and more only}}
  %0 = train.offload %x {codec = "zvc"} : (tensor<8x8xi8>) -> !train.host<tensor<8x8xi8>>
  return
}

// -----

func.func @await_c1(%x: tensor<8x8xf32>) {
  // expected-error @below {{waits for a value that neither train.offload nor train.encode nor an update at home gives}}
  train.await %x : (tensor<8x8xf32>) -> ()
  return
}

// -----

func.func @await_c2(%x: tensor<8x8xf32>) {
  %h = train.offload %x : (tensor<8x8xf32>) -> !train.host<tensor<8x8xf32>>
  train.await %h : (!train.host<tensor<8x8xf32>>) -> ()
  // expected-error @below {{comes after a 'train.await' of the same value, which it has to precede}}
  train.await %h : (!train.host<tensor<8x8xf32>>) -> ()
  return
}

// -----

func.func @await_c2_prefetch(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %h = train.offload %x : (tensor<8x8xf32>) -> !train.host<tensor<8x8xf32>>
  %y = train.prefetch %h : (!train.host<tensor<8x8xf32>>) -> tensor<8x8xf32>
  // expected-error @below {{comes after a 'train.prefetch' of the same value, which it has to precede}}
  train.await %h : (!train.host<tensor<8x8xf32>>) -> ()
  return %y : tensor<8x8xf32>
}

// -----

func.func @prefetch_c1(%x: tensor<8x8xf32>) {
  %h = train.offload %x : (tensor<8x8xf32>) -> !train.host<tensor<8x8xf32>>
  // expected-error @below {{copies '!train.host<tensor<8x8xf32>>' back as 'tensor<4x8xf32>'}}
  %y = train.prefetch %h : (!train.host<tensor<8x8xf32>>) -> tensor<4x8xf32>
  return
}

// -----

func.func @fused_c3(%x: tensor<8x4x2x2xf32>, %m: tensor<4x1x1xi1>) {
  // expected-error @below {{mask 1 of type 'tensor<4x1x1xi1>' does not fit}}
  %0 = train.fused (%x, %m : tensor<8x4x2x2xf32>, tensor<4x1x1xi1>) channels [] sums 0 -> (tensor<8x4x2x2xf32>) {
  ^bb0(%s: f32, %t: f32):
    %v = arith.addf %s, %t : f32
    train.yield %v : f32
  }
  return
}

// -----

#f = #sched.call<"", [], "run">

sched.program @run_c6 {
  %a = sched.buffer "a" device bytes(4)
  // expected-error @below {{'relu' does not run on codec}}
  sched.run codec "relu" ins(%a : tensor<1xf32>) outs(%a : tensor<1xf32>) versions [0] -> [1] calls [#f]
}

// -----

sched.program @copy_c2 {
  %a = sched.buffer "a" device bytes(64)
  %b = sched.buffer "b" host bytes(64)
  // expected-error @below {{copies 'a' of 64 bytes to 'b' of 64, packed they are 32}}
  sched.copy d2h %a -> %b codec("fp16" : tensor<4x4xf32>) versions 1 -> 1
}

// -----

sched.program @copy_c2_rate {
  %a = sched.buffer "a" device bytes(256)
  %b = sched.buffer "b" host bytes(64)
  // expected-error @below {{copies 'a' of 256 bytes to 'b' of 64, packed they are 96}}
  sched.copy d2h %a -> %b codec("mask+zfp:4" : tensor<8x8xf32>) versions 1 -> 1
}

// -----

sched.program @copy_c4 {
  %a = sched.buffer "a" device bytes(256)
  %b = sched.buffer "b" host bytes(32)
  // expected-error @below {{of 'a' of 256 bytes cannot pack 'tensor<4x8xf32>' with codec 'zfp:4'}}
  sched.copy d2h %a -> %b codec("zfp:4" : tensor<4x8xf32>) versions 1 -> 1
}

// -----

sched.program @copy_c4_halves {
  %a = sched.buffer "a" device bytes(128)
  %b = sched.buffer "b" host bytes(128)
  // expected-error @below {{of 'a' of 128 bytes cannot pack 'tensor<8x8xbf16>' with codec 'fp16'}}
  sched.copy d2h %a -> %b codec("fp16" : tensor<8x8xbf16>) versions 1 -> 1
}

// -----

func.func @save_guarded_channels_c1(%x: tensor<8x32x4x4xf32>, %c: tensor<32xf32>) {
  // expected-error @below {{needs [slots, elements per channel] of its type beside 'tensor<8x32x4x4xf32>', not 'tensor<2x32xf32>'}}
  %aside = train.save_guarded_channels %x, %c, %c : (tensor<8x32x4x4xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<2x32xf32>
  return
}

// -----

func.func @save_guarded_channels_c2(%x: tensor<8x32x4x4xf32>, %c: tensor<8xf32>) {
  // expected-error @below {{needs one scale and bias for each of 32 channels}}
  %aside = train.save_guarded_channels %x, %c, %c : (tensor<8x32x4x4xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x128xf32>
  return
}

// -----

func.func @invert_batch_norm_leaky_relu_c1(%z: tensor<8x32x4x4xf32>, %c: tensor<32xf32>, %aside: tensor<2x128xf32>) {
  // expected-error @below {{needs a slope of 0.001 at least, not 0}}
  %x = train.invert_batch_norm_leaky_relu %z, %c, %c, %c, %c, %aside {alpha = 0.0 : f32} : (tensor<8x32x4x4xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<2x128xf32>) -> tensor<8x32x4x4xf32>
  return
}

// -----

func.func @invert_batch_norm_leaky_relu_c2(%z: tensor<8x32x4x4xf32>, %c: tensor<32xf32>, %aside: tensor<128xf32>) {
  // expected-error @below {{needs [slots, elements per channel] of its type beside 'tensor<8x32x4x4xf32>', not 'tensor<128xf32>'}}
  %x = train.invert_batch_norm_leaky_relu %z, %c, %c, %c, %c, %aside {alpha = 0.1 : f32} : (tensor<8x32x4x4xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<128xf32>) -> tensor<8x32x4x4xf32>
  return
}

// -----

func.func @invert_batch_norm_leaky_relu_c2_type(%z: tensor<8x32x4x4xbf16>, %c: tensor<32xf32>, %aside: tensor<2x128xf32>) {
  // expected-error @below {{needs [slots, elements per channel] of its type beside 'tensor<8x32x4x4xbf16>', not 'tensor<2x128xf32>'}}
  %x = train.invert_batch_norm_leaky_relu %z, %c, %c, %c, %c, %aside {alpha = 0.1 : f32} : (tensor<8x32x4x4xbf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<2x128xf32>) -> tensor<8x32x4x4xbf16>
  return
}

// -----

func.func @invert_batch_norm_leaky_relu_c3(%z: tensor<8x32x4x4xbf16>, %c: tensor<32xf32>, %aside: tensor<2x128xbf16>) {
  // expected-error @below {{rebuilds 'tensor<8x32x4x4xf32>' from 'tensor<8x32x4x4xbf16>', which must be one type}}
  %x = train.invert_batch_norm_leaky_relu %z, %c, %c, %c, %c, %aside {alpha = 0.1 : f32} : (tensor<8x32x4x4xbf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<2x128xbf16>) -> tensor<8x32x4x4xf32>
  return
}

// -----

func.func @check_cancellation_c1(%x: tensor<8x32xf32>, %y: tensor<8x16xf32>) {
  // expected-error @below {{compares 'tensor<8x32xf32>' with 'tensor<8x16xf32>' in 'tensor<512x2xf32>', which must be two of one type in [parts, 2]}}
  %maxima = train.check_cancellation %x, %y : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<512x2xf32>
  return
}
