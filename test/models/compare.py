#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a trained program with a PyTorch reference: losses of its log, rates and norms of gradients where the reference has them,
gradients that it dumped. Numpy only.

    test/models/compare.py reference.safetensors [--log log.jsonl] [--gradients gradients.safetensors] [--final CHECKPOINT] [--tolerance 1e-3] [--autocast FILE]

A value passes when its relative error (norm of difference over norm) is at most the tolerance, or at most 4 times what PyTorch itself
moves under a relative weight noise of 1e-6, which the reference holds beside it. With --autocast, gradients of bf16, it is 3 times what
PyTorch's autocast moves, which that file holds."""
import argparse
import json
import pathlib
import struct
import sys

import numpy as np

TYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}


def raises(error, words, call, *arguments, **named):
    """Whether a call ends in an error that says this."""
    try:
        call(*arguments, **named)
    except error as raised:
        assert words in str(raised), raised
        return
    raise AssertionError(f"no {error.__name__}: {words}")


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    body = data[8 + length:]
    return {name: np.frombuffer(body[slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


def of_steps(path, key):
    with open(path) as file:
        events = [json.loads(line) for line in file]
    return [event[key] for event in events if event["event"] == "step" and key in event]


def relative(value, reference):
    difference = np.linalg.norm(np.asarray(value, np.float64) - reference)
    norm = np.linalg.norm(np.asarray(reference, np.float64))
    return difference / norm if norm > 0 else difference


def final_rows(reference, folder, tolerance):
    """Parameters and statistics after the last step."""
    (path,) = pathlib.Path(folder).glob("*.safetensors")
    values = load(path)
    return [(f"final {name[len('final/'):]}", relative(values[name[len("final/"):]].reshape(value.shape), value), tolerance)
            for name, value in reference.items() if name.startswith("final/")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reference")
    parser.add_argument("--log")
    parser.add_argument("--gradients")
    parser.add_argument("--final", help="folder of a checkpoint after the last step")
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--autocast", help="autocast.json beside the reference")
    options = parser.parse_args()
    reference = load(options.reference)
    moved = json.loads(pathlib.Path(options.autocast).read_text()) if options.autocast else {}
    rows = []  # name, relative error, limit
    if options.log:
        for key, name in (("lr", "rates"), ("grad_norm", "norms"), ("mixup", "shares")):
            found, wanted = of_steps(options.log, key), reference.get(name, [])
            if len(wanted) and len(found) != len(wanted):
                sys.exit(f"compare: {len(found)} steps with {key} in the log, {len(wanted)} in the reference")
            rows += [(f"{key} {i + 1}", abs(value - number) / abs(number), options.tolerance)
                     for i, (value, number) in enumerate(zip(found, wanted))]
        found, wanted = of_steps(options.log, "loss"), reference["losses"]
        if len(found) != len(wanted):
            sys.exit(f"compare: {len(found)} steps in the log, {len(wanted)} in the reference")
        for i, (value, loss) in enumerate(zip(found, wanted)):
            rows.append((f"loss {i + 1}", abs(value - loss) / abs(loss), max(options.tolerance, 4 * reference["noise_losses"][i])))
    if options.gradients:
        dumped = load(options.gradients)
        for name, gradient in reference.items():
            if not name.startswith("gradient/"):
                continue
            name = name[len("gradient/"):]
            if name not in dumped:
                sys.exit(f"compare: no gradient of {name}; there are {', '.join(sorted(dumped))}")
            # A bias in front of a BatchNorm has no gradient but rounding noise.
            if np.linalg.norm(gradient) < 1e-7 * max(1.0, np.sqrt(gradient.size)):
                continue
            error = relative(dumped[name].reshape(gradient.shape), gradient)
            noise = 3 * moved[name] if moved else 4 * float(reference[f"noise/{name}"][0])
            rows.append((f"gradient {name}", error, max(options.tolerance, noise)))
    if options.final:
        rows += final_rows(reference, options.final, options.tolerance)
    failed = [row for row in rows if not row[1] <= row[2]]
    for name, error, limit in failed:
        print(f"compare: {name}: relative error {error:.2e}, limit {limit:.2e}")
    worst = max(rows, key=lambda row: row[1])
    print(f"compare: {len(rows) - len(failed)} of {len(rows)} values within their limits; largest error {worst[1]:.2e} ({worst[0]})")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
