#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the largest loss of a model in parts of its rows takes and costs, as planned: the arena of keeping everything and the smallest budget that has a plan, each with
the time that is predicted for a step, as Markdown on stdout.

    tools/bench/parts.py build/bin/sluicec MODEL.onnx 'FLAGS' [PARTS...]"""
import re
import subprocess
import sys


def compiled(sluicec, model, flags):
    """What --explain prints, or the smallest budget where there is no plan."""
    done = subprocess.run([sluicec, model, *flags, "--emit=placed", "--explain"], capture_output=True, text=True)
    smallest = re.search(r"smallest feasible budget: (\d+)", done.stderr)
    if done.returncode and not smallest:
        sys.exit(done.stderr)
    return int(smallest[1]) if smallest else done.stdout


def seconds(text):
    return float(re.search(r"predicted step: ([\d.]+) ms", text)[1]) / 1e3


def main():
    sluicec, model, words, *counts = sys.argv[1:]
    flags = words.split()
    print("| parts | keep: MiB, s | smallest budget: MiB, s |\n|---|---|---|")
    for parts in counts or ["1", "2", "4", "8", "16"]:
        cut = [*flags, f"--parts={parts}"]
        keep = compiled(sluicec, model, [*cut, "--strategy=keep"])
        least = compiled(sluicec, model, [*cut, "--memory-budget=256"])
        planned = compiled(sluicec, model, [*cut, f"--memory-budget={least}"])
        kept = float(re.search(r"keep needs ([\d.]+) MiB", keep)[1])
        print(f"| {parts} | {kept:.1f}, {seconds(keep):.3f} | {least / 2 ** 20:.1f}, {seconds(planned):.3f} |", flush=True)


main()
