#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every published strategy as a program that runs on the host, against keep, as a Markdown table on stdout. Standard library only.

    tools/bench/published_runs.py [--sluicec build/bin/sluicec] [--batch 8] [--rounds 5] [--strategies 'a;b,k=v'] [--out DIR] NAME...

NAME.onnx lies in test/models/papers. A strategy's own budget: none where it acts without one, as its paper has it, else the smallest that it can
plan for. Each round runs keep and the program, in turn first, four steps of the same synthetic batches each. A run's seconds are those of its fastest step
after the first: other work on the machine makes steps slower, never faster. Rounds give ratios of the two, of which the median, the least and the largest
are shown, and the median of the program's and of keep's seconds. Losses are compared as they are printed, in full: `equal`, or how far any is at most.
Results so far are in DIR/NAME.json; a second call goes on there."""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/models"))
from matrix import without_plan  # noqa: E402
STEPS = 4
# As `sluice-plan --help` lists them, without keep and without ours (mixed, auto), but with what papers have in variants.
STRATEGIES = ("greedy;dynprog;vdnn;vdnn-all;vdnn-conv;vdnn-aconv;vdnn-dyn;vdnnpp;autoswap;tflms;superneurons;hascoet;freelunch;"
              "gist;capuchin;dtr;chen;rotor;pofo;checkmate,relaxed=1000;mixed")


class Refused(Exception):
    pass


class Model:
    def __init__(self, name, options):
        self.name, self.options = name, options
        self.path = ROOT / "test/models/papers" / f"{name}.onnx"
        self.folder = options.out / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.placed = without_plan(self.program("keep", [])[0])
        self.keep = self.binary("keep", None, [])

    def sluicec(self, strategy, budget, lossy, *flags):
        return subprocess.run([str(part) for part in (
            self.options.sluicec, self.path, f"--batch={self.options.batch}", f"--threads={self.options.threads}", "--init=kaiming", "--device=host",
            "--force", f"--strategy={strategy}", *([f"--memory-budget={budget}", "--host-budget=unlimited"] if budget else []),
            *(["--allow-lossy=" + ",".join(lossy)] if lossy else []), *flags)], capture_output=True, text=True)

    def program(self, strategy, lossy):
        """(placed program, what it may round) without a budget; raises Refused with the compiler's reason."""
        while True:
            done = self.sluicec(strategy, None, lossy, "--emit=placed")
            named = re.search(r"--allow-lossy=([a-z0-9,]+)", done.stderr) if done.returncode == 2 else None
            if named and not set(named[1].split(",")) <= set(lossy):
                lossy = lossy + [action for action in named[1].split(",") if action not in lossy]
                continue
            if done.returncode:
                raise Refused(done.stderr.strip())
            return done.stdout, lossy

    def binary(self, strategy, budget, lossy):
        path = self.folder / re.sub(r"\W", "-", strategy)
        done = self.sluicec(strategy, budget, lossy, "-o", path)
        if done.returncode:
            raise Refused(done.stderr.strip())
        return path

    def own_budget(self, strategy):
        """(binary, budget in bytes or None, what it may round)."""
        program, lossy = self.program(strategy, [])
        if without_plan(program) != self.placed:
            return self.binary(strategy, None, lossy), None, lossy
        refusal = self.sluicec(strategy, 1, lossy, "--emit=placed")
        found = re.search(r"smallest feasible budget: (\d+)", refusal.stderr)
        if not found:
            raise Refused(refusal.stderr.strip())
        return self.binary(strategy, int(found[1]), lossy), int(found[1]), lossy

    def predicted(self, strategy, budget, lossy):
        """Seconds of a step over keep's."""
        plan = self.sluicec(strategy, budget, lossy, "--emit=placed").stdout
        own, keep = (float(re.search(rf"\b{key} = ([-+0-9.Ee]+)", plan[plan.index("#train.plan<"):])[1]) for key in ("seconds", "keep_seconds"))
        return own / keep

    def run(self, binary):
        log = self.folder / "log.jsonl"
        subprocess.run([str(binary), "--data", "synthetic", "--steps", str(STEPS), "--seed", "7", "--lr", "0.0001", "--momentum", "0.9",
                        "--threads", str(self.options.threads), "--log", str(log)], check=True, stdout=subprocess.DEVNULL)
        text = log.read_text()
        events = [json.loads(line) for line in text.splitlines()]
        end = next(event for event in events if event["event"] == "end")
        return {"losses": re.findall(r'"event":"step".*?"loss":([^,}]*)', text), "device": end["device_peak_bytes"], "host": end["host_peak_bytes"],
                "seconds": min(event["ms"] for event in events if event["event"] == "step" and event["step"] > 1) / 1e3}

    def measure(self, strategy):
        try:
            binary, budget, lossy = self.own_budget(strategy)
        except Refused as reason:
            return {"refused": str(reason).replace("\n", " ")}
        runs = {self.keep: [], binary: []}
        for number in range(self.options.rounds):
            for which in (list(runs) if number % 2 == 0 else list(runs)[::-1]):
                runs[which].append(self.run(which))
        assert all(run["losses"] == found[0]["losses"] for found in runs.values() for run in found), f"{strategy}: runs of one program differ"
        keep, own = runs[self.keep][0], runs[binary][0]
        for file in self.folder.glob(binary.name + "*"):
            file.unlink()
        away = [abs(float(a) - float(b)) / abs(float(b)) for a, b in zip(own["losses"], keep["losses"])]
        return {"budget": budget, "lossy": lossy, "predicted": self.predicted(strategy, budget, lossy), "device": own["device"], "host": own["host"], "keep_device": keep["device"],
                "seconds": [run["seconds"] for run in runs[binary]], "keep_seconds": [run["seconds"] for run in runs[self.keep]],
                "equal": own["losses"] == keep["losses"], "away": max(away)}


def row(strategy, found):
    if "refused" in found:
        return f"| {strategy} | refused: {found['refused'].split('error: ')[-1][:160]} | | | | | | | | |"
    budget = "smallest" if found["budget"] else "none"
    losses = "equal" if found["equal"] else f"{found['away']:.1e} off"
    may = f" ({', '.join(found['lossy'])})" if found["lossy"] else ""
    ratios = [own / keep for own, keep in zip(found["seconds"], found["keep_seconds"])]
    return (f"| {strategy}{may} | {budget} | {found['device']:,} | {found['device'] / found['keep_device']:.1%} | {found['host']:,} | "
            f"{found['predicted']:.2f} | {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | "
            f"{statistics.median(found['seconds']):.2f} | {statistics.median(found['keep_seconds']):.2f} | {losses} |").replace("%", " %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluicec", default=ROOT / "build/bin/sluicec", type=pathlib.Path)
    parser.add_argument("--out", default=ROOT / "build/published", type=pathlib.Path)
    for flag, value in (("--batch", 8), ("--rounds", 5), ("--threads", os.cpu_count())):
        parser.add_argument(flag, type=int, default=value)
    parser.add_argument("--strategies", default=STRATEGIES)
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    for name in options.names:
        results = options.out / f"{name}.json"
        found = json.loads(results.read_text()) if results.exists() else {}
        missing = [strategy for strategy in options.strategies.split(";") if strategy not in found]
        model = Model(name, options) if missing else None
        for strategy in missing:
            found[strategy] = model.measure(strategy)
            results.parent.mkdir(parents=True, exist_ok=True)
            results.write_text(json.dumps(found, indent=1))
            print(row(strategy, found[strategy]), file=sys.stderr, flush=True)
        measured = [cell for cell in found.values() if "seconds" in cell]
        print(f"\n## {name}, batch {options.batch}\n\nkeep: {measured[0]['keep_device']:,} bytes, "
              f"{statistics.median(seconds for cell in measured for seconds in cell['keep_seconds']):.3f} s a step.\n\n"
              "| strategy (what it may round) | budget | device bytes | of keep | host bytes | predicted, of keep | measured | s a step | keep beside it | losses |\n"
              "|---|---|---|---|---|---|---|---|---|---|")
        print("\n".join(row(strategy, found[strategy]) for strategy in options.strategies.split(";")))


main()
