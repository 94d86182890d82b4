#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/reproduction from the tables of its pages, beside the papers' figures of the same content.

    tools/bench/reproduction_figures.py docs/reproduction
"""
import pathlib
import re
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "sluice", "svg.fonttype": "none", "font.size": 8})  # the same bytes each time
import matplotlib.pyplot as plt  # noqa: E402


def sections(folder, page):
    """(heading, rows of cells) of every section of a page that has a table; the head of the table is the first row."""
    for part in re.split(r"^##+ ", (folder / f"{page}.md").read_text(), flags=re.M)[1:]:
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
        if rows:
            yield part.splitlines()[0], [row for row in rows if not row[0].startswith("---")]


def number(cell):
    found = re.search(r"-?\d[\d.]*", cell)
    return float(found.group()) if found else None


def plot(axes, xs, cells, **style):
    points = [(x, number(cell)) for x, cell in zip(xs, cells) if x is not None and number(cell) is not None]
    if points:
        axes.plot(*zip(*points), marker=".", linewidth=1, **style)


def save(figure, path):
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def grid(folder, page, draw, labels):
    """One small picture a network."""
    found = [section for section in sections(folder, page) if ", " in section[0]]  # "NETWORK, so many parts"
    figure, axes = plt.subplots(2, -(-len(found) // 2), figsize=(14, 6), layout="constrained")
    for place, (heading, rows) in zip(axes.flat, found):
        draw(place, rows)
        place.set(title=heading.split(",")[0], xlabel=labels[0], ylabel=labels[1])
        place.grid(color="#ddd")
    axes.flat[0].legend()
    save(figure, folder / f"{page}.svg")


def makespans(axes, rows):
    budgets = [number(cell) for cell in rows[0][1:]]
    for row in rows[1:]:
        if row[0] in ("dynprog", "greedy", "vdnn", "autoswap", "tflms"):
            plot(axes, budgets, row[1:], label=row[0])
    axes.axhline(1.2, color="#888", linewidth=0.7)
    axes.set_ylim(0.95, 2.6)


def rates(axes, rows):
    memory = [number(row[0]) for row in rows[1:]]
    for column, name in enumerate(rows[0][1:], 1):
        plot(axes, memory, [row[column] for row in rows[1:]], label=name)


def trade_off(folder):
    found = [(heading, rows) for heading, rows in sections(folder, "11-hascoet") if heading.startswith("vgg19")]
    figure, axes = plt.subplots(1, len(found), figsize=(9, 3.6), layout="constrained")
    for place, (heading, rows) in zip(axes, found):
        for method in dict.fromkeys(row[0] for row in rows[1:]):
            points = sorted((number(row[2]), number(row[3])) for row in rows[1:] if row[0] == method)
            place.plot(*zip(*points), marker=".", linewidth=1, label=method)
        if heading == "vgg19":
            place.plot([35], [21], "k*", label="paper's abstract")
        place.set(title=heading, xlabel="memory saved, %", ylabel="overhead, %")
        place.grid(color="#ddd")
        place.legend()
    save(figure, folder / "11-hascoet.svg")


def growth(folder):
    figure, (seconds, memory) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for kind, rows in sections(folder, "planning-growth"):
        ops = [number(row[1]) for row in rows[1:]]
        for axes, column in ((seconds, 2), (memory, 3)):
            axes.loglog(ops, [number(row[column]) for row in rows[1:]], marker="o", label=kind)
    for axes, unit in ((seconds, "processor seconds"), (memory, "MiB")):
        axes.set(xlabel="ops", ylabel=unit)
        axes.grid(color="#ddd")
        axes.legend()
    save(figure, folder / "planning-growth.svg")


def every_strategy(folder):
    """ResNet-50's step over keep's, by memory: what README opens with. Memory is what keep's activations leave of the arena, and what lives through the step."""
    rows = next(rows for heading, rows in sections(folder, "16-mixed") if heading == "resnet50")
    keep, lives = map(float, re.search(r"^## resnet50\n.*?keep needs (\d+) MiB, of which (\d+) live", (folder / "16-mixed.md").read_text(), re.M | re.S).groups())
    memory = [(lives + number(cell) / 100 * (keep - lives)) / 1024 for cell in rows[0][1:5]] + [keep / 1024]
    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    curves = [row for row in rows[1:] if "over" not in row[0] and any(number(cell) is not None for cell in row[1:5])]  # tflms and gist have no plan at 80 %
    worst = lambda row: tuple(-(number(cell) or 1e3) for cell in row[1:5])  # noqa: E731
    styles = {"mixed": {"color": "black", "linewidth": 2.5, "linestyle": "-"}, "lower bound": {"color": "red", "linestyle": ":", "marker": None, "linewidth": 1.5, "zorder": 3}}
    for colour, row in enumerate(sorted(curves, key=worst)):
        times = [1 + number(cell) / 100 if number(cell) is not None else None for cell in row[1:5]]
        # Where it fits, everything is kept; a strategy that copies whatever there is room for has no point there.
        points = [(m, t) for m, t in zip(memory, [*times, None if row[0] == "vdnn-all" else 1]) if t is not None]
        axes.plot(*zip(*points), **{"label": row[0], "color": f"C{colour % 10}", "linewidth": 1, "marker": ".", "linestyle": "--" if colour > 9 else "-", **styles.get(row[0], {})})
    axes.set_yscale("log")
    axes.set_yticks([1, 1.25, 1.5, 2, 2.5, 3, 3.5], ["1", "1.25", "1.5", "2", "2.5", "3", "3.5"])
    axes.minorticks_off()
    axes.set(xlabel="device memory, GiB", ylabel="time of a step over keeping everything", title="ResNet-50, batch 32, planned for a V100 on PCIe")
    axes.grid(color="#ddd")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    save(figure, folder / "16-mixed.svg")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: reproduction_figures.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    grid(folder, "1-makespan-over-bound", makespans, ("budget, % of the way from least to peak", "makespan / bound"))
    grid(folder, "2-throughput", rates, ("memory, GB", "images a second"))
    trade_off(folder)
    growth(folder)
    every_strategy(folder)


main()
