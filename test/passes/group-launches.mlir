// RUN: sluice-opt --sluice-group-launches %s | FileCheck %s
// RUN: sluice-opt --sluice-group-launches=bytes=1000 %s | FileCheck %s --check-prefix=SMALL
// RUN: sluice-opt --sluice-group-launches --sluice-group-launches %s | FileCheck %s
// RUN: sluice-opt --sluice-group-launches --sluice-assign-slots --sluice-verify-schedule %s -o /dev/null

#f = #sched.call<"", [], "run">
#update = #sched.call<"", [], "updateSgd", <parameter>, <out 0>, <in 0>, <none>, <none>>
#cast = #sched.call<"Reorder", [#sched.operand<in 0>, #sched.operand<out 0>, array<i64>], "run", <in 0>, <out 0>>

// Casts of parameters come with the first one, updates wait for the last one; bytes that live at once are the most in the middle.
// CHECK-LABEL: sched.program @step
// CHECK: "cast" ins(%a
// CHECK-NOT: together
// CHECK: "cast" ins(%b
// CHECK-SAME: sched.together
// CHECK-NEXT: "f"
// CHECK-NEXT: "f"
// CHECK-NEXT: "f"
// CHECK-NEXT: "f"
// CHECK-NEXT: "update" ins(%b_grad
// CHECK-NOT: together
// CHECK-NEXT: "update" ins(%a_grad
// CHECK-SAME: sched.together
// Two gradients of 400 bytes, which take 512 each, are too much.
// SMALL-LABEL: sched.program @step
// SMALL: "update" ins(%b_grad
// SMALL-NEXT: "f"
// SMALL-NEXT: "update" ins(%a_grad
// SMALL-NOT: together
// SMALL: }
sched.program @step {
  %a = sched.buffer "a" device bytes(400) variable(@a)
  %b = sched.buffer "b" device bytes(400) variable(@b)
  %a_half = sched.buffer "a_half" device bytes(200)
  %b_half = sched.buffer "b_half" device bytes(200)
  %x = sched.buffer "x" device bytes(4000)
  %y = sched.buffer "y" device bytes(4000)
  %b_grad = sched.buffer "b_grad" device bytes(400)
  %a_grad = sched.buffer "a_grad" device bytes(400)
  sched.run compute "cast" ins(%a : tensor<100xf32>) outs(%a_half : tensor<100xbf16>) versions [0] -> [1] calls [#cast] attributes {gathers}
  sched.run compute "f" ins(%a_half : tensor<100xbf16>) outs(%x : tensor<1000xf32>) versions [1] -> [1] calls [#f]
  sched.run compute "cast" ins(%b : tensor<100xf32>) outs(%b_half : tensor<100xbf16>) versions [0] -> [1] calls [#cast] attributes {gathers}
  sched.run compute "f" ins(%x : tensor<1000xf32>, %b_half : tensor<100xbf16>) outs(%y : tensor<1000xf32>) versions [1, 1] -> [1] calls [#f]
  sched.run compute "f" ins(%x : tensor<1000xf32>, %y : tensor<1000xf32>) outs(%b_grad : tensor<100xf32>) versions [1, 1] -> [1] calls [#f]
  sched.run compute "update" ins(%b_grad : tensor<100xf32>, %b : tensor<100xf32>) outs(%b : tensor<100xf32>) versions [1, 0] -> [1] calls [#update] attributes {backward, gathers, parameter = @b}
  sched.run compute "f" ins(%x : tensor<1000xf32>) outs(%a_grad : tensor<100xf32>) versions [1] -> [1] calls [#f]
  sched.run compute "update" ins(%a_grad : tensor<100xf32>, %a : tensor<100xf32>) outs(%a : tensor<100xf32>) versions [1, 0] -> [1] calls [#update] attributes {backward, gathers, parameter = @a}
}

// What reads a parameter in between is not overtaken: neither by its update, nor, behind that, by its cast.
// CHECK-LABEL: sched.program @between
// CHECK: "update" ins(%b_grad
// CHECK-NEXT: "f" ins(%b
// CHECK-NEXT: "cast" ins(%b
// CHECK-NEXT: "f"
// CHECK-NEXT: "update" ins(%a_grad
// CHECK-NOT: together
// CHECK: }
sched.program @between {
  %a = sched.buffer "a" device bytes(400) variable(@a)
  %b = sched.buffer "b" device bytes(400) variable(@b)
  %a_half = sched.buffer "a_half" device bytes(200)
  %b_half = sched.buffer "b_half" device bytes(200)
  %b_grad = sched.buffer "b_grad" device bytes(400)
  %a_grad = sched.buffer "a_grad" device bytes(400)
  sched.run compute "cast" ins(%a : tensor<100xf32>) outs(%a_half : tensor<100xbf16>) versions [0] -> [1] calls [#cast] attributes {gathers}
  sched.run compute "f" ins(%a_half : tensor<100xbf16>) outs(%b_grad : tensor<100xf32>) versions [1] -> [1] calls [#f]
  sched.run compute "update" ins(%b_grad : tensor<100xf32>, %b : tensor<100xf32>) outs(%b : tensor<100xf32>) versions [1, 0] -> [1] calls [#update] attributes {backward, gathers, parameter = @b}
  sched.run compute "f" ins(%b : tensor<100xf32>) outs(%a_grad : tensor<100xf32>) versions [1] -> [1] calls [#f]
  sched.run compute "cast" ins(%b : tensor<100xf32>) outs(%b_half : tensor<100xbf16>) versions [1] -> [1] calls [#cast] attributes {gathers}
  sched.run compute "f" ins(%b_half : tensor<100xbf16>) outs(%a_grad : tensor<100xf32>) versions [1] -> [2] calls [#f]
  sched.run compute "update" ins(%a_grad : tensor<100xf32>, %a : tensor<100xf32>) outs(%a : tensor<100xf32>) versions [2, 0] -> [1] calls [#update] attributes {backward, gathers, parameter = @a}
}

// Where b_grad would have to live beside what is the most already, its update stays.
// CHECK-LABEL: sched.program @full
// CHECK: "update" ins(%b_grad
// CHECK-NEXT: "f"
// CHECK-NEXT: "update" ins(%a_grad
// CHECK-NOT: together
// CHECK: }
sched.program @full {
  %a = sched.buffer "a" device bytes(400) variable(@a)
  %b = sched.buffer "b" device bytes(400) variable(@b)
  %x = sched.buffer "x" device bytes(4000)
  %b_grad = sched.buffer "b_grad" device bytes(400)
  %a_grad = sched.buffer "a_grad" device bytes(400)
  sched.run compute "f" ins(%a : tensor<100xf32>) outs(%x : tensor<1000xf32>) versions [0] -> [1] calls [#f]
  sched.run compute "f" ins(%x : tensor<1000xf32>) outs(%b_grad : tensor<100xf32>) versions [1] -> [1] calls [#f]
  sched.run compute "update" ins(%b_grad : tensor<100xf32>, %b : tensor<100xf32>) outs(%b : tensor<100xf32>) versions [1, 0] -> [1] calls [#update] attributes {backward, gathers, parameter = @b}
  sched.run compute "f" ins(%x : tensor<1000xf32>) outs(%a_grad : tensor<100xf32>) versions [1] -> [1] calls [#f]
  sched.run compute "update" ins(%a_grad : tensor<100xf32>, %a : tensor<100xf32>) outs(%a : tensor<100xf32>) versions [1, 0] -> [1] calls [#update] attributes {backward, gathers, parameter = @a}
}

// Gradients that convolutions left in 16 bits are turned where the last of them is, in front of the updates, which wait for the last one themselves; what reads one
// of them before keeps it.
// CHECK-LABEL: sched.program @turned
// CHECK-COUNT-3: "f" ins(%x
// CHECK-NEXT: "cast" ins(%b_left
// CHECK-NOT: together
// CHECK-NEXT: "cast" ins(%a_left
// CHECK-SAME: sched.together
// CHECK-NEXT: "update" ins(%b_grad
// CHECK-NEXT: "update" ins(%a_grad
// CHECK-SAME: sched.together
// CHECK: }
sched.program @turned {
  %a = sched.buffer "a" device bytes(400) variable(@a)
  %b = sched.buffer "b" device bytes(400) variable(@b)
  %x = sched.buffer "x" device bytes(4000)
  %y = sched.buffer "y" device bytes(4000)
  %a_left = sched.buffer "a_left" device bytes(200)
  %b_left = sched.buffer "b_left" device bytes(200)
  %a_grad = sched.buffer "a_grad" device bytes(400)
  %b_grad = sched.buffer "b_grad" device bytes(400)
  sched.run compute "f" ins(%a : tensor<100xf32>, %b : tensor<100xf32>) outs(%x : tensor<1000xf32>, %y : tensor<1000xf32>) versions [0, 0] -> [1, 1] calls [#f]
  sched.run compute "f" ins(%x : tensor<1000xf32>, %y : tensor<1000xf32>) outs(%x : tensor<1000xf32>) versions [1, 1] -> [2] calls [#f]
  sched.run compute "f" ins(%x : tensor<1000xf32>) outs(%b_left : tensor<10x10x1x1xbf16, #train.layout<nhwc>>) versions [2] -> [1] calls [#f] attributes {backward}
  sched.run compute "cast" ins(%b_left : tensor<10x10x1x1xbf16, #train.layout<nhwc>>) outs(%b_grad : tensor<10x10x1x1xf32>) versions [1] -> [1] calls [#cast] attributes {backward, gathers}
  sched.run compute "update" ins(%b_grad : tensor<100xf32>, %b : tensor<100xf32>) outs(%b : tensor<100xf32>) versions [1, 0] -> [1] calls [#update] attributes {backward, gathers, parameter = @b}
  sched.run compute "f" ins(%x : tensor<1000xf32>) outs(%a_left : tensor<10x10x1x1xbf16, #train.layout<nhwc>>) versions [2] -> [1] calls [#f] attributes {backward}
  sched.run compute "cast" ins(%a_left : tensor<10x10x1x1xbf16, #train.layout<nhwc>>) outs(%a_grad : tensor<10x10x1x1xf32>) versions [1] -> [1] calls [#cast] attributes {backward, gathers}
  sched.run compute "update" ins(%a_grad : tensor<100xf32>, %a : tensor<100xf32>) outs(%a : tensor<100xf32>) versions [1, 0] -> [1] calls [#update] attributes {backward, gathers, parameter = @a}
}
