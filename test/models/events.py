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


def check_hyperparameters(accumulator, path):
    """As the plugin "hparams" reads them."""
    from tensorboard.plugins.hparams import metadata
    content = accumulator.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    found = metadata.parse_session_start_info_plugin_data(content).hparams
    start = json.loads(open(path).readline())
    for name in ("optimizer", "lr", "batch", "seed", "schedule"):
        value = found[name].string_value or found[name].number_value
        assert value == start[name], (name, value, start[name])
    assert found["evaluate_every"].number_value == 3 and "data" not in found and "predicted_ms" not in found, found


def check_confusions(accumulator, paths):
    """A picture for each, whose middle of each square is the darker the larger the share of its row is."""
    import io
    from PIL import Image
    counts = [event["confusion"] for path in paths for event in map(json.loads, open(path)) if event["event"] == "evaluate"]
    pictures = accumulator.Images("evaluation/confusion")[-len(counts):]
    for table, picture in zip(counts[-len(pictures):], pictures):
        image = np.asarray(Image.open(io.BytesIO(picture.encoded_image_string)).convert("RGB"), int)
        assert image.shape == (picture.height, picture.width, 3) and picture.width == 30 * (len(table) + 1), image.shape
        for r, row in enumerate(table):
            corners = [image[30 * (r + 1) + 2, 30 * (c + 1) + 2].sum() for c in range(len(row))]
            shares = np.array(row) / max(1, sum(row))
            assert all(a >= b for a, b in zip(np.array(corners)[np.argsort(shares)], np.sort(corners)[::-1])), (row, corners)
    return len(pictures)


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
    check_hyperparameters(accumulator, sys.argv[2])
    images = check_confusions(accumulator, sys.argv[2:])
    print(f"{count} scalars of {len(expected)} tags, {images} confusions")


if __name__ == "__main__":
    main()
