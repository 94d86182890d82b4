#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a compiled program takes of a machine's memory beside its budget: resident bytes at their most, and what of them are pages of files.

    tools/bench/one_memory.py --work DIR [--sluicec build/bin/sluicec] [--budgets 40%,60%,80%] [--steps 3] [NAME=BATCH...]

NAME is a model of the zoo (zoo_models.py), BATCH its batch; without them ten models whose activations weigh more than their parameters. Each is exported,
compiled without a budget and with each of the budgets, and trained on synthetic data. Prints a Markdown table. *Together*: the arenas, which is what the
budget is of. *Resident*: VmHWM of the process. *Files*: the most pages of files (code of the program and of its libraries) seen every 5 ms. *Beyond*: resident
less together and files, of which the promise is at most 40 MiB. Needs the Python environment of tools/setup.sh --references."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

MODELS = ["resnet18=64", "resnet50=32", "densenet121=32", "mobilenet_v2=64", "efficientnet_b0=32", "convnext_tiny=32", "swin_t=4", "own/unet=32", "own/gpt=64",
          "own/unet3d=8"]


def export_model(name, batch, path):
    import zoo_models
    import torch
    from reference import export, split
    torch.manual_seed(1)
    model = next(model for model in zoo_models.models() if model.name == name)
    x, _ = model.data(batch, 1)
    export(model.make(), split(x, batch)[0] if isinstance(x, dict) else x, path, opset=None, dynamo=False, dynamic=False)
    return model.loss


def run_watched(program, steps):
    """(resident bytes at most, bytes of files at most, together) of a run."""
    process = subprocess.Popen([program, "--data", "synthetic", "--steps", str(steps), "--lr", "0.001"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    files, resident = 0, 0
    while process.poll() is None:
        try:
            words = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        if found := re.search(r"RssFile:\s+(\d+) kB", words):
            files = max(files, int(found[1]) * 1024)
        if found := re.search(r"VmHWM:\s+(\d+) kB", words):
            resident = max(resident, int(found[1]) * 1024)
        time.sleep(0.005)
    output = process.communicate()[0]
    if process.returncode:
        raise SystemExit(f"{program}: status {process.returncode}: {output}")
    return resident, files, output


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--budgets", default="40%,60%,80%")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("models", nargs="*", default=MODELS)
    options = parser.parse_args()
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/models"))
    os.environ.setdefault("SLUICE_DEVICE", "host")
    options.work.mkdir(parents=True, exist_ok=True)
    print("| model, batch | budget | together | resident | files | beyond, MiB |\n|---|---|---|---|---|---|")
    for word in options.models:
        name, batch = word.split("=")
        path = options.work / f"{name.replace('/', '-')}.onnx"
        loss = export_model(name, int(batch), path)
        for budget in ["none", *options.budgets.split(",")]:
            program = options.work / "program"
            flags = [] if budget == "none" else [f"--memory-budget={budget}"]
            run = subprocess.run([options.sluicec, path, f"--loss={loss}", "--init=kaiming", "--force", *flags, "-o", program], capture_output=True, text=True)
            if run.returncode == 3:
                smallest = int(re.search(r"smallest feasible budget: (\d+)", run.stderr)[1])
                print(f"| {name}, {batch} | {budget} | - | refused: the smallest is {smallest:,} | | |", flush=True)
                continue
            if run.returncode:
                raise SystemExit(f"{name}: {run.stderr}")
            resident, files, output = run_watched(program, options.steps)
            (options.work / "last.txt").write_text(run.stdout + run.stderr + output)
            planned = int(re.search(r"^together: +(\d+) bytes", output, re.M)[1])
            print(f"| {name}, {batch} | {budget} | {planned:,} | {resident:,} | {files:,} | {(resident - planned - files) / 2**20:.1f} |", flush=True)
        path.unlink()


if __name__ == "__main__":
    main()
