# SPDX-License-Identifier: Apache-2.0
"""Compares what TensorBoard reads in a folder of event files with the JSONL logs of the runs that wrote it, value by value.

    events.py FOLDER LOG.jsonl...
"""
import json
import math
import sys

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

OF_STEPS = {"train/loss": "loss", "train/lr": "lr", "train/samples_per_second": "samples_per_second"}
NO_METRICS = ("event", "step", "samples")


def logged(paths):
    """{tag: [(step, value)]} of what the logs say."""
    scalars = {}
    for path in paths:
        for event in map(json.loads, open(path)):
            if event["event"] == "step":
                found = {tag: event[key] for tag, key in OF_STEPS.items()}
            elif event["event"] == "evaluate":
                found = {f"evaluation/{key}": value for key, value in event.items() if key not in NO_METRICS and isinstance(value, float)}
            else:
                found = {}
            for tag, value in found.items():
                scalars.setdefault(tag, []).append((event["step"], value))
    return scalars


def main():
    accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})  # 0: all of them
    accumulator.Reload()
    expected = logged(sys.argv[2:])
    assert sorted(accumulator.Tags()["scalars"]) == sorted(expected), (accumulator.Tags()["scalars"], sorted(expected))
    count = 0
    for tag, points in expected.items():
        read = accumulator.Scalars(tag)
        assert [point.step for point in read] == [step for step, _ in points], (tag, read, points)
        for point, (step, value) in zip(read, points):
            assert math.isclose(point.value, np.float32(value), rel_tol=1e-6), (tag, step, point.value, value)
        assert all(a.wall_time <= b.wall_time for a, b in zip(read, read[1:])), tag
        count += len(read)
    print(f"{count} scalars of {len(expected)} tags")


if __name__ == "__main__":
    main()
