#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted overhead of mixed on real models, as a Markdown table on stdout.

    tools/bench/planned_models.py --sluicec build/bin/sluicec [--batch 32] [--device v100-pcie] NAME[:IMAGE]...

Every NAME is a folder with a model.onnx below ~/.cache/sluice/models (test/models/make_torchvision.py --export-only). Two lines a model: with
the actions of --target=host, masks among them, and with those of --target=cuda. Budgets are shares of keep's activations; `floor + 10`: ten
points of the activations above the floor; `smallest`: mixed's smallest budget over the floor. In parentheses the bound of the same actions."""
import argparse
import pathlib
import re
import subprocess


def planned(options, name, target, budget):
    """(summary of the plan, 0), or (None, smallest budget)."""
    model = pathlib.Path.home() / ".cache/sluice/models" / name / "model.onnx"
    run = subprocess.run([options.sluicec, model, f"--batch={options.batch}", f"--target={target}", f"--device={options.device}",
                          f"--memory-budget={budget}", "--host-budget=unlimited", "--strategy=mixed", "--emit=planned"], capture_output=True, text=True)
    if run.returncode == 3:
        return None, int(re.search(r"smallest feasible budget: (\d+)", run.stderr).group(1))
    if run.returncode:
        raise SystemExit(f"{name}: {run.stderr}")
    plan = run.stdout[run.stdout.index("#train.plan<"):] # its own figures stand before those of its decisions
    number = lambda key: float(re.search(rf"\b{key} = ([-+0-9.Ee]+)", plan).group(1))
    return {key: number(key) for key in ("base", "floor", "keep_arena", "keep_seconds", "seconds", "lower_bound")}, 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--batch", default=32, type=int)
    parser.add_argument("--device", default="v100-pcie")
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    print("| model | target | keep MiB | floor | 40 % | 60 % | floor + 10 | smallest |\n|---|---|---|---|---|---|---|---|")
    for name in options.names:
        for target in ("host", "cuda"):
            keep, _ = planned(options, name, target, "100%")
            activations = keep["keep_arena"] - keep["base"]
            cells = [f"{keep['keep_arena'] / 2**20:.0f}", f"{(keep['floor'] - keep['base']) / activations:.1%}"]
            for budget in ("40%act", "60%act", str(int(keep["floor"] + activations / 10))):
                plan, _ = planned(options, name, target, budget)
                over = lambda key: f"{plan[key] / plan['keep_seconds'] - 1:.1%}"
                cells.append(f"{over('seconds')} ({over('lower_bound')})" if plan else "-")
            _, smallest = planned(options, name, target, str(int(keep["base"])))
            cells.append(f"{smallest / keep['floor']:.3f}")
            print(f"| {name} | {target} | " + " | ".join(cells).replace("%", " %") + " |", flush=True)


main()
