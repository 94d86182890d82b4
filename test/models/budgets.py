# SPDX-License-Identifier: Apache-2.0
"""Holds sluicec to the smallest budgets that it reports.

    python3 budgets.py --sluicec build/bin/sluicec [--batch N] [--lossy WORDS]... [--strategy NAME]... [--flag FLAG]... MODEL.onnx...

Asks for 256 bytes under every combination of model, lossy actions ("" for none) and strategy, then for the number that was
reported, which must compile, and for 256 bytes less, which must be refused with the same number. Prints a line for each and
ends with status 1 when one breaks the promise. What is refused without a budget, because a strategy wants another
flag or more of the host, promises nothing.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile


def reported(command, budget, status):
    """The smallest budget that sluicec reports for `budget`; what went wrong instead, when it does not end with `status`."""
    run = subprocess.run(command + [f"--memory-budget={budget}"], capture_output=True, text=True)
    if run.returncode != status:
        return f"{budget} bytes: status {run.returncode} instead of {status}: {run.stderr[-300:]}"
    found = re.search(r"smallest feasible budget: (\d+) bytes", run.stderr)
    return int(found.group(1)) if found else 0


def kept(command):
    if status := subprocess.run(command, capture_output=True).returncode:
        return f"status {status} without a budget", status in (2, 3)
    smallest = reported(command, 256, 3)
    if not isinstance(smallest, int) or not smallest:
        return smallest or "nothing reported for 256 bytes", False
    compiled = reported(command, smallest, 0)
    if isinstance(compiled, str):
        return f"{smallest}: {compiled}", False
    below = reported(command, smallest - 256, 3)
    return f"{smallest}" if below == smallest else f"{smallest}: below it {below}", below == smallest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sluicec", required=True)
    parser.add_argument("--batch", default="8")
    parser.add_argument("--lossy", action="append")
    parser.add_argument("--strategy", action="append")
    parser.add_argument("--flag", action="append", default=[])
    parser.add_argument("models", nargs="+")
    arguments = parser.parse_args()
    broken = False
    output = os.path.join(tempfile.mkdtemp(), "placed.mlir")
    for model in arguments.models:
        for lossy in arguments.lossy or [""]:
            for strategy in arguments.strategy or ["auto"]:
                command = [arguments.sluicec, model, f"--batch={arguments.batch}", f"--strategy={strategy}", "--emit=placed", "--force", "-o", output]
                command += arguments.flag
                command += [f"--allow-lossy={lossy}"] if lossy else []
                figure, good = kept(command)
                broken |= not good
                print(f"{'' if good else 'BROKEN '}{os.path.relpath(model)} {strategy} '{lossy}': {figure}", flush=True)
    sys.exit(broken)


if __name__ == "__main__":
    main()
