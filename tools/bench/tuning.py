#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frozen weights in fewer bits (sluicec --frozen) beside floats: bytes, errors and times of a step of a decoder with adapters.

    tuning.py FOLDER [--sluicec build/bin/sluicec] [--layers 2] [--batch 8] [--tokens 512] [--precision fp32] [--run ''] [--steps 3] [--forms int8 int4]

The model is as wide as GPT-2 (768, a vocabulary of 8192, tied), its weights are normal numbers of standard deviation 0.02; adapters of rank 8 stand beside all matrices
of its blocks, and nothing else is trained. A row a form: what sluicec says of its bytes, what keep needs, the smallest budget, the largest relative
error of a tensor, the median of a step, and what its products took, from the program's --profile-out. `--run 'chrt -f 10'` goes before the programs. Needs the Python environment of tools/setup.sh --references."""
import argparse
import json
import math
import pathlib
import re
import subprocess
import sys

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/models"))
from reference import export  # noqa: E402

WORDS, WIDTH, HEADS = 8192, 768, 12
FORMS = ("", "bf16", "int8", "int4", "int4,group=32")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out, self.up, self.down = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (part.view(batch, tokens, HEADS, -1).transpose(1, 2) for part in self.qkv(self.ln_1(x)).split(WIDTH, 2))
        scores = q @ k.transpose(2, 3) / math.sqrt(WIDTH / HEADS)
        scores = scores + torch.full((tokens, tokens), -1e9).triu(1)
        x = x + self.out((torch.softmax(scores, 3) @ v).transpose(1, 2).reshape(batch, tokens, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.ln_2(x))))


class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.words, self.blocks, self.norm = nn.Embedding(WORDS, WIDTH), nn.ModuleList(Block() for _ in range(layers)), nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return nn.functional.linear(self.norm(x), self.words.weight)


def make(folder, options):
    torch.manual_seed(1)
    model = Decoder(options.layers)
    for value in model.parameters():
        if value.ndim == 2:
            nn.init.normal_(value, std=0.02)
    export(model, torch.zeros(options.batch, options.tokens, dtype=torch.int64), folder / "decoder.onnx", dynamic=False)
    (folder / "data").mkdir()
    rng = np.random.default_rng(2)
    for name in ("input", "target"):
        np.save(folder / f"data/{name}.npy", rng.integers(WORDS, size=(options.batch, options.tokens)))


def run(*words, status=0):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return done.stdout + done.stderr


def measure(folder, options, form):
    name = "floats" if not form else form.replace(",", "-").replace("=", "")
    flags = [options.sluicec, folder / "decoder.onnx", "--loss=token-cross-entropy", "--adapter=lora,rank=8,targets=blocks.*", f"--precision={options.precision}"]
    flags += [f"--frozen={form}"] if form else []
    said = run(*flags, "--force", "-o", folder / name)
    listed = run(*flags, "--list-parameters")
    refused = run(*flags, "--memory-budget=1000", "-o", folder / "never", status=3)
    errors = [float(error) for error in re.findall(r"relative error (\S+)", listed)]
    kept = re.search(r"kept in .*: (\d+) bytes instead of (\d+)", said)
    program = [*options.run.split(), folder / name, "--data", folder / "data", "--steps", options.steps, "--lr", "0.001"]
    run(*program, "--log", folder / f"{name}.jsonl", "--force", "--quiet")
    run(*program, "--profile-out", folder / f"{name}.json", "--force", "--quiet")
    steps = [event["ms"] / 1e3 for event in map(json.loads, open(folder / f"{name}.jsonl")) if event["event"] == "step"]
    ops = json.load(open(folder / f"{name}.json"))["ops"]
    products = sum(op["seconds"] for op in ops if op["op"] in ("matmul", "quantized_matmul"))
    numbers = re.search(r"keep needs (\d+), of which (\d+) live", refused)
    return {"form": form or "floats", "weights": int(kept[1]) if kept else 0, "floats": int(kept[2]) if kept else 0, "keep": int(numbers[1]), "base": int(numbers[2]),
            "smallest": int(re.search(r"smallest feasible budget: (\d+)", refused)[1]), "error": max(errors, default=0),
            "step": sorted(steps[1:])[len(steps[1:]) // 2], "products": products,
            "loss": [event["loss"] for event in map(json.loads, open(folder / f"{name}.jsonl")) if event["event"] == "step"][-1]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--run", default="", help="words before the programs")
    parser.add_argument("--forms", nargs="*", default=FORMS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not (options.folder / "decoder.onnx").exists():
        make(options.folder, options)
    print("| form | frozen matrices, bytes | keep needs | of which base | smallest budget | largest relative error | step | products | loss |\n" + "|---" * 9 + "|")
    for form in options.forms:
        row = measure(options.folder, options, form)
        weights = f"{row['weights']:,} of {row['floats']:,}" if row["weights"] else ""
        print(f"| {row['form']} | {weights} | {row['keep']:,} | {row['base']:,} | {row['smallest']:,} | {row['error']:.4f} | {row['step']:.3f} s | "
              f"{row['products'] * 1e3:.0f} ms | {row['loss']:.5f} |", flush=True)


if __name__ == "__main__":
    main()
