#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what a program's --evaluate logged with what onnxruntime makes of the model that it exported.

    test/models/exported.py MODEL.onnx DATA log.jsonl BATCH"""
import json
import pathlib
import sys

import numpy as np
import onnxruntime


def main():
    model, data, log, batch = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    with open(log) as file:
        logged = [event for event in map(json.loads, file) if event["event"] == "evaluate"][-1]
    x, target = (np.load(data / name)[:logged["samples"]] for name in ("input.npy", "target.npy"))
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    scores = np.concatenate([session.run(None, {session.get_inputs()[0].name: x[i:i + batch]})[0] for i in range(0, len(x), batch)])
    scores = scores.astype(np.float64) - scores.max(1, keepdims=True)
    likelihood = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    loss = -np.take_along_axis(likelihood, np.expand_dims(target, 1), 1).mean()
    accuracy = (scores.argmax(1) == target).mean()
    print(f"exported: loss {loss:.6f}, logged {logged['loss']:.6f}; accuracy {accuracy:.4f}, logged {logged['accuracy']:.4f}")
    same = abs(loss - logged["loss"]) <= 1e-4 * abs(loss) and abs(accuracy - logged["accuracy"]) <= 1.5 / target.size
    sys.exit(0 if same else 1)


main()
