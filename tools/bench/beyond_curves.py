#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted time of a step over memory with each of the features of plans alone and with all together, for each model: Markdown lines on stdout, a picture, and the figures, from
which the picture can be drawn again. Needs matplotlib for the picture.

    tools/bench/beyond_curves.py [--device v100-pcie] [--target cuda] [--strategy mixed] [--shares 15,25,40] [--figures FILE] [--svg FILE] MODEL:BATCH:PARTS[:FLAG...] ..

MODEL is a folder below ~/.cache/sluice/models (test/models/make_torchvision.py --export-only, make_gpt2.py), PARTS what --parts takes. Shares are of all that keeping everything on the
device needs, parameters and states among it; times are over keeping everything. Models that the file of figures has are not planned again."""
import argparse
import json
import pathlib

from beyond import plan

HOMES = ["--state-home=auto", "--parameter-home=auto"]
AWAY = ["--state-home=host", "--parameter-home=host"]
CURVES = ("activations", "and parts", "and homes", "everything")


def planned(options, word):
    """Figures of one model: bytes and seconds of keeping everything, the smallest budget of each curve, and each curve's seconds at the shares; none where it has no plan."""
    model, batch, parts, *flags = word.split(":")
    try_ = lambda *more: plan(options, model, [f"--batch={batch}", f"--strategy={options.strategy}", *flags, *more])
    keep = plan(options, model, [f"--batch={batch}", *flags, "--strategy=keep"])[0]
    cut = f"--parts={parts}"
    smallest = {name: try_(*more, "--memory-budget=4096")[1] for name, more in zip(CURVES, ([], [cut], AWAY, [cut, *AWAY]))}
    seconds = {name: [] for name in CURVES}
    for share in options.shares:
        budget = int(keep["keep_arena"] * share / 100)
        for name, more in zip(CURVES, ([], [cut], HOMES, [cut, *HOMES])):
            made = try_(*more, f"--memory-budget={budget}")[0] if budget >= smallest[name] else None
            seconds[name].append(made["seconds"] if made else None)
        ends = [seconds[name][-1] for name in CURVES if seconds[name][-1]]
        seconds["everything"][-1] = min(ends, default=None)
    smallest["everything"] = min(smallest.values())
    return {"bytes": keep["keep_arena"], "seconds": keep["keep_seconds"], "smallest": smallest, "curves": seconds, "shares": options.shares}


def row(word, found):
    model, batch, parts = word.split(":")[:3]
    over = lambda seconds: f"{seconds / found['seconds'] - 1:+.0%}" if seconds else "-"
    ends = [f"{found['smallest'][name] / found['bytes']:.1%}" for name in CURVES]
    cells = [" / ".join(over(found["curves"][name][at]) for name in CURVES) for at in range(len(found["shares"]))]
    return "| " + " | ".join([model, batch, f"{found['bytes'] / 2**20:.0f}", f"`{parts}`", *ends, *cells]).replace("%", " %") + " |"


def chart(path, models):
    """A panel a model: the step's time over keeping everything, upwards, over its share of keep's bytes."""
    import matplotlib
    import matplotlib.pyplot as plt
    matplotlib.rcParams.update({"svg.hashsalt": "sluice", "svg.fonttype": "none"})  # the same bytes from the same figures
    columns = -(-len(models) // 2) if len(models) > 4 else len(models)
    rows = -(-len(models) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3 * columns, 2.7 * rows), layout="constrained", squeeze=False)
    for axis, (word, found) in zip(axes.flat, models.items()):
        for name, style in zip(CURVES, (dict(marker="o"), dict(marker="s"), dict(marker="^"), dict(color="black", marker="D", linewidth=2.5, alpha=0.5))):
            points = [(share, 100 * (seconds / found["seconds"] - 1)) for share, seconds in zip(found["shares"], found["curves"][name]) if seconds]
            axis.plot(*(zip(*points) if points else ([], [])), label=name, markersize=4, **style)
        axis.axvline(100 * found["smallest"]["activations"] / found["bytes"], color="C0", linestyle=":")
        axis.axvline(100 * found["smallest"]["everything"] / found["bytes"], color="black", linestyle=":")
        axis.set(title=f"{word.split(':')[0]}, batch {word.split(':')[1]}", xlim=(0, 100), ylim=(0, None))
        axis.grid(color="#ddd")
    for axis in list(axes.flat)[len(models):]:
        axis.remove()
    figure.supxlabel("memory, % of keeping everything")
    figure.supylabel("step, % longer")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(CURVES))
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--device", default="v100-pcie")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--strategy", default="mixed")
    parser.add_argument("--shares", default="15,25,40,55,70,85", type=lambda words: [float(word) for word in words.split(",")])
    parser.add_argument("--figures", type=pathlib.Path)
    parser.add_argument("--svg")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    known = json.loads(options.figures.read_text()) if options.figures and options.figures.exists() else {}
    print("| model | batch | keep MiB | parts | " + " | ".join(f"smallest: {name}" for name in CURVES) + " | " + " | ".join(f"{share:g} %" for share in options.shares) + " |")
    print("|---" * (8 + len(options.shares)) + "|")
    for word in options.models:
        if word not in known:
            known[word] = planned(options, word)
            if options.figures:
                options.figures.write_text(json.dumps(known, indent=1))
        print(row(word, known[word]), flush=True)
    if options.svg:
        chart(options.svg, {word: known[word] for word in options.models})


if __name__ == "__main__":
    main()
