#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds a library that reads files beside the program of the same model: losses, evaluation and predictions have its bits, whatever comes between; mistakes are told
and change nothing. Numpy only.

    test/models/library_files.py FOLDER   what test/execute/inputs/library_files.sh made"""
import json
import pathlib
import sys

import numpy as np

from compare import load, of_steps, raises

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from sluice import DataError, Trainer, UsageError  # noqa: E402

SIZE = dict(augment="resize,size=16")
HOW = dict(shuffle=True, seed=5, augment="resize,size=16;random-crop,padding=2;flip", mean="0.5", std="0.25")


def same(evaluation, of):
    return all(evaluation[name] == of[name] for name in ("samples", "loss", "accuracy"))


def like_the_program(folder, losses, lines):
    """Two epochs, in one go, then step by step with all that may come between."""
    said = []
    with Trainer(folder / "libfiles.so", log=said.append) as one:
        files = one.files(f"imagefolder:{folder}/all", evaluate=f"imagefolder:{folder}/whole", predict=f"imagefolder:{folder}/whole", metrics="accuracy", **HOW)
        assert files.plan["training"] == {"samples": 80, "batches": 10} and files.plan["evaluation"] == {"samples": 30}, files.plan
        (names,) = files.plan["classes"].values()
        assert names == [f"{chr(ord('a') + k)}-class" for k in range(10)], names
        assert one.fit(files, epochs=2, lr=0.05) == [losses[:10], losses[10:]]
        assert same(one.evaluate(files), lines["evaluate"])
        # What weights were trained for goes with them.
        assert same(one.evaluate(f"imagefolder:{folder}/whole"), lines["evaluate"])
        predicted = np.load(folder / "predicted.npy")
        assert one.predict(files).tobytes() == one.predict(f"imagefolder:{folder}/whole").tobytes() == predicted.tobytes()
        one.export(folder / "own.safetensors")
        raises(UsageError, "which is read", one.export, next((folder / "all/a-class").iterdir()))
    assert any("as for the weights: --mean 0.5" in line for line in said), said
    own, trained = load(folder / "own.safetensors"), load(folder / "trained.safetensors")
    assert own.keys() == trained.keys() and all(own[name].tobytes() == trained[name].tobytes() for name in trained)
    rng = np.random.default_rng(0)
    with Trainer(folder / "libfiles.so") as one:
        one.set(lr=0.05)
        files, other = one.files(f"imagefolder:{folder}/all", **HOW), one.files(f"imagefolder:{folder}/all", **SIZE)
        x = rng.random((8, *one.plan["inputs"][0]["shape"][1:]), np.float32)
        for step in range(20):
            assert files.step() == (step // 10, losses[step]), step
            (one.evaluate, lambda *_: one.predict(x), lambda *_: other.plan, lambda *_: one.set(momentum=0.9))[step % 4](x, np.arange(8))
        files.close()
        raises(UsageError, "these are no open data of this model", files.step)
        other.step()
        assert one.steps == 21
        one.load(folder / "run")
        assert one.steps == 20


def mistakes(folder, losses):
    with Trainer(folder / "libplain.so") as plain:
        raises(UsageError, "make it again with --data-formats", plain.fit, f"imagefolder:{folder}/all")
    with Trainer(folder / "libfiles.so") as one:
        raises(UsageError, "--lr is not about data", one.files, f"imagefolder:{folder}/all", lr=0.1)
        raises(UsageError, "--checkpoint is not about data", one.files, f"imagefolder:{folder}/all", checkpoint="run")
        raises(UsageError, "--output is not about data", one.files, predict=f"imagefolder:{folder}/all", output="a.npy")
        raises(UsageError, "unknown flag '--beauty'", one.files, f"imagefolder:{folder}/all", beauty=1)
        raises(UsageError, "no data are named", one.files)
        raises(DataError, "nowhere", one.files, f"imagefolder:{folder}/nowhere")
        raises(UsageError, "'photos:here': there are no data of the kind 'photos'", one.fit, "photos:here")
        with one.files(evaluate=f"imagefolder:{folder}/whole", **SIZE) as files:
            raises(UsageError, "opened without --data", files.step)
            raises(UsageError, "opened without --predict", one.predict, files)
        with one.files(f"imagefolder:{folder}/all", **SIZE) as files:
            raises(UsageError, "opened without --evaluate", one.evaluate, files)
            raises(UsageError, "give metrics to files()", one.evaluate, files, metrics="f1")
            raises(UsageError, "give shuffle and seed to files()", one.fit, files, shuffle=True)
            raises(UsageError, "files hold their own targets", one.fit, files, np.arange(8))
        with Trainer(folder / "libfiles.so") as other, other.files(f"imagefolder:{folder}/all", **SIZE) as files:
            raises(UsageError, "no open data of this model", one._call, "data_step", files._handle, None, None)
        one.set(lr=0.05)
        assert one.files(f"imagefolder:{folder}/all", **HOW).fit(1, lambda *_: None) == [losses[:10]], "what was refused has changed something"


def bad_samples(folder):
    """The second batch has one: the first step is done, the second is not; others take its place where they are asked to, which the log hears."""
    with Trainer(folder / "libfiles.so") as one:
        one.set(label_smoothing=0.5)
        files = one.files(f"imagefolder:{folder}/bad", **SIZE)
        raises(DataError, "broken.png", files.step)
        assert one.steps == 1
        raises(DataError, "broken.png", files.step)
        assert one.steps == 1
        found = one.evaluate(f"imagefolder:{folder}/all")  # the weights are known, and for which images
        one.set(label_smoothing=0)
        assert one.evaluate(f"imagefolder:{folder}/all") == found, "the step that failed has left its smoothing"
    said = []
    with Trainer(folder / "libfiles.so", log=said.append) as one:
        losses = one.fit(one.files(f"imagefolder:{folder}/bad", on_bad_data="skip", **SIZE))
        assert len(losses[0]) == 10 and any(line.startswith("skipped: training data: ") and "broken.png" in line for line in said), said


def main():
    folder = pathlib.Path(sys.argv[1])
    losses = [float(np.float32(loss)) for loss in of_steps(folder / "log.jsonl", "loss")]
    lines = {line["event"]: line for line in map(json.loads, (folder / "log.jsonl").read_text().splitlines())}
    assert len(losses) == 20
    like_the_program(folder, losses, lines)
    mistakes(folder, losses)
    bad_samples(folder)


main()
