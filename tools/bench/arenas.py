#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arenas of one compiler's programs beside those of another, of an older commit, say: nothing may grow unnoticed.

    tools/bench/arenas.py --old SLUICEC [--new build/bin/sluicec] [--targets host,cuda] [--plans 'keep;vdnn-all;auto:60%act'] NAME=MODEL.onnx:BATCH...

A plan is a strategy, or a strategy, a colon and a budget. Prints a line a cell: the arenas of the step's placed program, by name, and the predicted time of a step over keep's, of both
compilers where they differ. Exit status 1 where the arenas of a plan without a budget are larger together than the old compiler's, where one within a budget is predicted to be slower, over the same
compiler's keep, by more than a thousandth, and where the new compiler refuses what the old one planned: what a search does with its budget may differ, what comes of it may not be worse."""
import argparse
import itertools
import re
import subprocess
import sys


def arenas(sluicec, model, batch, target, plan):
    """(bytes by the arenas' names, predicted seconds of a step); None where the compiler refuses the budget."""
    strategy, _, budget = plan.partition(":")
    words = [sluicec, model, f"--batch={batch}", "--init=kaiming", "--threads=2", "--dropout=keep", f"--target={target}", "--host-budget=unlimited", f"--strategy={strategy}",
             "--allow-lossy=zfp,fp16,invert", "--emit=placed", *([f"--memory-budget={budget}"] if budget else [])]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if run.returncode == 3:
        return None
    if run.returncode:
        sys.exit(f"arenas: {' '.join(map(str, words))}: {run.stderr}")
    line = re.search(r"sched\.program @step ([^{\n]*)", run.stdout)[1]
    sizes = {name: int(size) for name, size in re.findall(r"(\w+)\((\d+)\)", line) if name not in ("base", "pool", "computes")}
    return sizes, float(re.search(r"#train\.plan<.*?\bseconds = ([-+0-9.Ee]+)", run.stdout, re.S)[1])


def words(planned, keep):
    return ", ".join(f"{name} {size:,}" for name, size in planned[0].items()) + f", {planned[1] / keep:.4f} of keep's time" if planned else "refused"


def worse(old, new, keep, budget):
    if old is None or new is None:
        return old is not None
    return new[1] / keep["new"] > 1.001 * old[1] / keep["old"] if budget else sum(new[0].values()) > sum(old[0].values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", default="build/bin/sluicec")
    parser.add_argument("--targets", default="host,cuda")
    parser.add_argument("--plans", default="keep;vdnn-all;chen:60%act;mixed:60%act")
    parser.add_argument("networks", nargs="+")
    options = parser.parse_args()
    compilers, count = {"old": options.old, "new": options.new}, {"equal": 0, "not worse": 0, "WORSE": 0}
    for network, target in itertools.product(options.networks, options.targets.split(",")):
        name, rest = network.split("=")
        plan_of = lambda which, plan: arenas(compilers[which], *rest.rsplit(":", 1), target, plan)
        keep = {which: plan_of(which, "keep")[1] for which in compilers}
        for plan in options.plans.split(";"):
            old, new = (plan_of(which, plan) for which in compilers)
            text = {which: words(planned, keep[which]) for which, planned in (("old", old), ("new", new))}
            verdict = "WORSE" if worse(old, new, keep, ":" in plan) else "equal" if text["old"] == text["new"] else "not worse"
            count[verdict] += 1
            print(f"{name} {target} {plan}: " + (text["new"] if verdict == "equal" else f"old {text['old']}; new {text['new']}; {verdict}"), flush=True)
    print("arenas: " + ", ".join(f"{number} {verdict}" for verdict, number in count.items()))
    sys.exit(bool(count["WORSE"]))


main()
