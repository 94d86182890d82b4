#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what planner-growth prints, or a page that has its table: docs/reproduction/planning-growth.svg.

    build/bin/planner-growth | tools/bench/planning_growth.py FILE.svg
    tools/bench/planning_growth.py FILE.svg < docs/reproduction/planning-growth.md
"""
import re
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "sluice", "svg.fonttype": "none"})  # the same bytes from the same table
import matplotlib.pyplot as plt  # noqa: E402

KINDS = (("networks", "resnet"), ("random graphs", "random graph"), ("chains", "chain of"))


def main():
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d[\d.]*) \| (\d+) \|$", sys.stdin.read(), re.M)
    if not rows:
        sys.exit("planning_growth.py: no row of planner-growth's table on standard input")
    figure, (seconds, memory) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name, prefix in KINDS:
        points = [(int(ops), float(s), int(mib)) for problem, ops, s, mib in rows if problem.startswith(prefix)]
        ops, times, sizes = zip(*points)
        seconds.loglog(ops, times, marker="o", label=name)
        memory.loglog(ops, sizes, marker="o", label=name)
    for axes, unit in ((seconds, "processor seconds"), (memory, "MiB")):
        axes.set(xlabel="ops", ylabel=unit)
        axes.grid(color="#ddd")
        axes.legend()
    figure.savefig(sys.argv[1], metadata={"Date": None})


main()
