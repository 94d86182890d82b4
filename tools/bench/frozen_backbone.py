#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model whose head alone is trained: a step beside a forward pass of the same program and of PyTorch, and what it keeps.

    frozen_backbone.py FOLDER [--model vit_base_patch16_224] [--head 'head[.].*'] [--folded] [--batch 8] [--rounds 3] [--threads 2] [--sluicec build/bin/sluicec]

--folded adds a step of the same model whose BatchNorm PyTorch folded into the weights of convolutions before it was exported.
Rounds alternate between the program's training steps, its evaluation and PyTorch's forward pass without gradients; a number is the median over rounds. What is made is kept in FOLDER, so that
a second call, `chrt -f 10 tools/bench/frozen_backbone.py FOLDER`, measures at real-time priority. Needs the Python environment of tools/setup.sh --references."""
import argparse
import json
import pathlib
import re
import statistics
import sys
import time

import numpy as np
import timm
import torch
from torch.fx.experimental.optimization import fuse

from large_tuning import run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/models"))
from reference import export  # noqa: E402

STEPS = 4  # of a round; the first touches pages, and is left out


def median_step(folder, program):
    run(folder / program, "--data", folder / "data", "--steps", STEPS, "--lr", "0.01", "--log", folder / "log.jsonl", "--force", "--quiet")
    return statistics.median(event["ms"] / 1e3 for event in map(json.loads, open(folder / "log.jsonl")) if event["event"] == "step" and event["step"] > 1)


def forward_seconds(options, folder):
    """Of a batch: evaluations of 1 and of STEPS batches differ by the batches between."""
    seconds = []
    for samples in ("one", "data"):
        begin = time.monotonic()
        run(folder / "program", "--evaluate", folder / samples, "--quiet")
        seconds.append(time.monotonic() - begin)
    return (seconds[1] - seconds[0]) / (STEPS - 1)


def torch_seconds(model, x, steps):
    model.eval()
    with torch.no_grad():
        model(x)
        begin = time.monotonic()
        for _ in range(steps):
            model(x)
    return (time.monotonic() - begin) / steps


def make(options, model):
    folder, rng = options.folder, np.random.default_rng(1)
    example = torch.zeros(options.batch, 3, 224, 224)
    if options.folded:
        export(fuse(model.eval()), example, folder / "folded.onnx", dynamic=False)
    export(model.train(), example, folder / "model.onnx", dynamic=False)
    for name, batches in (("one", 1), ("data", STEPS)):
        (folder / name).mkdir(exist_ok=True)
        np.save(folder / name / "input.npy", rng.standard_normal((batches * options.batch, 3, 224, 224), dtype=np.float32))
        np.save(folder / name / "target.npy", rng.integers(1000, size=batches * options.batch))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--model", default="vit_base_patch16_224")
    parser.add_argument("--head", default="head[.].*", help="names of the tensors that are trained")
    parser.add_argument("--folded", action="store_true")
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3, help="0: only make what is measured")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    model = timm.create_model(options.model).train()
    if not (options.folder / "model.onnx").exists():
        make(options, model)
    flags = [f"--threads={options.threads}", "--loss=softmax-cross-entropy", "--batch-norm=frozen"]
    frozen = ["--freeze=.*", f"--train={options.head}"]
    programs = [("whole", "model", []), ("program", "model", frozen)] + [("folded", "folded", frozen)] * options.folded
    for name, file, more in programs:
        if not (options.folder / f"{name}.txt").exists():
            (options.folder / f"{name}.txt").write_text(run(options.sluicec, options.folder / f"{file}.onnx", *flags, *more, "--force", "-o", options.folder / name))
        print(re.search(r"(?m)^.*of memory.*$", (options.folder / f"{name}.txt").read_text())[0], flush=True)
    x = torch.from_numpy(np.load(options.folder / "one/input.npy"))
    rows = []
    for _ in range(options.rounds):
        rows.append([median_step(options.folder, "program"), forward_seconds(options, options.folder), torch_seconds(model, x, STEPS - 1)])
        rows[-1] += [median_step(options.folder, name) for name, *_ in programs[2:]]
        print("step, the program's forward pass, PyTorch's" + ", a step of the folded model:" * options.folded, [round(seconds, 3) for seconds in rows[-1]], flush=True)
    if not rows:
        return
    step, forward, torchs, *folded = (statistics.median(column) for column in zip(*rows))
    print(f"step {step:.3f} s; over the program's forward pass of {forward:.3f} s: {step / forward:.3f}; over PyTorch's of {torchs:.3f} s: {step / torchs:.3f}" + "".join(f"; over that of the folded model, {seconds:.3f} s: {step / seconds:.3f}" for seconds in folded))


if __name__ == "__main__":
    main()
