#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a budget costs a training step on the host. (Beside PyTorch: host.py.)

    host_step.py MODEL.onnx --budget 60% [--batch 16] [--rounds 3] [--steps 3] [--sluicec build/bin/sluicec]

Runs rounds that alternate between the program `keep` and the planned one; prints the best step of each round, the medians over rounds and their
ratio as JSON, and for the planned program how much of its copy time ran beside compute, in a traced run of each round, and what the copies cost."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile


def program_step(program, steps, threads, log):
    subprocess.run([program, "--data", "synthetic", "--steps", str(steps + 1), "--lr", "1e-5", "--threads", str(threads), "--log", log], check=True,
                   stdout=subprocess.DEVNULL)
    with open(log) as file:
        events = [json.loads(line) for line in file]
    end = next(e for e in events if e["event"] == "end")
    return min(e["ms"] for e in events if e["event"] == "step" and e["step"] > 1) / 1e3, end


def overlap(intervals, others):
    """Seconds of `intervals` that lie in the union of `others`; both are lists of (start, end)."""
    merged = []
    for start, end in sorted(others):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return sum(max(0, min(end, b) - max(start, a)) for start, end in intervals for a, b in merged)


def copies(program, steps, threads, folder):
    """Of a traced run without its first step, which touches the arenas' pages: bytes copied per step and the share of copy time beside compute."""
    trace = os.path.join(folder, "trace.json")
    subprocess.run([program, "--data", "synthetic", "--steps", str(steps + 1), "--lr", "1e-5", "--threads", str(threads), "--trace", trace], check=True,
                   stdout=subprocess.DEVNULL)
    with open(trace) as file:
        events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
    compute = sorted((e for e in events if e["tid"] == 0), key=lambda e: e["ts"])
    assert len(compute) % (steps + 1) == 0, "steps are not equally long"
    second = compute[len(compute) // (steps + 1)]["ts"]
    copied = [e for e in events if e["cat"].startswith("copy to") and e["ts"] >= second]
    span = lambda e: (e["ts"], e["ts"] + e["dur"])
    total = sum(e["dur"] for e in copied)
    beside = overlap([span(e) for e in copied], [span(e) for e in compute])
    return {"bytes_per_step": sum(e["args"]["bytes"] for e in copied) / steps, "seconds_per_step": total / steps / 1e6,
            "share_beside_compute": beside / total if total else None}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    for flag, default in (("--batch", 16), ("--rounds", 3), ("--steps", 3), ("--threads", os.cpu_count())):
        parser.add_argument(flag, type=int, default=default)
    parser.add_argument("--budget", required=True)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = {"keep": [], options.budget: [f"--memory-budget={options.budget}", "--host-budget=unlimited"]}
        for name, flags in programs.items():
            subprocess.run([options.sluicec, options.model, f"--batch={options.batch}", "--init=kaiming", f"--threads={options.threads}", *flags,
                            "-o", os.path.join(folder, name)], check=True)
        seconds, ends, copied = {}, {}, []
        for round_ in range(options.rounds):
            for name in programs:
                best, ends[name] = program_step(os.path.join(folder, name), options.steps, options.threads, os.path.join(folder, "log.jsonl"))
                seconds.setdefault(name, []).append(best)
            copied.append(copies(os.path.join(folder, options.budget), options.steps, options.threads, folder))
            print(f"round {round_ + 1}: " + ", ".join(f"{k} {v[-1]:.2f} s" for k, v in seconds.items()), file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    report = {"model": options.model, "batch": options.batch, "threads": options.threads, "seconds": seconds, "medians": medians,
              "device_bytes": {name: ends[name]["device_peak_bytes"] for name in programs},
              "resident_bytes": {name: ends[name]["resident_peak_bytes"] for name in programs},
              "ratio_to_keep": medians[options.budget] / medians["keep"], "copies": copied}
    if copied[0]["bytes_per_step"]:
        report["share_of_copies_beside_compute"] = statistics.median(c["share_beside_compute"] for c in copied)
        report["seconds_lost_per_GB_copied"] = (medians[options.budget] - medians["keep"]) / copied[0]["bytes_per_step"] * 1e9
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
