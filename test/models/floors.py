# SPDX-License-Identifier: Apache-2.0
"""Smallest feasible budgets of models under oneDNN's instruction sets, which decide about workspaces and must not decide about budgets.

    python3 floors.py --sluicec build/bin/sluicec [--batch N] MODEL.onnx...

Prints a table; ends with status 1 where a budget is more than 10 % above that of another instruction set, or where a workspace
sets the floor: it is more than 10 % above the one with kernels of the least workspace.
"""
import argparse
import os
import re
import subprocess
import sys

SETS = ["SSE41", "AVX2", "ALL"]  # what is beyond this processor is ignored


def figure(command, isa, pattern):
    run = subprocess.run(command, env={**os.environ, "DNNL_MAX_CPU_ISA": isa}, capture_output=True, text=True)
    found = re.search(pattern, run.stderr)
    if run.returncode != 3 or not found:
        sys.exit(f"{' '.join(command)} under {isa} ended with status {run.returncode}: {run.stderr[-500:]}")
    return int(found.group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sluicec", required=True)
    parser.add_argument("--batch", default="8")
    parser.add_argument("models", nargs="+")
    arguments = parser.parse_args()
    failed = False
    print("| model | " + " | ".join(SETS) + " | least workspaces |\n|---|" + "---|" * (len(SETS) + 1))
    for model in arguments.models:
        command = [arguments.sluicec, model, f"--batch={arguments.batch}", "--init=kaiming", "--memory-budget=1", "--host-budget=unlimited"]
        budget = r"smallest feasible budget: (\d+) bytes"
        floors = [figure(command, isa, budget) for isa in SETS]
        floor = r"no plan of whole tensors goes below (\d+)\)"
        used = figure(command, "SSE41", floor)
        least = figure(command + ["--allow-lossy=algorithms"], "SSE41", floor)
        failed |= max(floors) > 1.1 * min(floors) or used > 1.1 * least
        print(f"| {os.path.relpath(model)} | " + " | ".join(map(str, floors)) + f" | {least} of {used} |")
    sys.exit(failed)


if __name__ == "__main__":
    main()
