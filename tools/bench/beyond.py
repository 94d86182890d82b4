#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far below whole tensors parts of the batch go: for each model the smallest budget of what comes and goes, and the predicted time at shares of
it, whole and in parts, as Markdown lines on stdout.

    tools/bench/beyond.py [--device v100-pcie] [--target host] [--shares 15,40] MODEL:BATCH:PARTS[:FLAG...] ..

MODEL is a folder below ~/.cache/sluice/models (test/models/make_torchvision.py --export-only, make_gpt2.py), PARTS what --parts takes. Shares are of
what keeping everything needs beyond parameters and states, without parts; times are over those of keeping everything without parts."""
import argparse
import pathlib
import re
import subprocess


def plan(options, model, flags):
    """(figures of the plan, 0), or (None, smallest budget)."""
    run = subprocess.run([options.sluicec, pathlib.Path.home() / ".cache/sluice/models" / model / "model.onnx", f"--device={options.device}",
                          f"--target={options.target}", "--host-budget=unlimited", "--emit=planned", "-o", "-", *flags], capture_output=True, text=True)
    if run.returncode == 3:
        return None, int(re.search(r"smallest feasible budget: (\d+)", run.stderr).group(1))
    if run.returncode:
        raise SystemExit(f"{model}: {run.stderr}")
    words = run.stdout[run.stdout.index("#train.plan<"):]
    number = lambda key: float(re.search(rf"\b{key} = ([-+0-9.Ee]+)", words).group(1))
    return {key: number(key) for key in ("base", "keep_arena", "keep_seconds", "seconds")}, 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--device", default="v100-pcie")
    parser.add_argument("--target", default="host")
    parser.add_argument("--shares", default="15,40")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    shares = [float(share) for share in options.shares.split(",")]
    cells = [f"{share:g} %" for share in shares]
    print("| model | batch | keep MiB | " + " | ".join(["whole: smallest", *cells, "parts", "smallest", *cells]) + " |")
    print("|---" * (5 + 2 * (len(shares) + 1) - 1) + "|")
    for word in options.models:
        model, batch, parts, *flags = word.split(":")
        flags = [f"--batch={batch}", *flags]
        keep, _ = plan(options, model, [*flags, "--strategy=keep"])
        moving = keep["keep_arena"] - keep["base"]
        row = [model, batch, f"{keep['keep_arena'] / 2**20:.0f}"]
        for cut in ([], [f"--parts={parts}"]):
            _, smallest = plan(options, model, [*flags, *cut, f"--memory-budget={int(keep['base'])}"])
            row += [parts] if cut else []
            row.append(f"{(smallest - keep['base']) / moving:.1%}")
            for share in shares:
                made, _ = plan(options, model, [*flags, *cut, f"--memory-budget={int(keep['base'] + share / 100 * moving)}"])
                row.append(f"{made['seconds'] / keep['keep_seconds'] - 1:+.1%}" if made else "-")
        print("| " + " | ".join(row).replace("%", " %") + " |", flush=True)


if __name__ == "__main__":
    main()
