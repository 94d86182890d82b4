#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gathers the results of tools/gpu_check.sh into one JSON object on standard output: machine, versions, commit, every figure.

    gpu_report.py RESULTS_FOLDER COMMIT_FILE"""
import json
import pathlib
import platform
import re
import subprocess
import sys


def command(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def events(path, kind):
    with open(path) as file:
        return [event for event in map(json.loads, file) if event["event"] == kind]


def losses(path):
    return [event["loss"] for event in events(path, "step")]


def difference(values, reference):
    return max((abs(a - b) / max(abs(b), 1e-30) for a, b in zip(values, reference)), default=None)


def conformance(results):
    path = results / "conformance.txt"
    text = path.read_text() if path.exists() else ""
    failed = results / "conformance.txt.part"
    text = text or (failed.read_text() if failed.exists() else "")
    count = re.search(r"\[  PASSED  \] (\d+) test", text)
    return {"passed": int(count.group(1)) if count else 0, "failed": sorted(set(re.findall(r"\[  FAILED  \] (\S+)", text)))}


def training(results):
    table = {}
    for path in sorted(results.glob("check_*.jsonl")):
        name = path.name[:-len(".jsonl")]
        if name.count(".") or name.endswith("_planned"):
            continue
        host = pathlib.Path("data") / name[len("check_"):] / "host.jsonl"
        planned, eager = results / f"{name}_planned.jsonl", results / f"{name}.no-graph.jsonl"
        own = losses(path)
        table[name[len("check_"):]] = {
            "losses": own, "largest_relative_difference_to_host": difference(own, losses(host)) if host.exists() else None,
            "planned_is_bit_equal": losses(planned) == own if planned.exists() else None,
            "without_graph_is_bit_equal": losses(eager) == own if eager.exists() else None}
    return table


def measurements(results):
    table = {}
    for path in sorted(results.glob("*.measure.jsonl")):
        start, end = events(path, "start")[0], events(path, "end")[0]
        table[path.name[:-len(".measure.jsonl")]] = {
            "batch": start["batch"], "strategy": start["strategy"], "median_ms": end["median_ms"],
            "samples_per_second": start["batch"] / end["median_ms"] * 1e3, "predicted_ms": end["predicted_ms"],
            "device_bytes": start["device_bytes"], "host_bytes": start["host_bytes"], "driver_bytes": end["driver_bytes"],
            "first_loss": losses(path)[0]}
    return table


def main():
    results = pathlib.Path(sys.argv[1])
    gpu = command("nvidia-smi", "--query-gpu=name,driver_version,memory.total,compute_cap,pcie.link.gen.max", "--format=csv,noheader")
    report = {"commit": pathlib.Path(sys.argv[2]).read_text().split("\n")[0] if pathlib.Path(sys.argv[2]).exists() else "",
              "machine": {"gpu": gpu, "cpu": platform.processor(), "system": platform.platform(), "nvcc": command("nvcc", "--version").split("\n")[-1]},
              "conformance": conformance(results), "training": training(results), "measured": measurements(results),
              "links": {path.name: json.loads(path.read_text())["links"] for path in sorted(results.glob("*.profile.json"))},
              "peers": [json.loads(path.read_text()) for path in sorted(results.glob("peer_*.json"))],
              "sanitizer": {tool: (results / f"{tool}.txt").exists() for tool in ("memcheck", "racecheck")},
              "failed": {path.name[:-len(".failed")]: path.read_text().strip() for path in sorted(results.glob("*.failed"))}}
    json.dump(report, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
