# SPDX-License-Identifier: Apache-2.0
"""One model in one mode of PyTorch for host.py, which asks by lines on standard input.

    host_torch.py NAME MODE THREADS

Prints a line of JSON once it is warm; then, for each line with a number, takes so many steps of SGD and prints the seconds of each, the process's resident bytes at most meanwhile and their losses.
Modes: eager; channels_last, as all that follow where models see images; compile (torch.compile); autocast (of bf16); compile+autocast."""
import json
import sys
import time

import torch

from host_models import NETS
from samples import as_inputs, loss_of

MODES = {"fp32": ["eager", "channels_last", "compile"], "bf16": ["autocast", "compile+autocast"]}


def resident():
    """Bytes at most since reset() was called."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def reset():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


class Trainer:
    def __init__(self, net, mode):
        torch.manual_seed(1)
        model = net.make()
        x, self.target = net.data()
        self.inputs = as_inputs(x)
        if net.sees_images and mode != "eager":
            model = model.to(memory_format=torch.channels_last)
            self.inputs = {name: value.to(memory_format=torch.channels_last) for name, value in self.inputs.items()}
        self.optimizer = torch.optim.SGD(model.parameters(), 0.001, momentum=0.9)
        self.run = torch.compile(model) if "compile" in mode else model
        self.run.classes_last = getattr(model, "classes_last", False)
        self.half = "autocast" in mode

    def step(self):
        start = time.perf_counter()
        self.optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.half):
            loss = loss_of(self.run, self.inputs, self.target)
        loss.backward()
        self.optimizer.step()
        return time.perf_counter() - start, loss.item()


def main():
    name, mode, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    imported = resident()
    trainer = Trainer(NETS[name], mode)
    for _ in range(3):
        trainer.step()
    print(json.dumps({"torch": torch.__version__, "imported": imported}), flush=True)
    for line in sys.stdin:
        reset()
        steps = [trainer.step() for _ in range(int(line))]
        print(json.dumps({"seconds": [seconds for seconds, _ in steps], "resident": resident(), "losses": [loss for _, loss in steps]}), flush=True)


if __name__ == "__main__":
    main()
