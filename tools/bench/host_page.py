# SPDX-License-Identifier: Apache-2.0
"""The page of host.py's results: tables, and a plot of ratios beside it."""
import math
import statistics

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "sluice", "svg.fonttype": "none", "font.size": 8})  # the same bytes each time
import matplotlib.pyplot as plt  # noqa: E402

from host_models import NETS  # noqa: E402
from host_torch import MODES  # noqa: E402


def best_mode(row, precision):
    """The mode of PyTorch that took the least time; None where all failed."""
    return min((mode for mode in MODES[precision] if mode in row["contenders"]), key=lambda mode: row["contenders"][mode]["seconds"], default=None)


def ratio(row, precision):
    """Sluice's time over PyTorch's best of that precision; None where one is missing."""
    ours, best = row["contenders"].get(f"sluice {precision}"), best_mode(row, precision)
    return ours["seconds"] / row["contenders"][best]["seconds"] if ours and best else None


def mean(ratios):
    """Geometric."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def shown(value, form):
    return "-" if value is None else format(value, form)


def seconds(row, contender):
    return shown(row["contenders"].get(contender, {}).get("seconds"), ".3f")


def best_text(row, precision):
    best = best_mode(row, precision)
    return f"{seconds(row, best)} ({best})" if best else "-"


def mebibytes(row, contender):
    found = row["contenders"].get(contender)
    return f"{found['resident'] / 2**20:,.0f}" if found else "-"


def ratios_table(rows):
    lines = [[f"{row['title']}, batch {row['batch']}"] + [cell for precision in MODES for cell in (
        seconds(row, f"sluice {precision}"), best_text(row, precision), shown(ratio(row, precision), ".2f"))] for row in rows]
    means = []
    for precision in MODES:
        found = [value for row in rows if (value := ratio(row, precision))]
        means += ["", f"geometric mean of {len(found)}", shown(mean(found) if found else None, ".2f")]
    head = ["model"] + [cell for precision in MODES for cell in (f"Sluice {precision}, s", f"PyTorch's best {precision}, s", "ratio")]
    return table(head, lines + [["all", *means]])


def memory_table(rows):
    def predicted(row, precision):
        ours = row["contenders"].get(f"sluice {precision}")
        return shown(ours and ours["predicted"] / ours["seconds"], ".2f")
    return table(["model", *(f"predicted over measured, {precision}" for precision in MODES), *(f"{who}, {precision}" for precision in MODES for who in ("Sluice", "PyTorch's best"))],
                 [[row["title"], *(predicted(row, precision) for precision in MODES),
                   *(mebibytes(row, who) for precision in MODES for who in (f"sluice {precision}", best_mode(row, precision)))] for row in rows])


def modes_table(rows):
    modes = [mode for precision in MODES.values() for mode in precision]
    return table(["model", *modes], [[row["title"], *("fails" if mode in row["failed"] else seconds(row, mode) for mode in modes)] for row in rows])


def plot(path, rows):
    figure, axes = plt.subplots(figsize=(8, 0.8 + 0.34 * len(rows)), layout="constrained")
    for offset, (precision, colour) in zip((-0.2, 0.2), (("fp32", "#4472a8"), ("bf16", "#d08a3c"))):
        axes.barh([i + offset for i in range(len(rows))], [ratio(row, precision) or 0 for row in rows], 0.38, label=precision, color=colour)
    axes.axvline(1, color="#444", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [row["title"] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("Sluice's step over the step of PyTorch's best mode of the same precision; less is faster")
    axes.grid(axis="x", color="#ddd")
    axes.set_axisbelow(True)
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def of_all(rows, key):
    """What rows say, each once, in the order of the rows."""
    return "; ".join(dict.fromkeys(str(key(row)) for row in rows))


def write_page(path, rows, note):
    if not rows:
        raise SystemExit("host.py: nothing has been measured yet")
    plot(path.with_suffix(".svg"), rows)
    path.write_text(f"""# Training steps on a processor, beside PyTorch

Processor: {of_all(rows, lambda row: row['processor'])}; instructions: {of_all(rows, lambda row: ', '.join(row['instructions']))}; threads: {of_all(rows, lambda row: row['threads'])}.
Versions: {of_all(rows, lambda row: row['sluicec'])}; commit {of_all(rows, lambda row: row['commit'])}; PyTorch {of_all(rows, lambda row: row['torch'])}.
Real-time priority while steps are measured: {of_all(rows, lambda row: 'yes' if row['realtime'] else 'no')}.

    tools/bench/host.py
    tools/bench/host.py --page {path}

{len(rows)} of {len(NETS)} models have been measured so far. SGD with momentum, 1000 classes and images of 224x224 unless a title says otherwise, no dropout, `--strategy=keep`. Each number is
a median over {of_all(rows, lambda row: row['rounds'])} rounds of each round's median of {of_all(rows, lambda row: row['steps'])} steps; rounds alternate between all contenders. In `bf16` Sluice is compiled with `--precision=bf16`, PyTorch runs in autocast. PyTorch's
modes but eager have images in channels_last. A ratio below 1: Sluice is faster.{note and chr(10) + chr(10) + note}

![ratios]({path.with_suffix(".svg").name})

{ratios_table(rows)}
## Predictions and memory

What `sluicec` predicted of a step over what it took, and resident MiB of the processes at most while steps ran, libraries included: a process that has
imported PyTorch and done nothing has {statistics.median(row['imported'] for row in rows) / 2**20:,.0f} MiB.

{memory_table(rows)}
## All modes of PyTorch, seconds a step

`-`: not measured.

{modes_table(rows)}""")
