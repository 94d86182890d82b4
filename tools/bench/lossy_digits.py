#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The digits networks with and without lossy actions, over several seeds, as two Markdown tables: final accuracy of the residual network,
and losses and accuracy of 300 steps of the row of convolutions and ReLUs, with zfp at 4, 8 and 16 bits a value.

    tools/bench/lossy_digits.py FOLDER [--seeds 3] [--epochs 12] [--steps 300] [--only residual|plain]

FOLDER is what tools/python/digits.py wrote. Exit status 1 when a lossy plan loses more than half a point of accuracy on average."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

RESIDUAL = [
    ("fp32, keep", ["--strategy=keep"]),
    ("zfp rate 8 on outputs of convolutions, the rest offloaded in fp16",
     ["--strategy=freelunch,hybrid=1,codec=fp16", "--allow-lossy=zfp,fp16"]),
    ("zfp rate 8 on every activation", ["--strategy=freelunch", "--allow-lossy=zfp"]),
    ("fp16 on everything that vdnn-all offloads", ["--strategy=vdnn-all,codec=fp16", "--allow-lossy=fp16"]),
]
PLAIN = [("fp32, keep", ["--strategy=keep"])] + [
    (f"zfp rate {rate} on every activation", [f"--strategy=freelunch,rate={rate}", "--allow-lossy=zfp"]) for rate in (4, 8, 16)]
LAST = 50  # steps whose losses are averaged


def train(program, folder, seed, length, log):
    """Events of a run."""
    subprocess.run([program, "--data", folder / "train", "--evaluate", folder / "test", *length, "--lr", "0.05", "--shuffle", "--seed", str(seed),
                    "--log", log], check=True, stdout=subprocess.DEVNULL)
    return [json.loads(line) for line in log.read_text().splitlines()]


def accuracy(events):
    return [100 * [e for e in events if e["event"] == "evaluate"][-1]["accuracy"]]


def losses(events):
    """Mean of all steps' losses, of the last ones', and accuracy."""
    each = [e["loss"] for e in events if e["event"] == "step"]
    return [sum(each) / len(each), sum(each[-LAST:]) / len(each[-LAST:]), *accuracy(events)]


def table(options, model, plans, length, figures, form):
    """Prints a row a plan with the figures of each seed and their means; returns the means of the last one."""
    seeds, means = range(1, options.seeds + 1), []
    print("| plan | " + " | ".join(f"seed {s}" for s in seeds) + " | mean |")
    print("|---|" + "---|" * (options.seeds + 1))
    with tempfile.TemporaryDirectory() as work:
        for name, flags in plans:
            program, log = f"{work}/digits", pathlib.Path(work) / "log.jsonl"
            subprocess.run([options.sluicec, options.folder / model, "--batch=64", "--init=kaiming", "-o", program, *flags], check=True)
            rows = [figures(train(program, options.folder, seed, length, log)) for seed in seeds]
            rows.append([sum(column) / len(column) for column in zip(*rows)])
            means.append(rows[-1][-1])
            print(f"| {name} | " + " | ".join(form.format(*row) for row in rows) + " |", flush=True)
    return means


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--only", choices=["residual", "plain"])
    options, worst = parser.parse_args(), 0
    if options.only != "plain":
        print("Residual network, accuracy in percent:\n")
        means = table(options, "digits.onnx", RESIDUAL, ["--epochs", str(options.epochs)], accuracy, "{:.2f}")
        worst = max(means[0] - mean for mean in means[1:])
        print(f"\nLargest loss of the mean: {worst:.2f} points.\n")
    if options.only != "residual":
        print(f"Convolutions and ReLUs, mean loss of {options.steps} steps / of the last {LAST} / accuracy in percent:\n")
        table(options, "plain.onnx", PLAIN, ["--steps", str(options.steps)], losses, "{:.4f} / {:.4f} / {:.2f}")
    sys.exit(0 if worst <= 0.5 else 1)


if __name__ == "__main__":
    main()
