#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws networks at random, exports them, and compares what sluicec's programs train with PyTorch: losses of three steps and the gradients
of the first. The smallest feasible plan of a strategy drawn along must then give the same bits as keeping everything.

    test/models/random_networks.py --sluicec build/bin/sluicec --out DIR [--seeds FIRST:END] [--keep] [--emulated]

With --emulated the programs are the cuda target's, on the emulator. A network's folder stays when it failed, or with --keep. The exit
status is 1 when one failed. Needs PyTorch (tools/setup.sh --references)."""
import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch import nn

import emulated
from reference import HYPERPARAMETERS, export, make_data, record

os.environ.setdefault("SLUICE_DEVICE", "host")  # plans do not depend on the machine

STEPS = 3
LARGEST = 40000  # elements of a value
STRATEGIES = ["mixed", "greedy", "dynprog", "chen", "rotor", "superneurons", "capuchin", "vdnn-all", "vdnn-dyn", "tflms", "autoswap", "pofo"]
ACTIVATIONS = [F.relu, lambda x: F.leaky_relu(x, 0.2), F.relu6, torch.sigmoid, torch.tanh, F.hardswish, F.hardsigmoid,
               lambda x: x.clamp(-0.5, 0.7), lambda x: F.softmax(x, 1), lambda x: -x]


class Broadcast(nn.Module):
    """A parameter of any shape that broadcasts, joined with the value."""

    def __init__(self, operator, shape):
        super().__init__()
        self.operator, self.weight = operator, nn.Parameter(torch.randn(shape))

    def forward(self, x):
        return self.operator(x, self.weight)


class RandomNetwork(nn.Module):
    """`steps` maps earlier values to a new one: a function or module and the indices of what it reads."""

    def __init__(self, seed):
        super().__init__()
        self.draw = random.Random(seed)
        torch.manual_seed(seed)
        self.steps = []
        self.shape = (self.draw.choice([1, 2, 3, 5, 8]), self.draw.randint(5, 16), self.draw.randint(5, 16))
        self.values = [torch.randn(4, *self.shape)]
        while len(self.steps) < self.draw.randint(4, 14):
            self.draw.choice([self.conv] * 3 + [self.norm] * 2 + [self.activation] * 3 + [self.join] * 3
                             + [self.pool, self.conv_transpose, self.resize, self.scale, self.cut, self.turn, self.pad, self.excite, self.regroup,
                                self.multiply])()
        self.finish()
        live = {len(self.steps)}
        for i in reversed(range(len(self.steps))):
            if i + 1 in live:
                live.update(self.steps[i][1])
        self.steps = [step if i + 1 in live else None for i, step in enumerate(self.steps)]
        self.parts = nn.ModuleList(step[0] for step in self.steps if step and isinstance(step[0], nn.Module))
        del self.values, self.draw

    def forward(self, x):
        values = [x]
        for step in self.steps:
            values.append(step and step[0](*(values[i] for i in step[1])))
        return values[-1]

    def add(self, function, *reads):
        """Appends a step, unless PyTorch refuses it or it grows beyond what a test should take."""
        try:
            value = function(*(self.values[i] for i in reads))
        except (RuntimeError, ValueError):
            return
        if 0 < value.numel() <= LARGEST:
            self.steps.append((function, reads))
            self.values.append(value.detach())

    def recent(self):
        return self.draw.randrange(max(0, len(self.values) - 3), len(self.values))

    def pair(self, low, high):
        return self.draw.randint(low, high), self.draw.randint(low, high)

    def channels(self, i):
        return self.values[i].shape[1]

    def conv(self):
        i = self.recent()
        c = self.channels(i)
        groups = self.draw.choice([g for g in range(1, c + 1) if c % g == 0])
        self.add(nn.Conv2d(c, groups * self.draw.randint(1, 6), self.pair(1, 4), self.pair(1, 2), self.pair(0, 2), self.pair(1, 2), groups,
                              self.draw.random() < 0.5), i)

    def conv_transpose(self):
        i = self.recent()
        c, stride = self.channels(i), self.pair(1, 3)
        groups = self.draw.choice([g for g in range(1, c + 1) if c % g == 0])
        self.add(nn.ConvTranspose2d(c, groups * self.draw.randint(1, 3), self.pair(1, 3), stride, 0,
                                       tuple(self.draw.randint(0, s - 1) for s in stride), groups, self.draw.random() < 0.5), i)

    def norm(self):
        i = self.recent()
        norm = nn.BatchNorm2d(self.channels(i), eps=0.1)  # few values a channel here
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.uniform_(norm.bias, -0.5, 0.5)
        self.add(norm, i)

    def activation(self):
        self.add(self.draw.choice(ACTIVATIONS), self.recent())

    def pool(self):
        kernel, ceil = self.pair(1, 4), self.draw.random() < 0.5
        stride, padding = self.pair(1, 3), tuple(self.draw.randint(0, k // 2) for k in kernel)
        if self.draw.random() < 0.5:
            self.add(lambda x: F.max_pool2d(x, kernel, stride, padding, ceil_mode=ceil), self.recent())
        else:
            counted = self.draw.random() < 0.5
            self.add(lambda x: F.avg_pool2d(x, kernel, stride, padding, ceil_mode=ceil, count_include_pad=counted), self.recent())

    def resize(self):
        mode = self.draw.choice([dict(mode="nearest"), dict(mode="bilinear", align_corners=False), dict(mode="bilinear", align_corners=True)])
        self.add(lambda x: F.interpolate(x, scale_factor=2, **mode), self.recent())

    def join(self):
        i = self.recent()
        same = [j for j, v in enumerate(self.values) if v.shape == self.values[i].shape]
        stacked = [j for j, v in enumerate(self.values) if v.shape[2:] == self.values[i].shape[2:]]
        operator = self.draw.choice([torch.add, torch.sub, torch.mul, lambda *x: torch.cat(x, 1)])
        self.add(operator, i, self.draw.choice(same if operator in (torch.add, torch.sub, torch.mul) else stacked))

    def scale(self):
        i = self.recent()
        _, c, h, w = self.values[i].shape
        shape = self.draw.choice([(1,), (c, 1, 1), (1, c, 1, 1), (h, w), (w,), (h, 1), (c, h, w), (1, 1, h, 1)])
        self.add(Broadcast(self.draw.choice([torch.add, torch.mul, torch.sub]), shape), i)

    def cut(self):
        i, axis = self.recent(), self.draw.choice([1, 2, 3])
        extent = self.values[i].shape[axis]
        if extent > 1:
            first = self.draw.randint(0, extent - 2)
            length = self.draw.randint(1, extent - first - 1)
            self.add(lambda x: x.narrow(axis, first, length), i)

    def turn(self):
        axes = self.draw.choice([(0, 1, 3, 2), (0, 2, 1, 3), (0, 3, 2, 1), (0, 2, 3, 1)])
        # In a row: PyTorch 2.15's gradients of BatchNorm2d(x.permute(0, 3, 2, 1)) on the CPU are wrong.
        self.add(lambda x: x.permute(axes).contiguous(), self.recent())

    def pad(self):
        edges = tuple(self.draw.randint(0, 2) for _ in range(4))
        self.add(lambda x: F.pad(x, edges), self.recent())

    def excite(self):
        """Channels times a factor that all of the image decides."""
        i = self.recent()
        squeeze = self.draw.choice([F.adaptive_avg_pool2d, F.adaptive_max_pool2d])
        self.add(lambda x: squeeze(x, 1), i)
        self.add(nn.Conv2d(self.channels(i), self.channels(i), 1), len(self.values) - 1)
        self.add(torch.sigmoid, len(self.values) - 1)
        self.add(torch.mul, i, len(self.values) - 1)

    def regroup(self):
        """Elements that change places: channels with pixels, channels with channels."""
        i = self.recent()
        n, c, h, w = self.values[i].shape
        groups = self.draw.choice([g for g in range(1, c + 1) if c % g == 0])
        self.add(self.draw.choice([lambda x: F.pixel_shuffle(x, 2), lambda x: F.pixel_unshuffle(x, 2), lambda x: torch.cat(x.split([c // 2, c - c // 2], 1)[::-1], 1),
                                   lambda x: x.reshape(n, groups, c // groups, h, w).transpose(1, 2).reshape(n, c, h, w)]), i)

    def multiply(self):
        """Products of matrices: rows of images with weights, or with each other."""
        i = self.recent()
        n, c, h, w = self.values[i].shape
        if self.draw.random() < 0.5:
            self.add(nn.Linear(w, self.draw.randint(1, 9), self.draw.random() < 0.5), i)
        else:
            self.add(lambda x: x @ x.transpose(2, 3) / w, i)

    def finish(self):
        """Class scores: of the whole image, or of every pixel."""
        last = len(self.values) - 1
        scores = 4 * self.values[last].numel() // self.channels(last)
        self.dense = self.draw.random() < 0.3 and scores <= LARGEST and self.values[last].shape[2:] != (1, 1)
        if self.dense:
            self.add(nn.Conv2d(self.channels(last), 4, 1), last)
            return
        self.add((lambda x: x.mean((2, 3))) if self.draw.random() < 0.5 else (lambda x: x.flatten(1)), last)
        self.add(nn.Linear(self.values[-1].shape[1], 4), len(self.values) - 1)


def run(*command, **environment):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=dict(os.environ, **environment))
    return done.returncode, done.stdout + done.stderr


def smallest(output):
    found = re.search(r"smallest feasible budget: (\d+)", output)
    return found and found.group(1)


def check(seed, sluicec, on_emulator, folder):
    """Empty, or what failed."""
    network = RandomNetwork(seed)
    maps = tuple(network(torch.randn(4, *network.shape)).shape[2:])
    x, target = make_data(network.shape, 4, 4, STEPS, maps or None)
    export(network, x[:4], folder / "model.onnx", opset=11 + 2 * (seed % 4), dynamic=False)
    record(network, x, target, 4, folder, HYPERPARAMETERS, keep_final=False)
    flags = ["--lr", 0.01, "--momentum", 0.9, "--weight-decay", 1e-4, "--data", folder / "data", "--steps", STEPS]

    def train(name, *options):
        if on_emulator:
            status, output = emulated.compile_program(sluicec, folder / "model.onnx", [*emulated.FLAGS, *options], folder / name)
        else:
            status, output = run(sluicec, folder / "model.onnx", *options, "-o", folder / name)
        if status == 0:
            status, output = run(folder / name, *flags, "--log", folder / f"{name}.jsonl", "--dump-gradients", folder / f"{name}.gradients",
                                 SLUICE_POISON="1")
        return status, output

    status, output = train("keep", "--strategy=keep")
    if status:
        return output
    status, output = run(sys.executable, pathlib.Path(__file__).with_name("compare.py"), folder / "reference.safetensors",
                         "--log", folder / "keep.jsonl", "--gradients", folder / "keep.gradients")
    if status:
        return output
    strategy = "--strategy=" + STRATEGIES[seed % len(STRATEGIES)]
    status, output = train("planned", strategy, "--memory-budget=256", "--host-budget=unlimited")
    if status == 3 and smallest(output):
        status, output = train("planned", strategy, "--memory-budget=" + smallest(output), "--host-budget=unlimited")
    if status:
        return f"{strategy}: {output}"
    losses = [re.findall(r'"loss":([^,]*)', (folder / f"{name}.jsonl").read_text()) for name in ("keep", "planned")]
    if losses[0] != losses[1] or (folder / "keep.gradients").read_bytes() != (folder / "planned.gradients").read_bytes():
        return f"{strategy} changes bits: losses {losses[0]} and {losses[1]}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sluicec", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--seeds", default="0:8")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--emulated", action="store_true")
    options = parser.parse_args()
    first, end = (int(v) for v in options.seeds.split(":"))
    failed = 0
    for seed in range(first, end):
        folder = options.out / f"network{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        error = check(seed, options.sluicec.resolve(), options.emulated, folder.resolve())
        failed += bool(error)
        print(f"network {seed}: {error.strip() or 'ok'}", flush=True)
        if not error and not options.keep:
            shutil.rmtree(folder)
    print(f"random_networks: {end - first - failed} of {end - first} networks train as PyTorch trains them")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
