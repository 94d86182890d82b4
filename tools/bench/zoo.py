#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports many models with random weights by both exporters of PyTorch, compiles each, and says which ones compile and why the others do not.

    zoo.py --work DIR [--sluicec build/bin/sluicec] [--only REGEX] [--exporters torchscript,dynamo] [--again REGEX] [--keep] [--table FILE]
    zoo.py --work DIR --budget 20%,20%act   what budgets come to for each model instead, by the first exporter that takes it (zoo_budgets.py)
    zoo.py --work DIR --train      the sample that is trained for three steps beside PyTorch instead
    zoo.py --work DIR --refusals   what has been refused so far, by op and reason, most models first

The models are those of tools/bench/zoo_models.py; the exports are what README.md tells users: `torchscript` in training mode with a dynamic batch,
`dynamo` with optimize=False. Verdicts are lines of DIR/verdicts.jsonl (trained.jsonl): a run goes on where the one before ended, --again forgets
verdicts first. --table writes what docs/results/zoo.md holds. Exported files go once they have a verdict; --keep keeps those of what failed.
Needs the Python environment of tools/setup.sh --references, which has timm and transformers. --threads 1 by default; each command has a limit of time and memory."""
import argparse
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/models"))
import zoo_budgets  # noqa: E402
import zoo_models  # noqa: E402
import zoo_table  # noqa: E402
import zoo_train  # noqa: E402
from reference import export, split  # noqa: E402
from zoo_limits import in_child, outcome, run_limited  # noqa: E402

ANY = "any"  # the exporter of a row that takes the first one that works


def write_model(model, exporter, path, dynamic):
    torch.manual_seed(1)
    made = model.make()
    x, _ = model.data(2, 1)
    warnings.simplefilter("ignore")
    export(made, split(x, 2)[0] if isinstance(x, dict) else x, path, opset=None, dynamo=exporter == "dynamo", dynamic=dynamic)


def exported(options, model, exporter):
    """The path of an exported model, how to compile it, and the verdict's row, which has a verdict already where nothing was exported."""
    path = options.work / f"{model.name.replace('/', '-')}-{exporter}.onnx"
    begin = time.monotonic()
    row = {"model": model.name, "exporter": exporter, "family": model.family}
    ways = [True, False] if exporter == "torchscript" else [False]  # whether the batch is dynamic
    words = []
    for dynamic in ways:
        if not (word := in_child(lambda: write_model(model, exporter, path, dynamic))):
            break
        words.append(word)
        path.unlink(missing_ok=True)
    row["dynamic"] = dynamic
    if len(words) == len(ways):
        return path, [], row | {"verdict": "export fails", "errors": words[-1:], "export_seconds": time.monotonic() - begin}
    row |= {"export_seconds": time.monotonic() - begin, "bytes": path.stat().st_size}
    return path, [options.sluicec, path, f"--loss={model.loss}", *(["--batch=2"] if dynamic else [])], row


def judge(options, model, exporter):
    """The verdict of one export, as a dict."""
    path, flags, row = exported(options, model, exporter)
    if "verdict" in row:
        return row
    status, seconds, peak, error = run_limited(options, [*flags, "--check"])
    row |= {"check": outcome(status), "check_seconds": seconds}
    if status == 0:
        status, seconds, peak, error = run_limited(options, [*flags, "--emit=placed"])
    row |= {"verdict": outcome(status), "seconds": seconds, "peak": peak, "errors": zoo_table.errors_of(error) if status != 0 else []}
    if status == 0 or not options.keep:
        path.unlink()
    return row


def judge_budget(options, model, _):
    """What a budget comes to for the first export of a model that there is."""
    for exporter in ("torchscript", "dynamo"):
        path, flags, row = exported(options, model, exporter)
        if "verdict" not in row:
            row = zoo_budgets.judge(options, flags, row)
            path.unlink()
            if "budgets" in row:
                break
    return row | {"exporter": ANY, "exported_by": row["exporter"]}


def known(path):
    rows = {}
    if path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            rows[row["model"], row["exporter"]] = row  # the last word counts
    return rows


def versions():
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("torch", "torchvision", "timm", "transformers", "onnx", "onnxscript"))


def commit():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent).stdout.strip()


def work_through(options, models, rows, path, judged):
    """Judges what has no verdict yet, a line of the file each."""
    wanted = [(model, exporter) for model in models for exporter in options.exporters.split(",")
              if re.search(options.only, model.name) and ((model.name, exporter) not in rows or options.again and re.search(options.again, model.name))]
    for i, (model, exporter) in enumerate(wanted):
        row = judged(options, model, exporter) | {"commit": commit()}
        rows[model.name, exporter] = row
        with open(path, "a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"[{i + 1}/{len(wanted)}] {model.name} {exporter}: {row['verdict']}"
              f" ({row.get('export_seconds', 0):.0f} + {row.get('seconds', 0):.1f} s){''.join(': ' + error[:200] for error in row['errors'][:1])}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder of exported files and verdicts")
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--only", default="", help="regular expression of model names")
    parser.add_argument("--again", help="regular expression of model names whose verdicts are taken anew")
    parser.add_argument("--exporters", default="torchscript,dynamo")
    parser.add_argument("--keep", action="store_true", help="keep the exported files of what does not compile")
    parser.add_argument("--train", action="store_true", help="train the sample beside PyTorch")
    parser.add_argument("--budget", help="compile with each of these --memory-budget instead")
    parser.add_argument("--refusals", action="store_true", help="print what has been refused")
    parser.add_argument("--table", type=pathlib.Path, help="write the verdicts as Markdown")
    parser.add_argument("--seconds", type=int, default=120, help="limit of one command of sluicec")
    parser.add_argument("--memory", type=int, default=8, help="limit of its address space in GiB")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    os.environ.setdefault("SLUICE_DEVICE", "host")
    models = zoo_models.models()
    verdicts, trained = options.work / "verdicts.jsonl", options.work / "trained.jsonl"
    rows, trained_rows = known(verdicts), known(trained)
    budgets = options.work / "budgets.jsonl"
    if options.refusals:
        print(zoo_table.refusals(rows))
    elif options.budget and options.table:
        options.table.write_text(zoo_budgets.page(options.budget, versions(), models, known(budgets)))
    elif options.budget:
        options.exporters = ANY
        work_through(options, models, known(budgets), budgets, judge_budget)
    elif options.table:
        options.table.write_text(zoo_table.page(versions(), models, rows, trained_rows))
    elif options.train:
        work_through(options, [model for model in models if model.trains], trained_rows, trained, zoo_train.judge)
    else:
        work_through(options, models, rows, verdicts, judge)


if __name__ == "__main__":
    main()
