#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real training on this processor under an error budget's choice of codec and rate per tensor, beside the fastest plan of one codec within the same memory and error budget and
beside keep: overhead as planned and as measured, loss, accuracy, as Markdown on stdout.

    tools/bench/rate_decision.py FOLDER NAME=MODEL.onnx:BATCH:BUDGET:RATE... [--limits 3e-3,1e-2] [--steps 400] [--seeds 2] [--rounds 4] [--only errors|plans]
        [--storage FILE [--under COMMAND]]

Errors are measured first, by keep's program of --error-batch samples after --steps (FOLDER/NAME.json keeps them). Plans are those of error_budget.py, for this machine as it was calibrated,
which must be idle. Data are crops of photographs in FOLDER/train and FOLDER/test (photo_crops.py). Programs take turns: each trains a part of its steps and goes on from its checkpoint
in the next round; a figure of time is the median over all steps of all seeds, a loss the mean of the last tenth. With
--storage what is offloaded goes to that file instead of memory, and the plan of exact actions is trained, too; plans but keep's then run under COMMAND, such as one that bounds the memory that they and what the
system remembers of their files may take, without which such a file is memory. Needs the environment of tools/setup.sh --references for nothing but the data."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from error_budget import SINGLE, command, measured, planned

MIXED = "--strategy=mixed,takeover=0"


def train(options, program, rate, seed, steps, *flags):
    away = [] if not options.storage or program.name == "keep" else ["--offload-to", options.storage]
    under = options.under.split() if away else []
    subprocess.run([*under, program, *away, "--data", options.folder / "train", "--steps", str(steps), "--lr", rate, "--momentum", "0.9", "--warmup", str(options.steps // 10), "--shuffle",
                    "--seed", str(seed), "--quiet", "--force", *flags], check=True, stdout=subprocess.DEVNULL)


def events(log, kind):
    return [event for event in map(json.loads, log.read_text().splitlines()) if event["event"] == kind]


def compiled(options, network, flags, profile, program):
    subprocess.run(command(options, None, network, "fp32", ["--force", *flags, "-o", program], profile), check=True, stdout=subprocess.DEVNULL)


def choices(options, network, limit, profile):
    """{name: (flags, planned overhead, error, codecs)} of the fastest plan of one codec and of a codec a tensor."""
    flags = {codec: [MIXED, f"--error-budget={limit}", *([f"--allow-lossy={codec}"] if codec else [])] for codec in (*SINGLE, "")}
    plans = {codec: planned(options, None, network, "fp32", words, profile) for codec, words in flags.items()}
    best = min((codec for codec in SINGLE if plans[codec]), key=lambda codec: plans[codec][0])
    return {words: (flags[codec], *plans[codec]) for words, codec in ((f"{best} alone, {limit}", best), (f"a codec a tensor, {limit}", "")) if plans[codec]}


def trained(options, programs, rate, folder):
    """{name: (seconds of all steps, losses of each seed, accuracies of each seed)}"""
    results = {name: ([], [], []) for name in programs}
    for seed in range(1, options.seeds + 1):
        losses = {name: [] for name in programs}
        for turn in range(1, options.rounds + 1):
            for at, (name, program) in enumerate(programs.items()):
                log, saved = folder / "log.jsonl", folder / f"saved-{at}"
                more = ["--resume", saved] if turn > 1 else []
                last = turn == options.rounds
                train(options, program, rate, seed, options.steps * turn // options.rounds, *more, "--checkpoint", saved, "--log", log, *(["--evaluate", options.folder / "test"] if last else []))
                steps = events(log, "step")
                results[name][0].extend(step["ms"] / 1e3 for step in steps[2:])
                losses[name].extend(step["loss"] for step in steps)
                if last:
                    results[name][1].append(statistics.mean(losses[name][-options.steps // 10:]))
                    results[name][2].append(100 * events(log, "evaluate")[-1]["accuracy"])
                print(f"{name}, seed {seed}, turn {turn}: loss {losses[name][-1]:.4f}, {1e3 * statistics.median(results[name][0]):.0f} ms", file=sys.stderr, flush=True)
    return results


def overhead_of(plan):
    _, overhead, error, codecs, _ = plan
    return f"{overhead:.2f} % planned, error {error:.1e}, {codecs}"


def report(options, words, folder):
    name, rest = words.split("=")
    model, batch, budget, rate = rest.split(":")
    network, path = (model, batch, budget), options.folder / f"{name}.json"
    if not path.exists():
        compiled(options, (model, options.error_batch, "100%"), ["--strategy=keep"], None, folder / "keep")
        train(options, folder / "keep", rate, 1, options.steps, "--profile-out", path, "--profile-errors", "1")
    if options.only == "errors":
        return
    profile = measured(path, name, folder)
    exact = planned(options, None, network, "fp32", [MIXED], profile)
    plans = {"keep": (["--strategy=keep"], 0.0, 0.0, {}, 0)}
    if options.storage and exact:
        plans["exact"] = ([MIXED], *exact)
    for limit in options.limits.split(","):
        plans |= choices(options, network, limit, profile)
    programs = {}
    for at, (plan, (flags, *_)) in enumerate(plans.items()):
        programs[plan] = folder / (plan if plan == "keep" else f"program-{at}")
        print(f"{name}, {plan}: {overhead_of(plans[plan])}", file=sys.stderr, flush=True)
        compiled(options, (model, batch, "100%") if plan == "keep" else network, flags, profile, programs[plan])
    if options.only == "plans":
        return
    results = trained(options, programs, rate, folder)
    keep = statistics.median(results["keep"][0])
    for plan, (_, overhead, error, codecs, _) in plans.items():
        seconds, losses, accuracies = results[plan]
        median = statistics.median(seconds)
        each = lambda numbers, places: " / ".join(f"{number:.{places}f}" for number in numbers)
        chosen = ", ".join(f"{count} {codec}" for codec, count in sorted(codecs.items()))
        print(f"| {name}, batch {batch}, {budget} | {plan} | {chosen} | {error:.1e} | {overhead:.2f} % (exact {exact[0] if exact else float('nan'):.2f} %) | {100 * (median / keep - 1):.2f} % ({1e3 * median:.0f} ms) | "
              f"{each(losses, 4)} | {each(accuracies, 1)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--limits", default="3e-3,1e-2")
    parser.add_argument("--only", choices=["errors", "plans"])
    parser.add_argument("--storage")
    parser.add_argument("--under", default="")
    for flag, default in (("--steps", 400), ("--seeds", 2), ("--rounds", 4), ("--error-batch", 4)):
        parser.add_argument(flag, type=int, default=default)
    parser.add_argument("networks", nargs="+")
    options = parser.parse_args()
    options.home = "storage" if options.storage else "unlimited"
    print("| network | plan | lossy codecs | error of the gradients, as planned | overhead, as planned | as measured | loss, each seed | accuracy, each seed |\n|" + "---|" * 8)
    with tempfile.TemporaryDirectory() as folder:
        for words in options.networks:
            report(options, words, pathlib.Path(folder))


if __name__ == "__main__":
    main()
