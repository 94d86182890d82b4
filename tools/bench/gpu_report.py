#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gathers the results of tools/gpu_check.sh into one JSON object on standard output: machine, versions, commit, every figure.

    gpu_report.py RESULTS_FOLDER PACK_FOLDER"""
import json
import math
import pathlib
import platform
import re
import subprocess
import sys


STEPS = 50  # as many as gpu_peers.py times


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
    return {"passed": sum(map(int, re.findall(r"\[  PASSED  \] (\d+) test", text))), "failed": sorted(set(re.findall(r"\[  FAILED  \] (\S+)", text)))}


def training(results, data):
    table = {}
    for path in sorted(results.glob("check_*.jsonl")):
        name = path.name[:-len(".jsonl")]
        if name.count(".") or name.endswith(("_planned", "_zvc")):
            continue
        host = data / name[len("check_"):].removesuffix("_bf16").removesuffix("_fp16").removesuffix("_inverted") / "host.jsonl"
        planned, packed, eager = (results / f"{name}{other}.jsonl" for other in ("_planned", "_zvc", ".no-graph"))
        own = losses(path)
        table[name[len("check_"):]] = {
            "losses": own, "largest_relative_difference_to_host": difference(own, losses(host)) if host.exists() else None,
            "planned_is_bit_equal": losses(planned) == own if planned.exists() else None,
            "zvc_is_bit_equal": losses(packed) == own if packed.exists() else None,
            "without_graph_is_bit_equal": losses(eager) == own if eager.exists() else None}
    return table


def measurements(results):
    table = {}
    for path in sorted(results.glob("*.measure.jsonl")):
        start, end = events(path, "start")[0], events(path, "end")[0]
        steps = [event["ms"] for event in events(path, "step")][-STEPS:]
        mean = sum(steps) / len(steps)  # each step ends with a synchronization: what passed between the first's begin and the last's end
        table[path.name[:-len(".measure.jsonl")]] = {
            "batch": start["batch"], "strategy": start["strategy"], "median_ms": end["median_ms"], "step_ms": mean,
            "samples_per_second": start["batch"] / mean * 1e3, "predicted_ms": end["predicted_ms"],
            "device_bytes": start["device_bytes"], "device_peak_bytes": end["device_peak_bytes"], "host_bytes": start["host_bytes"],
            "driver_bytes": end["driver_bytes"], "first_loss": losses(path)[0]}
    return table


def peers(results):
    """The peers of one model and precision by variant."""
    table = {}
    for path in sorted(results.glob("peer_*_*.json")):
        peer = json.loads(path.read_text())
        variant, precision = peer["variant"].rsplit("-", 1)
        table.setdefault((peer["model"], precision), {})[variant] = peer
    return table


def ratios(measured, others):
    """Of every program: speed and memory, as the driver counts it, over keep's and over each peer's of its precision."""
    table = {}
    for name, own in measured.items():
        model, precision, _ = name.split("_", 2)
        against = dict(others.get((model, {"bf16": "amp"}.get(precision, precision)), {}))
        if f"{model}_{precision}_keep" in measured:
            against["keep"] = measured[f"{model}_{precision}_keep"]
        table[name] = {other: {"speed": own["samples_per_second"] / value["samples_per_second"], "memory": own["driver_bytes"] / value["driver_bytes"]}
                       for other, value in against.items()}
    return table


def sanitizers(results):
    return {tool: {"clean": len(list(results.glob(f"{tool}.*.txt"))), "failed": sorted(p.name for p in results.glob(f"{tool}.*.failed"))}
            for tool in ("memcheck", "racecheck")}


def finite(value):
    """JSON has no infinity and no NaN."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def main():
    results, pack = map(pathlib.Path, sys.argv[1:3])
    gpu = command("nvidia-smi", "--query-gpu=name,driver_version,memory.total,compute_cap,pcie.link.gen.max", "--format=csv,noheader")
    commit, links = pack / "commit", results / "peer_links.json"
    measured, others = measurements(results), peers(results)
    report = {"commit": commit.read_text().split("\n")[0] if commit.exists() else "",
              "machine": {"gpu": gpu, "cpu": platform.processor(), "system": platform.platform(), "nvcc": command("nvcc", "--version").split("\n")[-1]},
              "conformance": conformance(results), "sanitizer": sanitizers(results), "training": training(results, pack / "data"), "measured": measured,
              "links": {path.name: json.loads(path.read_text())["links"] for path in sorted(results.glob("*.profile.json"))},
              "plain_links": json.loads(links.read_text()) if links.exists() else None,
              "peers": [peer for variants in others.values() for peer in variants.values()], "ratios": ratios(measured, others),
              "failed": {path.name[:-len(".failed")]: path.read_text().strip() for path in sorted(results.glob("*.failed"))}}
    json.dump(finite(report), sys.stdout, indent=1, allow_nan=False)
    print()


if __name__ == "__main__":
    main()
