#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of a reversible network by its number of blocks, and what a chain of inversions loses: docs/results/reversible.md and .svg.
Needs the environment of `tools/setup.sh --references`, which makes the models.

    tools/bench/reversible.py [--blocks 2,4,8,12,16,24] [--sluicec build/bin/sluicec] [--svg FILE] [--errors 12]

Prints, for each strategy, the smallest arena less what lives through the whole step, in KiB; --errors trains the network of so many blocks
with keep and with everything inverted and prints how far losses and first gradients are apart, block by block."""
import argparse
import math
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/models"))
import matplotlib  # noqa: E402
import torch  # noqa: E402
import matplotlib.pyplot as plt  # noqa: E402
from networks import Reversible  # noqa: E402
from reference import export  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

BATCH, SHAPE = 8, (3, 16, 16)
ROWS = [("keep", ["--strategy=keep"]), ("dynprog", ["--strategy=dynprog"]), ("chen", ["--strategy=chen"]),
        ("mixed, exact, no copies", ["--strategy=mixed,offload=0"]),
        ("mixed, inversion, no copies", ["--strategy=mixed,offload=0", "--allow-lossy=invert"])]


def sluicec(options, model, flags):
    return subprocess.run([options.sluicec, model, f"--batch={BATCH}", "--threads=2", *flags], capture_output=True, text=True)


def smallest(options, model, flags):
    """(smallest budget, base)."""
    said = sluicec(options, model, [*flags, "--memory-budget=256", "--host-budget=unlimited", "--emit=placed", "-o", "/dev/null"]).stderr
    return int(re.search(r"smallest feasible budget: (\d+)", said).group(1)), int(re.search(r"of which (\d+) live", said).group(1))


def chart(path, blocks, table):
    """Lines over blocks; KiB upwards."""
    matplotlib.rcParams.update({"svg.hashsalt": "sluice", "svg.fonttype": "none"})  # the same bytes from the same table
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for name, row in table.items():
        axes.plot(blocks, row, marker="o", label=name)
    axes.set(xlabel="blocks", ylabel="KiB of activations, gradients and workspaces", xticks=blocks, ylim=(0, None))
    axes.grid(color="#ddd")
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def errors(options, blocks, model, folder):
    """Relative distance of every first gradient from keep's, and of the losses of five steps."""
    runs = {}
    for name, flags in (("keep", ["--strategy=keep"]), ("inverted", None)):
        flags = flags or ["--strategy=mixed,offload=0", "--allow-lossy=invert",
                          "--host-budget=unlimited", f"--memory-budget={smallest(options, model, ['--strategy=mixed,offload=0', '--allow-lossy=invert'])[0]}"]
        made = sluicec(options, model, [*flags, "-o", folder / name])
        if made.returncode:
            sys.exit(made.stderr)
        subprocess.run([folder / name, "--data", "synthetic", "--steps", "5", "--lr", "0.01", "--momentum", "0.9", "--seed", "7",
                        "--log", folder / f"{name}.jsonl", "--dump-gradients", folder / f"{name}.gradients"], check=True, capture_output=True)
        losses = [float(v) for v in re.findall(r'"step":\d+,"loss":([^,}]*)', (folder / f"{name}.jsonl").read_text())]
        runs[name] = losses, load_file(folder / f"{name}.gradients")
    norm = lambda a: math.sqrt(float((a.astype("float64") ** 2).sum()))
    (want_losses, want), (got_losses, got) = runs["keep"], runs["inverted"]
    print("losses, relative:", " ".join(f"{abs(g - w) / abs(w):.1e}" for g, w in zip(got_losses, want_losses)))
    for block in range(blocks - 1, -1, -1):
        names = [n for n in want if re.search(rf"(first|second)\.{block}\.\d", n)]
        worst = max(names, key=lambda n: norm(got[n] - want[n]) / max(norm(want[n]), 1e-30))
        print(f"block {block + 1}: largest relative distance of a first gradient {norm(got[worst] - want[worst]) / norm(want[worst]):.1e} ({worst})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", default="2,4,8,12,16,24")
    parser.add_argument("--sluicec", default=str(ROOT / "build/bin/sluicec"))
    parser.add_argument("--svg")
    parser.add_argument("--errors", type=int, default=0)
    options = parser.parse_args()
    blocks = [int(n) for n in options.blocks.split(",") if n]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)

        def model_of(n):
            torch.manual_seed(1)
            export(Reversible(blocks=n), torch.randn(4, *SHAPE), folder / f"{n}.onnx")
            return folder / f"{n}.onnx"
        models = {n: model_of(n) for n in {*blocks, *([options.errors] if options.errors else [])}}
        table = {}
        for name, flags in ROWS if blocks else []:
            found = [smallest(options, models[n], flags) for n in blocks]
            table[name] = [(arena - base) // 1024 for arena, base in found]
        if table:
            print("| blocks | " + " | ".join(str(n) for n in blocks) + " |\n|---|" + "---|" * len(blocks))
        for name, row in table.items():
            print(f"| {name} | " + " | ".join(f"{v:,}" for v in row) + " |")
        if options.svg and table:
            chart(options.svg, blocks, table)
        if options.errors:
            errors(options, options.errors, models[options.errors], folder)


main()
