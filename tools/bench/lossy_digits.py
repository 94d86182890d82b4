#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Final accuracy of the digits network with and without lossy actions, over several seeds; prints a Markdown table.

    tools/bench/lossy_digits.py FOLDER [--seeds 3] [--epochs 12]

FOLDER is what tools/python/digits.py wrote. Exit status 1 when a lossy plan loses more than half a point on average."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

PLANS = [
    ("fp32, keep", ["--strategy=keep"]),
    ("zfp rate 8 on outputs of convolutions, the rest offloaded in fp16",
     ["--strategy=freelunch,hybrid=1,codec=fp16", "--allow-lossy=zfp,fp16"]),
    ("zfp rate 8 on every activation whose sign no gradient asks for", ["--strategy=freelunch", "--allow-lossy=zfp"]),
    ("fp16 on everything that vdnn-all offloads", ["--strategy=vdnn-all,codec=fp16", "--allow-lossy=fp16"]),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=12)
    options = parser.parse_args()
    folder, means = options.folder, []
    print("| plan | " + " | ".join(f"seed {s}" for s in range(1, options.seeds + 1)) + " | mean |")
    print("|---|" + "---|" * (options.seeds + 1))
    with tempfile.TemporaryDirectory() as work:
        for name, flags in PLANS:
            subprocess.run([options.sluicec, folder / "digits.onnx", "--batch=64", "--init=kaiming", "-o", f"{work}/digits", *flags], check=True)
            accuracies = []
            for seed in range(1, options.seeds + 1):
                log = pathlib.Path(work) / "log.jsonl"
                subprocess.run([f"{work}/digits", "--data", folder / "train", "--evaluate", folder / "test", "--epochs", str(options.epochs), "--lr",
                                "0.05", "--shuffle", "--seed", str(seed), "--log", log], check=True, stdout=subprocess.DEVNULL)
                events = [json.loads(line) for line in log.read_text().splitlines()]
                accuracies.append(100 * [e for e in events if e["event"] == "evaluate"][-1]["accuracy"])
            means.append(sum(accuracies) / len(accuracies))
            print(f"| {name} | " + " | ".join(f"{a:.2f}" for a in accuracies) + f" | {means[-1]:.2f} |", flush=True)
    worst = max(means[0] - mean for mean in means[1:])
    print(f"\nLargest loss of the mean: {worst:.2f} points.")
    sys.exit(0 if worst <= 0.5 else 1)


if __name__ == "__main__":
    main()
