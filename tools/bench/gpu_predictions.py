#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the cost model says of training on GPUs, written down before anybody measured it.

    tools/bench/gpu_predictions.py [--sluicec build/bin/sluicec] [--models DIR] --page docs/results/gpu/predictions.md

Steps of the networks that the GPU check measures, and of ViT-B/16, in bf16, at the batches of tools/bench/gpu_pack.sh, by the shipped profiles of an
H200 and of an A100. DIR has them as test/models/make_torchvision.py --size 224 --export-only leaves them."""
import argparse
import datetime
import pathlib
import re
import subprocess

NETWORKS = {"resnet50": 256, "resnet152": 64, "vgg16": 64, "densenet121": 128, "vit_b_16": 64}
BUDGETS = ("60%", "60%act", "40%act")


def planned(options, name, batch, device, budget):
    """Seconds and arena of a plan within a budget; None where there is none."""
    words = [options.sluicec, options.models / f"{name}-224/model.onnx", f"--batch={batch}", "--target=cuda", f"--device={device}", "--precision=bf16",
             f"--memory-budget={budget}", "--strategy=mixed", "--emit=planned"]
    run = subprocess.run(words, capture_output=True, text=True)
    if run.returncode == 3:
        return None
    if run.returncode:
        raise SystemExit(f"{name}: {run.stderr}")
    plan = run.stdout[run.stdout.index("#train.plan<"):]
    return {key: float(re.search(rf"\b{key} = ([-+0-9.Ee]+)", plan).group(1)) for key in ("seconds", "keep_seconds", "arena", "keep_arena")}


def row(options, name, batch, device):
    keep = planned(options, name, batch, device, "100%")
    cells = [f"{name}, {batch}", f"{keep['keep_seconds'] * 1e3:.1f}", f"{batch / keep['keep_seconds']:.0f}", f"{keep['keep_arena'] / 1e9:.2f}"]
    for budget in BUDGETS:
        plan = planned(options, name, batch, device, budget)
        cells.append(f"{plan['arena'] / 1e9:.2f} GB, {plan['seconds'] / plan['keep_seconds'] - 1:+.1%}".replace("%", " %") if plan else "none")
    print(" | ".join(cells), flush=True)
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path.home() / ".cache/sluice/models")
    parser.add_argument("--page", type=pathlib.Path, required=True)
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent).stdout.strip()
    lines = [f"""# Predicted steps on GPUs

Nothing here was measured. These are predictions by roofline of the programs that `sluicec --target=cuda --precision=bf16` emits, from the shipped
profiles of both devices, whose efficiencies are estimates: the first measurement on either device tests them, and belongs beside them, however far off.
`tools/bench/gpu_predictions.py --page docs/results/gpu/predictions.md`, commit {commit}, {datetime.date.today()}.

`keep`: milliseconds and images a second of a step that keeps everything, and its arena. The budgets are shares of that arena, or (`act`) of its activations;
each cell: the plan's arena, and its predicted time over keep's, by `mixed`."""]
    for device in ("h200", "a100"):
        lines += ["", f"## {device.upper()}", "", "| network, batch | keep, ms | images/s | keep, GB | " + " | ".join(b.replace("%", " %") for b in BUDGETS) + " |",
                  "|---" * (4 + len(BUDGETS)) + "|"]
        lines += [row(options, name, batch, device) for name, batch in NETWORKS.items()]
    options.page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
