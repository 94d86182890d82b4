#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A long run over sequences of random lengths in six buckets: whether it ends, what memory it takes from beginning to end, and how much of what it reads is padding.

    buckets.py FOLDER [--sluicec build/bin/sluicec] [--python PYTHON] [--steps 100000] [--samples 4000] [--spread 0.06]

The model is that of test/models/buckets.py. Lengths are drawn evenly over the buckets, and in each from the last `spread` of its extent; with --spread 1 evenly between the
buckets. The resident memory is looked at once a second. Losses of the first steps are compared with PyTorch's on sequences that are not filled up, one by one."""
import argparse
import json
import pathlib
import subprocess
import sys
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/models"))
import buckets  # noqa: E402

EXTENTS = (16, 32, 48, 64, 96, 128)
COMPARED = 300


def draw(samples, spread, seed):
    random, data = numpy.random.default_rng(seed), []
    for bucket in random.integers(0, len(EXTENTS), samples):
        least = EXTENTS[bucket - 1] if bucket else 0
        first = max(least + 1, int(numpy.ceil(EXTENTS[bucket] * (1 - spread))))
        length = int(random.integers(first, EXTENTS[bucket] + 1))
        ids = random.integers(0, buckets.VOCABULARY, length)
        data.append({"ids": ids.tolist(), "mask": [1] * length, "target": ((ids * 5 + 1) % buckets.VOCABULARY).tolist()})
    return data


def resident(process):
    try:
        for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1])
    except OSError:
        pass
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--spread", type=float, default=0.06)
    words = parser.parse_args()
    folder = words.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    import torch
    buckets.LONGEST, buckets.BUCKETS, buckets.RATE = EXTENTS[-1], EXTENTS, 0.05
    data = draw(words.samples, words.spread, 1)
    (folder / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in data))
    model = buckets.network()
    buckets.export(torch, model, folder / "model.onnx")
    subprocess.run([words.sluicec, folder / "model.onnx", "--batch=4", "--dim", "tokens=" + ",".join(map(str, EXTENTS)), "--loss=token-cross-entropy",
                    "--ignore-index=-100", "--force", "-o", folder / "program"], check=True)
    flags = ["--data", f"jsonl:{folder / 'data.jsonl'}", "--lr", str(buckets.RATE), "--momentum", "0"]
    subprocess.run([folder / "program", *flags, "--steps", str(COMPARED), "--log", folder / "short.jsonl", "--quiet"], check=True)
    found = [line["loss"] for line in map(json.loads, (folder / "short.jsonl").read_text().splitlines()) if line["event"] == "step"]
    expected = buckets.train(torch, model.double(), data, COMPARED, 1)
    error = max(abs(a - b) / b for a, b in zip(found, expected))
    process = subprocess.Popen([folder / "program", *flags, "--steps", str(words.steps), "--shuffle", "--log", folder / "long.jsonl", "--quiet"])
    memory, begin = [], time.time()
    while process.poll() is None:
        time.sleep(1)
        memory.append(resident(process))
    memory = [value for value in memory if value]
    seconds = time.time() - begin
    lines = [json.loads(line) for line in (folder / "long.jsonl").read_text().splitlines()]
    end, steps = lines[-1], [line for line in lines if line["event"] == "step"]
    print(f"status {process.returncode}, {len(steps)} steps in {seconds:.0f} s, last loss {steps[-1]['loss']:.4f}")
    print(f"device: {end['device_peak_bytes']} of {lines[0]['device_bytes']} bytes; resident: {memory[min(2, len(memory) - 1)]} KiB after 3 s, {memory[-1]} KiB at the end, "
          f"{max(memory)} KiB at most")
    print(f"padding: {end['padding_percent']:.2f} %; first {COMPARED} losses within {error:.1e} of PyTorch's without padding")


if __name__ == "__main__":
    main()
