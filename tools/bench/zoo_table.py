# SPDX-License-Identifier: Apache-2.0
"""What the verdicts of tools/bench/zoo.py come to: reasons grouped by op, and the page docs/results/zoo.md."""
import collections
import re

NODE = re.compile(r"node '(?P<node>.*?)' \((?P<op>[\w.]+), opset \d+\)(?P<rest>.*)", re.S)


def errors_of(text):
    """What sluicec said, without the names of files: the error, or the note of each group of refused nodes."""
    lines = [line.split("sluicec: ", 1)[1] for line in text.splitlines() if line.startswith("sluicec: ")]
    lines = [re.sub(r"^(error|note): (?:\S*\.onnx: )?", "", line) for line in lines]
    groups = [line for line in lines if NODE.match(line)]
    return groups or lines or [text.strip()[-400:]]


def reason_of(error):
    """Op and reason, without names and numbers: equal where the cause is."""
    match = NODE.match(error)
    if not match:
        return "-", re.sub(r"\d+", "N", re.sub(r"'[^']*'", "'..'", error))
    rest = re.sub(r"^ and \d+ more", "", match["rest"])
    rest = re.sub(r"^[^:]*: ", "", rest) if ": " in rest else rest
    return match["op"], re.sub(r"\d+", "N", re.sub(r"'[^']*'", "'..'", rest))


def grouped(rows):
    """(reason, exports, how many of them it alone stops, an example), what stops the most exports first."""
    models, example, alone = collections.defaultdict(set), {}, collections.Counter()
    for row in rows.values():
        if row["verdict"] == "compiles":
            continue
        reasons = {(row["verdict"], *reason_of(error)): error for error in row["errors"] or ["?"]}
        for reason, error in reasons.items():
            models[reason].add(f"{row['model']}:{row['exporter'][:1]}")
            example.setdefault(reason, f"{row['model']}, {row['exporter']}: {error}")
            alone[reason] += len(reasons) == 1
    return [(reason, sorted(models[reason]), alone[reason], example[reason])
            for reason in sorted(models, key=lambda reason: (-len(models[reason]), reason))]


def refusals(rows):
    """The same as text, with the models' names."""
    return "\n".join(f"## {len(names)} exports, {alone} of them for nothing else ({verdict}): {op}: {why}\n\nfirst: {example}\n\nmodels: {' '.join(names)}\n"
                     for (verdict, op, why), names, alone, example in grouped(rows))


def machine():
    """Processor and the widest vectors that it has."""
    with open("/proc/cpuinfo") as file:
        words = dict(line.split(":", 1) for line in file.read().split("\n\n")[0].splitlines() if ":" in line)
    words = {key.strip(): value.strip() for key, value in words.items()}
    flags = words["flags"].split()
    vectors = next((name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in flags), "SSE")
    return f"{words['model name']} ({vectors})"


def cell(text):
    return text.replace("|", "\\|").replace("<", "\\<")


def shown(row):
    """A verdict as the table says it: what compiles by its seconds and MiB, else the first reason."""
    if row is None:
        return "not run"
    if row["verdict"] == "compiles":
        return f"compiles ({row['seconds']:.1f} s, {row['peak'] / 2**20:.0f} MiB)"
    more = f"; {len(row['errors']) - 1} more reasons" if len(row["errors"]) > 1 else ""
    first = row["errors"][0] if row["errors"] else ""
    return cell(f"**{row['verdict']}**: {first[:240]}{'...' if len(first) > 240 else ''}{more}")


def counts(models, rows, exporters):
    """A line for each family and one for all: how many compile of those that were exported, and how many PyTorch could not export."""
    lines = []
    for family in [*dict.fromkeys(model.family for model in models), "all"]:
        names = [model.name for model in models if family in (model.family, "all")]
        cells = []
        for exporter in exporters:
            verdicts = [rows[name, exporter]["verdict"] for name in names if (name, exporter) in rows]
            failed, good = verdicts.count("export fails"), verdicts.count("compiles")
            exported = len(verdicts) - failed
            missing = (f", {failed} not exported" if failed else "") + (f", {len(names) - len(verdicts)} not run" if len(verdicts) < len(names) else "")
            cells.append((f"{good} of {exported} ({good / exported:.0%})" if exported else "-") + missing)
        lines.append(f"| {family} | {len(names)} | {' | '.join(cells)} |")
    return lines


def trained_lines(models, rows):
    lines = []
    for model in models:
        for exporter in ("torchscript", "dynamo"):
            if row := rows.get((model.name, exporter)):
                number = lambda key: f"{row[key]:.1e}" if key in row else "-"
                lines.append(f"| {model.name} | {exporter} | {row['verdict']} | {number('loss_error')} of {number('loss_limit')} | {number('whole_gradient_error')} |"
                             f" {number('gradient_error')} of {number('gradient_limit')} | {cell(''.join(row['errors'][:1])[:200])} |")
    return lines


def commits(rows):
    """What each commit judged: a run goes on where another ended, and nothing is judged again unasked."""
    counted = collections.Counter(row["commit"] for row in rows.values())
    return ", ".join(f"{commit} ({count})" for commit, count in counted.most_common())


def page(versions, models, rows, trained):
    """docs/results/zoo.md."""
    exporters = ["torchscript", "dynamo"]
    noisy = sum(row["verdict"] == "within PyTorch's noise" for row in trained.values())
    agree = sum(row["verdict"] == "agrees" for row in trained.values())
    lines = ["# Zoo", "",
             f"{len(models)} models with random weights, exported by both exporters of PyTorch as the README says, and compiled to a placed program (`--check`, then",
             "`--emit=placed`, all else as without flags) for a batch of 2. `torchscript`: `dynamo=False`, training mode, `do_constant_folding=False`, dynamic batch;",
             "`dynamo`: `dynamo=True, optimize=False`. timm and transformers serve this bench only; no test needs them. Every family of torchvision that classifies, segments or",
             "takes video is in, which the script checks; detection and optical flow are not.", "",
             f"{machine()}, one core; {versions}. Commits, and how many exports each judged: {commits(rows)}.", "",
             "    tools/bench/zoo.py --work DIR", "    tools/bench/zoo.py --work DIR --train", "    tools/bench/zoo.py --work DIR --table docs/results/zoo.md", "",
             "| family | models | torchscript compiles | dynamo compiles |", "|---|---|---|---|", *counts(models, rows, exporters), "",
             "## Models", "", "Seconds and memory are of sluicec.", "", "| model | torchscript | dynamo |", "|---|---|---|"]
    lines += [f"| {model.name} | {' | '.join(shown(rows.get((model.name, exporter))) for exporter in exporters)} |" for model in models]
    lines += ["", "## Why not", "", "Exports that a reason stops, and how many of them it alone stops.", "", "| exports | alone | op | reason |", "|---|---|---|---|"]
    lines += [f"| {len(names)} | {alone} | {op} | {verdict}: {cell(why[:200])} |" for (verdict, op, why), names, alone, _ in grouped(rows)]
    lines += ["", "## Trained beside PyTorch", "",
              "Three steps of SGD from given data (batch 4, no momentum, nothing dropped), host target. A model agrees where all losses are within 2e-3 of PyTorch's and",
              "the whole first gradient within 1e-2 in norm. Else its losses and each gradient may be within four times what PyTorch itself moves when its weights carry",
              "a relative noise of 1e-6, which says little where that is much: few values at the last BatchNorms make networks that sensitive.", "",
              f"Commits, and how many each judged: {commits(trained)}.", "",
              f"{agree} of {len(trained)} agree, {noisy} more are within PyTorch's noise.", "", "| model | exporter | verdict | losses of limit | whole gradient | worst gradient of limit | |", "|---|---|---|---|---|---|---|"]
    return "\n".join(lines + trained_lines(models, trained)) + "\n"
