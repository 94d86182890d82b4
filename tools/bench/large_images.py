#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a network on one image, or volume, that is too large for the memory that it gets, in parts of its rows, and says whether that changes the gradients.

    large_images.py FOLDER resnet50|unet3d [--size 4096] [--width 16] [--budget 4GiB] [--parts image=4,above=256MiB] [--steps 3] [--repeats 1] [--beside ''] [--flags ''] [--run ''] [--sluicec build/bin/sluicec]

The models are torchvision's ResNet-50 on SIZE x SIZE pixels, and zoo_own.VolumeUnet on SIZE^3 voxels, whose first level has WIDTH channels; weights are Kaiming's, the batch is one random image, BatchNorm normalizes by it.
Says what sluicec promises, losses, seconds of each step and what the process had resident. With --repeats the first step is run so often, and its gradients are the same bits. --beside compiles a second program with these
flags instead of the budget and the parts ('--memory-budget=8GiB'), and says how far the first step's gradients are apart, relative to the norm of each; those whose norm is below 1e-6 of the largest one, which are rounding,
are counted. Needs the Python environment of tools/setup.sh --references."""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import time
import warnings

import numpy as np
import torch
import torchvision

from zoo_own import VolumeUnet

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/models"))
import compare  # noqa: E402


def make(options, path):
    """Exported from a small image, with its extents left open."""
    volume = options.model == "unet3d"
    model = VolumeUnet(width=options.width) if volume else torchvision.models.resnet50(weights=None)
    names = ("depth", "height", "width") if volume else ("height", "width")
    small = torch.zeros(1, 1, 16, 16, 16) if volume else torch.zeros(1, 3, 64, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model.train(), small, str(path), dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, input_names=["input"],
                          output_names=["output"], dynamic_axes={"input": {2 + i: name for i, name in enumerate(names)}})
    return [f"--dim={name}={options.size}" for name in names]


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.returncode, done.stderr)
    return "\n".join(line for line in (done.stdout + done.stderr).splitlines() if "note:" not in line)


class Trainer:
    def __init__(self, options, name, flags):
        self.options, self.program = options, options.folder / name
        begin = time.time()
        print(run(options.sluicec, *flags, "--init=kaiming", *options.flags.split(), "--force", "-o", self.program), flush=True)
        print(f"compiled in {time.time() - begin:.0f} s", flush=True)

    def train(self, steps):
        log, gradients = self.program.with_suffix(".jsonl"), self.program.with_suffix(".gradients")
        run(*self.options.run.split(), self.program, "--data", "synthetic", "--steps", steps, "--lr", 0.01, "--log", log, "--dump-gradients", gradients, "--force", "--offload-to", self.options.folder / "slots")
        events = [json.loads(line) for line in log.read_text().splitlines()]
        done, end = [event for event in events if event["event"] == "step"], events[-1]
        print(f"losses {[step['loss'] for step in done]}; seconds a step {[round(step['ms'] / 1e3, 1) for step in done]}, predicted {end['predicted_ms'] / 1e3:.1f}; resident at most {end['resident_peak_bytes']:,} bytes", flush=True)
        return gradients


def apart(first, second):
    """The largest distance of a gradient, relative to its norm, and how many are rounding alone."""
    a, b = compare.load(first), compare.load(second)
    assert a.keys() == b.keys()
    norms = {name: float(np.linalg.norm(value)) for name, value in a.items()}
    counted = [name for name in a if norms[name] > 1e-6 * max(norms.values())]
    worst = max(counted, key=lambda name: np.linalg.norm(a[name] - b[name]) / norms[name])
    return f"{np.linalg.norm(a[worst] - b[worst]) / norms[worst]:.2e} at most (of {worst}), of {len(counted)} gradients; {len(a) - len(counted)} are rounding"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("model", choices=("resnet50", "unet3d"))
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    for name, value in (("size", 4096), ("width", 16), ("steps", 3), ("repeats", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--budget", default="4GiB")
    parser.add_argument("--parts", default="image=4,above=256MiB")
    parser.add_argument("--beside", default="", help="flags of the program to compare with")
    parser.add_argument("--flags", default="", help="more words for sluicec, both times")
    parser.add_argument("--run", default="", help="words before the program")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "model.onnx"
    model = [path, "--batch=1", *make(options, path)]
    parted = Trainer(options, "parts", [*model, f"--memory-budget={options.budget}", f"--parts={options.parts}"])
    gradients = parted.train(options.steps)
    bits = {hashlib.sha256(parted.train(1).read_bytes()).hexdigest() for _ in range(options.repeats - 1)} | {hashlib.sha256(gradients.read_bytes()).hexdigest()}
    print(f"{options.repeats} runs, {len(bits)} sets of gradients", flush=True)
    if options.beside:
        print(f"gradients apart: {apart(Trainer(options, 'whole', [*model, *options.beside.split()]).train(1), gradients)}")


if __name__ == "__main__":
    sys.exit(main())
