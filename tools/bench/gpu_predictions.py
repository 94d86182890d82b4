#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the cost model says of training on GPUs, beside what was measured there.

    tools/bench/gpu_predictions.py [--sluicec build/bin/sluicec] [--models DIR] [--profiles DIR] --page docs/results/gpu/predictions.md

Steps of the networks that the GPU check measures, in bf16, on an H100, an H200 and an RTX 4060. The batches of the first two are those of
tools/bench/gpu_pack.sh, those of the RTX 4060 are the largest of these and their halves whose arena without a plan leaves 1 GB of its 8.6 for the driver and
libraries. DIR of the models has them as test/models/make_torchvision.py --size 224 --export-only and make_gpt2.py leave them; --profiles takes the
profiles from files, for a sluicec that does not have them yet. Measured steps are read from docs/results/gpu/DEVICE.json, the last of each program."""
import argparse
import concurrent.futures
import datetime
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPT2 = ["--optimizer=adamw", "--init=xavier", "--loss=token-cross-entropy"]
NETWORKS = {"resnet50": ("resnet50-224", []), "resnet152": ("resnet152-224", []), "vgg16": ("vgg16-224", []), "densenet121": ("densenet121-224", []),
            "vit_b_16": ("vit_b_16-224", []), "gpt2": ("gpt2-124m", GPT2)}
LARGE = {"resnet50": 256, "resnet152": 64, "vgg16": 64, "densenet121": 128, "vit_b_16": 64, "gpt2": 32}
SMALL = {"resnet50": 128, "resnet152": 64, "vgg16": 64, "densenet121": 64, "vit_b_16": 64, "gpt2": 8}
DEVICES = {"h100": ("H100", LARGE), "h200": ("H200", LARGE), "rtx-4060": ("RTX 4060, 8 GB", SMALL)}
BUDGETS = ("60%", "60%act", "40%act")

HEAD = """# Predicted steps on GPUs

Predictions by roofline of the programs that `sluicec --target=cuda --precision=bf16` emits, from the shipped profiles, whose `provenance` says where each
number is from, beside what was measured. The rest is written down first: the next measurement tests it, and belongs beside it, however far off.
`tools/bench/gpu_predictions.py --page docs/results/gpu/predictions.md`, commit {commit}, {date}.

`keep`: milliseconds and samples a second of a step that keeps everything, and its arena. The budgets are shares of that arena, or (`act`) of its activations;
each cell: the plan's arena, and its predicted time over keep's, by `mixed`; none: no plan is so small. Samples are images of 224 x 224, or texts of 1024 tokens (GPT-2 124M, AdamW, no
dropout). Batches are those of the GPU check; on the RTX 4060 they are what leaves 1 GB of its 8.6 for the driver and libraries without a plan."""

NOTES = {
    "h100": ["Nothing was measured on one. Its efficiencies are those that were measured on an H200, which has the same chip."],
    "h200": ["Measured: [h200.md](h200.md), the last run of each program. The profile's efficiencies are from these runs, so that they test how the model adds up,",
             "not the efficiencies. ResNet-50 is predicted {resnet50}. GPT-2 is predicted {gpt2}:",
             "its gelu and its loss were busy computing, which the model takes for free beside their bytes. Budgets: 60 % of GPT-2's activations took 8.0 % more than keep;",
             "60 % of ResNet-50's arena and of its activations, with kernels since replaced, 14 % more."],
    "rtx-4060": ["Nothing was measured on one. Efficiencies of convolutions and memory are those with which ResNet-50 on an RTX 4090 and an RTX 3090 comes near published",
                 "rates."]}


def planned(options, name, device, budget):
    """Seconds and arena of a plan within a budget, and of keeping everything; None where there is none."""
    folder, flags = NETWORKS[name]
    profile = options.profiles / f"{device}.json" if options.profiles else device
    words = [options.sluicec, options.models / folder / "model.onnx", f"--batch={DEVICES[device][1][name]}", "--target=cuda", f"--device={profile}",
             "--precision=bf16", *flags, f"--memory-budget={budget}", "--strategy=mixed", "--emit=planned"]
    run = subprocess.run(words, capture_output=True, text=True)
    if run.returncode == 3:
        return None
    if run.returncode:
        raise SystemExit(f"{name}: {run.stderr}")
    plan = run.stdout[run.stdout.index("#train.plan<"):]
    return {key: float(re.search(rf"\b{key} = ([-+0-9.Ee]+)", plan).group(1)) for key in ("seconds", "keep_seconds", "arena", "keep_arena")}


def measured(device):
    """Milliseconds of steps that kept everything, by network."""
    path = ROOT / f"docs/results/gpu/{device}.json"
    sections = json.loads(path.read_text()).values() if path.exists() else []
    steps = {}
    for section in sections:
        for name in NETWORKS:
            if isinstance(section, dict) and f"{name}_bf16_keep" in section:
                steps[name] = section[f"{name}_bf16_keep"]["median_ms"]
    return steps


def row(name, batch, plans, step):
    keep = next((plan for plan in plans if plan), None)
    if not keep:
        raise SystemExit(f"{name}: no budget has a plan")
    cells = [f"{name}, {batch}", f"{keep['keep_seconds'] * 1e3:.1f}"] + ([f"{step:.1f}" if step else ""] if step is not None else [])
    cells += [f"{batch / keep['keep_seconds']:.0f}", f"{keep['keep_arena'] / 1e9:.2f}"]
    cells += [f"{plan['arena'] / 1e9:.2f} GB, {plan['seconds'] / plan['keep_seconds'] - 1:+.1%}".replace("%", " %") if plan else "none" for plan in plans]
    return keep["keep_seconds"] * 1e3, "| " + " | ".join(cells) + " |"


def section(options, device, pool):
    title, batches = DEVICES[device]
    steps = measured(device)
    jobs = {name: [pool.submit(planned, options, name, device, budget) for budget in BUDGETS] for name in NETWORKS}
    columns = ["network, batch", "keep, ms"] + (["measured, ms"] if steps else []) + ["samples/s", "keep, GB"] + [b.replace("%", " %") for b in BUDGETS]
    lines, off = ["", f"## {title}", "", "| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"], {}
    for name, plans in jobs.items():
        predicted, line = row(name, batches[name], [plan.result() for plan in plans], steps.get(name, 0) if steps else None)
        lines.append(line)
        print(device, line, flush=True)
        if name in steps:
            share = predicted / steps[name] - 1
            off[name] = f"{abs(share) * 100:.0f} % {'above' if share > 0 else 'below'} what was measured"
    return lines + [""] + [line.format(**off) for line in NOTES[device]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path.home() / ".cache/sluice/models")
    parser.add_argument("--profiles", type=pathlib.Path, help="folder with DEVICE.json, instead of sluicec's own")
    parser.add_argument("--jobs", type=int, default=1, help="plans at a time")
    parser.add_argument("--page", type=pathlib.Path, required=True)
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    lines = [HEAD.format(commit=commit, date=datetime.date.today())]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for device in DEVICES:
            lines += section(options, device, pool)
    options.page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
