#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans a decoder whose weights this machine need not hold, for a card that it need not have: predicted seconds of a step and tokens a second, beside what the link alone takes.

    large_plan.py FOLDER [--layers 32] [--width 4096] [--heads 32] [--tokens 1024] [--device rtx-4060-ti-16] [--batches 8,16,32] [--budget 15GiB] [--flags '--host-budget=128GiB --parts=16'] [--sluicec build/bin/sluicec]

The model is zoo_own.Decoder with GPT-2's vocabulary, by default of 6.7 billion parameters, exported without values: its weights are a file of holes. It is trained by AdamW in bf16, with masters and states in fp32 at home in
host memory, where they are updated. The link's time is that of parameters, which come twice, at the profile's rate of each direction while both run. Nothing is run. Needs the Python environment
of tools/setup.sh --references."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import warnings

import onnx_ir
import torch

from zoo_own import Decoder

WORDS = 50257
PROFILES = pathlib.Path(__file__).resolve().parents[2] / "passes/profiles"


def make(options, path):
    """The number of parameters."""
    with torch.device("meta"):
        model, ids = Decoder(WORDS, options.tokens, width=options.width, heads=options.heads, layers=options.layers).train(), torch.zeros(1, options.tokens, dtype=torch.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.onnx.export(model, (ids,), dynamo=True, optimize=False, input_names=["input"], output_names=["output"], verbose=False).model
    names, end = model.state_dict().keys(), 0
    for name, value in exported.graph.initializers.items():
        if name in names:
            tensor = value.const_value
            value.const_value = onnx_ir.ExternalTensor("weights.bin", end, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=name, base_dir=str(path.parent))
            end += (tensor.nbytes + 4095) // 4096 * 4096
    with open(path.parent / "weights.bin", "wb") as file:
        file.truncate(end)
    onnx_ir.save(exported, path)
    return sum(value.numel() for value in model.parameters())


def plan(options, path, batch):
    words = [options.sluicec, path, f"--batch={batch}", "--target=cuda", f"--device={options.device}", "--init=kaiming", "--loss=token-cross-entropy", "--optimizer=adamw", "--precision=bf16", "--state-home=host",
             "--parameter-home=host", f"--memory-budget={options.budget}", "--emit=planned", "-o", "-", *options.flags.split()]
    run = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    text = run.stdout[run.stdout.index("#train.plan<"):]
    return {key: float(re.search(rf"\b{key} = ([-+0-9.Ee]+)", text).group(1)) for key in ("seconds", "lower_bound", "keep_arena")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    for name, value in (("layers", 32), ("width", 4096), ("heads", 32), ("tokens", 1024)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", default="rtx-4060-ti-16")
    parser.add_argument("--batches", default="8,16,32")
    parser.add_argument("--budget", default="15GiB")
    parser.add_argument("--flags", default="--host-budget=128GiB --parts=16")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    parameters = make(options, options.folder / "model.onnx")
    profile = json.loads((PROFILES / f"{options.device}.json").read_text())
    link, updates = 2 * 4 * parameters / profile["links"]["duplex"], 7 * 4 * parameters / profile["rates"]["host_bandwidth"]
    print(f"{parameters:,} parameters; the link brings them twice a step in {link:.1f} s, and gradients home meanwhile; updates read and write host memory for {updates:.1f} s")
    print("| texts a step | keep MiB | step s | tokens/s | bound s | tokens/s of the link |\n|---|---|---|---|---|---|")
    for batch in options.batches.split(","):
        made, tokens = plan(options, options.folder / "model.onnx", batch), int(batch) * options.tokens
        print(f"| {batch} | {made['keep_arena'] / 2**20:.0f} | {made['seconds']:.1f} | {tokens / made['seconds']:.0f} | {made['lower_bound']:.1f} | {tokens / link:.0f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
