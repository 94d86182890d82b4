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
