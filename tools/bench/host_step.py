#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One training step on the host against PyTorch, side by side in one run.

    host_step.py MODEL.onnx NAME [--batch 16] [--image 224] [--rounds 3] [--steps 3] [--budget 60%] [--no-torch] [--sluicec build/bin/sluicec]

MODEL.onnx is the same network as torchvision's NAME. Runs rounds that alternate between the programs `keep` and, with --budget, the planned
one, and PyTorch eager and channels_last (--no-torch leaves these out); prints the best step of each round, the medians over rounds and their
ratios as JSON, and for the planned program how much of its copy time ran beside compute, in a traced run of each round, and what the copies cost.
Every measurement uses the same number of threads. Needs the Python environment of tools/setup.sh --references, or nothing with --no-torch."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

TORCH_STEP = """
import sys, time, torch, torchvision
name, batch, image, steps, layout, threads = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5], int(sys.argv[6])
torch.set_num_threads(threads)
model = getattr(torchvision.models, name)().train()
x, y = torch.randn(batch, 3, image, image), torch.randint(0, 1000, (batch,))
if layout == "channels_last":
    model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
best = 1e9
for i in range(steps + 1):
    start = time.perf_counter()
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    if i:
        best = min(best, time.perf_counter() - start)
print(best)
"""


def program_step(program, steps, threads, log):
    subprocess.run([program, "--data", "synthetic", "--steps", str(steps + 1), "--threads", str(threads), "--log", log], check=True,
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
    subprocess.run([program, "--data", "synthetic", "--steps", str(steps + 1), "--threads", str(threads), "--trace", trace], check=True,
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
    parser.add_argument("name")
    for flag, default in (("--batch", 16), ("--image", 224), ("--rounds", 3), ("--steps", 3), ("--threads", os.cpu_count())):
        parser.add_argument(flag, type=int, default=default)
    parser.add_argument("--budget")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = {"keep": []}
        if options.budget:
            programs[options.budget] = [f"--memory-budget={options.budget}", "--host-budget=unlimited"]
        for name, flags in programs.items():
            subprocess.run([options.sluicec, options.model, f"--batch={options.batch}", "--init=kaiming", f"--threads={options.threads}", *flags,
                            "-o", os.path.join(folder, name)], check=True)
        seconds, ends, copied = {}, {}, []
        for round_ in range(options.rounds):
            for name in programs:
                best, ends[name] = program_step(os.path.join(folder, name), options.steps, options.threads, os.path.join(folder, "log.jsonl"))
                seconds.setdefault(name, []).append(best)
            for layout in () if options.no_torch else ("eager", "channels_last"):
                out = subprocess.run([sys.executable, "-c", TORCH_STEP, options.name, *map(str, (options.batch, options.image, options.steps)), layout,
                                      str(options.threads)], check=True, capture_output=True, text=True).stdout
                seconds.setdefault(layout, []).append(float(out))
            if options.budget:
                copied.append(copies(os.path.join(folder, options.budget), options.steps, options.threads, folder))
            print(f"round {round_ + 1}: " + ", ".join(f"{k} {v[-1]:.2f} s" for k, v in seconds.items()), file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    report = {"model": options.name, "batch": options.batch, "image": options.image, "threads": options.threads, "seconds": seconds,
              "medians": medians, "device_bytes": {name: ends[name]["device_peak_bytes"] for name in programs},
              "resident_bytes": {name: ends[name]["resident_peak_bytes"] for name in programs}}
    if not options.no_torch:
        best_torch = min(medians["eager"], medians["channels_last"])
        report["ratio_to_best_pytorch"] = {name: medians[name] / best_torch for name in programs}
    if options.budget:
        report["ratio_to_keep"] = medians[options.budget] / medians["keep"]
        report["copies"] = copied
        if copied[0]["bytes_per_step"]:
            report["share_of_copies_beside_compute"] = statistics.median(c["share_beside_compute"] for c in copied)
            report["seconds_lost_per_GB_copied"] = (medians[options.budget] - medians["keep"]) / copied[0]["bytes_per_step"] * 1e9
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
