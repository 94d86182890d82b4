#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what sluicec predicts of a step on 1 to 1,024 ranks (--ranks=N --interconnect=NAME), and prints it as a table.

    tools/bench/cluster_curve.py OUT.svg MODEL.onnx FLAG... -- INTERCONNECT...     (with ~/.cache/sluice/venv/bin/python, for matplotlib)

A curve is the share of linear scaling: the time of a step of one rank beside that of a step of so many. Nothing of it is measured."""
import pathlib
import re
import subprocess
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "sluice"
import matplotlib.pyplot as plt  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def predict(words, interconnect):
    said = subprocess.run([ROOT / "build/bin/sluicec", *words, "--ranks=1024", f"--interconnect={interconnect}"], check=True, capture_output=True, text=True).stdout
    rows = re.findall(r"^ *(\d+) +([\d.]+) +([\d.]+) +([\d.]+)% +([\d.]+)% +(\d+)  (.*)$", said, re.M)
    return [(int(row[0]), float(row[1]), float(row[2]), float(row[3]), float(row[4]), int(row[5]), row[6]) for row in rows]


def main():
    out, *words = sys.argv[1:]
    cut = words.index("--")
    flags, interconnects = words[:cut], words[cut + 1:]
    plt.figure(figsize=(7, 4))
    print("| between ranks | ranks | step, ms | messages, ms | not hidden | of linear | limited by |\n|---|---|---|---|---|---|---|")
    for interconnect in interconnects:
        rows = predict(flags, interconnect)
        plt.plot([row[0] for row in rows], [row[4] for row in rows], marker=".", label=interconnect)
        for row in rows:
            if row[0] in (2, 8, 64, 256, 1024):
                print(f"| {interconnect} | {row[0]} | {row[1]:.1f} | {row[2]:.1f} | {row[3]:.1f} % | {row[4]:.1f} % | {row[6]} |")
    plt.xscale("log", base=2)
    plt.xlabel("ranks")
    plt.ylabel("% of linear scaling, predicted")
    plt.ylim(0, 105)
    plt.grid(alpha=0.3)
    plt.legend()
    plt.tight_layout()
    plt.savefig(out, metadata={"Date": None})


main()
