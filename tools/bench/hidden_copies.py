#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The share of the copies' time that compute hides in programs that run on this processor, with copies out from birth and with copies out that wait for the last op that reads
the content before it leaves, as a Markdown table. (Planned for GPUs: planner-reproduce docs/reproduction hidden-copies.)

    tools/bench/hidden_copies.py --late SLUICEC NAME=MODEL.onnx:BATCH... [--strategies 'vdnn-all;vdnnpp,mode=1,synchronous=1'] [--rounds 3] [--steps 3] [--threads 1]

--late names a compiler built for this alone: one whose PlanMemory.cpp applies `leavingLate` of tools/bench/reproduce/HiddenCopies.cpp to the strategy's plan. A copy is a thread of its own, so leave it a core: --threads is one fewer than the machine has. Copy threads
yield to whatever else runs; the machine must be idle. Rounds alternate between keep, late and birth; of a round the fastest step, figures are medians over rounds."""
import argparse
import os
import statistics
import subprocess
import tempfile

from host_step import copies, program_step


def compiled(sluicec, model, batch, flags, options, program):
    subprocess.run([sluicec, model, f"--batch={batch}", "--init=kaiming", f"--threads={options.threads}", "--host-budget=unlimited", "--force", *flags, "-o", program],
                   check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--late", required=True)
    parser.add_argument("--strategies", default="vdnn-all;vdnnpp,mode=1,synchronous=1")
    for flag, default in (("--rounds", 3), ("--steps", 3), ("--threads", max(1, os.cpu_count() - 1))):
        parser.add_argument(flag, type=int, default=default)
    parser.add_argument("networks", nargs="+")
    options = parser.parse_args()
    print("| network, batch | strategy | copied a step, MiB | copies, ms, late / from birth | hidden, late | hidden, from birth | step over keep, late | from birth |\n|" + "---|" * 8)
    with tempfile.TemporaryDirectory() as folder:
        for words in options.networks:
            name, rest = words.split("=")
            model, batch = rest.rsplit(":", 1)
            for strategy in options.strategies.split(";"):
                programs = {kind: os.path.join(folder, kind) for kind in ("keep", "late", "birth")}
                for kind, program in programs.items():
                    compiled(options.late if kind == "late" else options.sluicec, model, batch, ["--strategy=" + ("keep" if kind == "keep" else strategy)], options, program)
                seconds, copied = {kind: [] for kind in programs}, {"late": [], "birth": []}
                for _ in range(options.rounds):
                    for kind, program in programs.items():
                        seconds[kind].append(program_step(program, options.steps, options.threads, os.path.join(folder, "log.jsonl"))[0])
                        if kind != "keep":
                            copied[kind].append(copies(program, options.steps, options.threads, folder))
                median = {kind: statistics.median(all) for kind, all in seconds.items()}
                figure = lambda kind, what: statistics.median(one[what] for one in copied[kind])
                share, over = lambda kind: f"{100 * figure(kind, 'share_beside_compute'):.0f} %", lambda kind: f"{100 * (median[kind] / median['keep'] - 1):.1f} %"
                print(f"| {name}, {batch} | {strategy} | {figure('birth', 'bytes_per_step') / 2**20:.0f} | {1e3 * figure('late', 'seconds_per_step'):.0f} / {1e3 * figure('birth', 'seconds_per_step'):.0f} | "
                      + " | ".join([share("late"), share("birth"), over("late"), over("birth")]) + " |", flush=True)


main()
