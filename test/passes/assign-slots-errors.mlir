// RUN: sluice-opt --sluice-assign-slots="budget=1024 host-budget=256" --split-input-file --verify-diagnostics %s

#f = #sched.call<"", [], "run">

// expected-error @below {{placed device arena needs 1280 bytes, the budget is 1024}}
module @device_budget {
  sched.program @step {
    %a = sched.buffer "a" device bytes(1100)
    sched.run compute "f" ins() outs(%a : tensor<275xf32>) versions [] -> [1] calls [#f]
  }
}

// -----

// expected-error @below {{placed host arena needs 512 bytes, the budget is 256}}
module @host_budget {
  sched.program @step {
    %x = sched.buffer "x" host bytes(300) input("x")
    %next = sched.buffer "x_next" device bytes(300) input("x") batch(1)
    %begin = sched.record compute "begin"
    sched.wait h2d %begin
    sched.copy h2d %x -> %next versions 0 -> 1
    %done = sched.record h2d "done"
    sched.wait compute %done
  }
}

// -----

#f = #sched.call<"", [], "run">

module @overlap {
  sched.program @step {
    // expected-error @below {{the plan puts 'a' at bytes 0 to 256 in steps 1 to 2 and 'b' at bytes 0 to 512 in steps 2 to 2, where they share bytes while both live}}
    %a = sched.buffer "a" device bytes(200) at(0)
    // expected-note @below {{leave one of the places out, and it is chosen here}}
    %b = sched.buffer "b" device bytes(300) at(0)
    sched.run compute "f" ins() outs(%a : tensor<50xf32>) versions [] -> [1] calls [#f]
    sched.run compute "f" ins(%a : tensor<50xf32>) outs(%b : tensor<75xf32>) versions [1] -> [1] calls [#f]
  }
}

// -----

#f = #sched.call<"", [], "run">

module @below_base {
  sched.program @step {
    %w = sched.buffer "w" device bytes(400) variable(@w)
    // expected-error @below {{the plan puts 'a' at bytes 256 to 512 in steps 1 to 1, below byte 512, where what outlives the step ends; transients lie above it}}
    %a = sched.buffer "a" device bytes(200) at(256)
    sched.run compute "f" ins(%w : tensor<100xf32>) outs(%a : tensor<50xf32>) versions [0] -> [1] calls [#f]
  }
}

// -----

#f = #sched.call<"", [], "run">

module @alignment {
  sched.program @step {
    // expected-error @below {{the plan puts 'a' at bytes 100 to 356 in steps 1 to 1; an offset is a multiple of 256}}
    %a = sched.buffer "a" device bytes(200) at(100)
    sched.run compute "f" ins() outs(%a : tensor<50xf32>) versions [] -> [1] calls [#f]
  }
}
