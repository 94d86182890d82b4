#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goes on with a text by what a GPT over bytes has learned. Needs the Python package of Sluice, and no PyTorch.

    sample.py WEIGHTS PROMPT [TEMPERATURE [BYTES [SEED]]]    temperature 0 (default): always the likeliest byte"""
import sys

import numpy as np

import sluice


def next_byte(scores: np.ndarray, temperature: float, rng: np.random.Generator) -> int:
    """Drawn with probabilities softmax(scores / temperature)."""
    if temperature == 0:
        return int(scores.argmax())
    return int((scores / temperature + rng.gumbel(size=scores.shape)).argmax())


def main(weights: str, prompt: str, temperature: str = "0", count: str = "200", seed: str = "1") -> None:
    rng, text = np.random.default_rng(int(seed)), bytearray(prompt.encode() or b"\n")
    with sluice.compile("model.onnx", batch=1, loss="token-cross-entropy") as trainer:  # one text at a time
        trainer.init(weights)
        context = trainer.plan["inputs"][0]["shape"][1]
        for _ in range(int(count)):
            seen = text[-context:]
            ids = np.zeros((1, context), np.int64)  # what follows the text has no part in its scores
            ids[0, :len(seen)] = seen
            text.append(next_byte(trainer.predict(ids)[0, len(seen) - 1], float(temperature), rng))
    print(text.decode(errors="replace"))


main(*sys.argv[1:])
