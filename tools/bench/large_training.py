#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a decoder whose parameters and optimizer states are at home in a file, within a budget that holds neither.

    large_training.py FOLDER [--layers 24] [--width 2048] [--heads 16] [--tokens 1024] [--precision bf16|fp32] [--budget 4GiB] [--home storage|device] [--steps 3] [--flags ''] [--run ''] [--torch]
                      [--sluicec build/bin/sluicec]

The model is zoo_own.Decoder with GPT-2's vocabulary, by default of 1.3 billion parameters, with random weights; a batch is one text, the optimizer AdamW. Says what sluicec promises, the losses,
the seconds of each step and what the process had resident. With --home=device parameters and states stay on the device. --torch says PyTorch's losses in fp32 beside them, which takes four times
the parameters' memory. Needs the Python environment of tools/setup.sh --references."""
import argparse
import json
import pathlib
import subprocess
import sys
import time
import warnings

import numpy as np
import torch
from torch import nn

from zoo_own import Decoder

WORDS, CONTEXT, RATE = 50257, 1024, 1e-4


def model_of(options):
    torch.manual_seed(1)
    model = Decoder(WORDS, CONTEXT, width=options.width, heads=options.heads, layers=options.layers)
    for name, value in model.named_parameters():
        if value.dim() > 1:
            nn.init.normal_(value, std=0.02)
    return model.train()


def make(options):
    model, path = model_of(options), options.folder / "model.onnx"
    print(f"{sum(value.numel() for value in model.parameters()):,} parameters", flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (torch.zeros(1, options.tokens, dtype=torch.int64),), str(path), dynamo=True, optimize=False, input_names=["input"],
                          output_names=["output"], external_data=True)
    (options.folder / "data").mkdir(exist_ok=True)
    rng = np.random.default_rng(2)
    for name in ("input", "target"):
        np.save(options.folder / f"data/{name}.npy", rng.integers(WORDS, size=(options.steps, options.tokens)))


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.returncode, done.stderr)
    return done.stdout + done.stderr


def train(options):
    """The steps of the program's log, and what it says at the end."""
    folder, program, begin = options.folder, options.folder / f"program-{options.home}", time.time()
    homes = [f"--state-home={options.home}", f"--parameter-home={options.home}"] if options.home != "device" else []
    budget = [f"--memory-budget={options.budget}"] if options.budget else []
    precision = [f"--precision={options.precision}"] if options.precision != "fp32" else []
    print(run(options.sluicec, folder / "model.onnx", "--loss=token-cross-entropy", "--optimizer=adamw", *precision, *homes, *budget, *options.flags.split(), "--force", "-o", program), flush=True)
    print(f"compiled in {time.time() - begin:.0f} s", flush=True)
    file = ["--offload-to", folder / "homes"] if homes or "storage" in options.flags else []
    print(run(*options.run.split(), program, "--data", folder / "data", "--steps", options.steps, "--lr", RATE, "--log", folder / f"{options.home}.jsonl", "--force", *file))
    events = [json.loads(line) for line in (folder / f"{options.home}.jsonl").read_text().splitlines()]
    return [event for event in events if event["event"] == "step"], events[-1]


def reference(options):
    """PyTorch's losses."""
    model, losses = model_of(options), []
    x, y = (torch.from_numpy(np.load(options.folder / f"data/{name}.npy")) for name in ("input", "target"))
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.01)
    for step in range(options.steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[step:step + 1]).flatten(0, 1), y[step:step + 1].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    for name, value in (("layers", 24), ("width", 2048), ("heads", 16), ("tokens", 1024), ("steps", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--budget", default="")
    parser.add_argument("--home", choices=("storage", "device"), default="storage")
    parser.add_argument("--flags", default="", help="more words for sluicec")
    parser.add_argument("--run", default="", help="words before the program")
    parser.add_argument("--torch", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not (options.folder / "model.onnx").exists():
        make(options)
    steps, end = train(options)
    print(f"losses {[step['loss'] for step in steps]}; seconds a step {[round(step['ms'] / 1e3, 1) for step in steps]}, predicted {end['predicted_ms'] / 1e3:.1f}; "
          f"resident at most {end['resident_peak_bytes']:,} bytes", flush=True)
    if options.torch:
        print(f"PyTorch in fp32: {reference(options)}")


if __name__ == "__main__":
    sys.exit(main())
