#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the libraries of two models beside the program of the first: losses, weights, evaluation and predictions have its bits, checkpoints go both
ways, mistakes are told and change nothing. Numpy and ctypes only.

    test/models/library.py FOLDER [cuda]   FOLDER: libone.so, libtwo.so; data/, log.jsonl, trained.safetensors, predicted.npy, run/ of the program, 6 steps"""
import ctypes as c
import json
import pathlib
import re
import threading
import sys

import numpy as np

from compare import load, of_steps

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from sluice._abi import Options, Output, PROGRESS, tensors  # noqa: E402

BAD_DATA, USAGE, NO_MEMORY, CANCELLED = 1, 2, 3, 7

class Failed(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Model:
    def __init__(self, library, **options):
        self.library, self.handle, self.options = library, c.c_void_p(), Options(size=c.sizeof(Options), **options)
        library.sluice_error.restype, library.sluice_steps.restype = c.c_char_p, c.c_int64
        self.check(library.sluice_open(c.byref(self.options), c.byref(self.handle)))

    def check(self, status):
        if status != 0:
            message = self.library.sluice_error(self.handle).decode()
            if not message:
                raise AssertionError(f"status {status} without a word")
            raise Failed(status, message)

    def step(self, x, y):
        loss = c.c_float()
        self.check(self.library.sluice_step(self.handle, *tensors([("input", x)]), *tensors([("target", y)]), c.byref(loss)))
        return np.float32(loss.value)

    def evaluate(self, x, y, metrics=None):
        text = c.c_char_p()
        self.check(self.library.sluice_evaluate(self.handle, *tensors([(None, x)]), *tensors([(None, y)]), metrics, None, c.byref(text)))
        return json.loads(text.value)

    def predict(self, x, shape):
        to = np.zeros(shape, np.float32)
        wanted = (Output * 1)(Output(None, to.ctypes.data, to.nbytes))
        self.check(self.library.sluice_predict(self.handle, *tensors([("input", x)]), wanted, 1))
        return to

    def described(self, what):
        text = c.c_char_p()
        self.check(getattr(self.library, "sluice_" + what)(self.handle, c.byref(text)))
        return json.loads(text.value)

    def read(self, name, shape):
        to = np.zeros(shape, np.float32)
        self.check(self.library.sluice_read(self.handle, name.encode(), c.c_void_p(to.ctypes.data), c.c_size_t(to.nbytes)))
        return to

    def set(self, name, value):
        self.check(self.library.sluice_set(self.handle, name.encode(), c.c_double(value)))

    def file(self, what, path):
        self.check(getattr(self.library, "sluice_" + what)(self.handle, str(path).encode()))

    def close(self):
        self.library.sluice_close(self.handle)


def refused(status, words, call, *arguments):
    try:
        call(*arguments)
    except Failed as failed:
        assert failed.status == status and words in str(failed), (failed.status, str(failed))
        return
    raise AssertionError(f"nobody refused: {words}")


def train(model, x, y, first, last):
    batch = model.described("plan")["batch"]
    return [model.step(x[i * batch:(i + 1) * batch], y[i * batch:(i + 1) * batch]) for i in range(first, last)]


def like_the_program(folder, one, x, y, losses):
    model = Model(one)
    assert train(model, x, y, 0, 6) == losses
    trained = load(folder / "trained.safetensors")
    for name, value in trained.items():
        assert model.read(name, value.shape).tobytes() == value.tobytes(), name
    variables = {v["name"]: v for v in model.described("variables")}
    assert set(trained) <= set(variables) and variables["0.weight"]["shape"] == [24, 16] and variables["0.weight"]["role"] == "parameter"
    evaluated = [json.loads(line) for line in open(folder / "log.jsonl") if '"event":"evaluate"' in line][-1]
    found = model.evaluate(x[:45], y[:45])  # no whole number of batches
    assert found["samples"] == 45 and found["loss"] == evaluated["loss"] and found["accuracy"] == evaluated["accuracy"], (found, evaluated)
    predicted = np.load(folder / "predicted.npy")
    assert model.predict(x[:45], predicted.shape).tobytes() == predicted.tobytes()
    model.file("export", folder / "own.safetensors")
    assert all(np.array_equal(load(folder / "own.safetensors")[name], value) for name, value in trained.items())
    model.close()


def checkpoints(folder, one, x, y, losses):
    first = Model(one)
    assert train(first, x, y, 0, 3) == losses[:3]
    first.file("save", folder / "saved")
    first.close()
    for path in (folder / "saved", folder / "run/checkpoint-3.safetensors"):  # its own, the program's
        model = Model(one)
        model.file("load", path)
        assert one.sluice_steps(model.handle) == 3 and train(model, x, y, 3, 6) == losses[3:], path
        model.close()


def mistakes(folder, one, x, y, losses):
    model = Model(one)
    batch = slice(0, 8)
    refused(USAGE, "input 'input' has the shape (8, 15), the model takes (8, 16)", model.step, np.ascontiguousarray(x[batch, :15]), y[batch])
    refused(USAGE, "input 'input' has the shape (4, 16), the model takes (8, 16)", model.step, x[:4], y[:4])
    refused(USAGE, "has 0 samples", model.evaluate, x[:0], y[batch])
    refused(BAD_DATA, "must lie between 0 and 4", model.step, x[batch], np.full(8, np.iinfo(np.int64).min))
    refused(USAGE, "input 'target' is float32, the model takes int64", model.step, x[batch], x[batch])
    refused(USAGE, "0 targets are given, the model has 1",
            lambda: model.check(one.sluice_step(model.handle, *tensors([("input", x[batch])]), None, 0, None)))
    refused(USAGE, "no 'nobody' among its inputs",
            lambda: model.check(one.sluice_step(model.handle, *tensors([("nobody", x[batch])]), *tensors([("target", y[batch])]), None)))
    wrong = y[batch].copy()
    wrong[3] = 5
    refused(BAD_DATA, "'target': sample 3 holds 5, 'target' must lie between 0 and 4", model.step, x[batch], wrong)
    wrong = x[batch].copy()
    wrong[2, 1] = np.nan
    refused(BAD_DATA, "'input': sample 2 holds NaN for 'input'", model.step, wrong, y[batch])
    refused(USAGE, "there is no hyperparameter 'rate'; there are lr, ", model.set, "rate", 1)
    refused(USAGE, "--beta1 means nothing to sgd", model.set, "beta1", 0.5)
    refused(USAGE, "--lr", model.set, "lr", float("nan"))
    refused(USAGE, "'0.weight' has 1536 bytes, not 4", model.read, "0.weight", (1,))
    refused(USAGE, "no variable 'gone'", model.read, "gone", (1,))
    refused(USAGE, "takes 160 bytes, there is room for 80", model.predict, x[batch], (4, 5))
    refused(USAGE, "--metrics", model.evaluate, x[batch], y[batch], b"beauty")
    refused(BAD_DATA, "nowhere", model.file, "load", folder / "nowhere")
    refused(BAD_DATA, "exists and was not written by --export", model.file, "export", folder / "foreign.safetensors")
    for name, *rest in (("step", None, 0, None, 0, None), ("set", None, c.c_double(1)), ("read", None, None, c.c_size_t(0)), ("plan", None)):
        assert getattr(one, "sluice_" + name)(None, *rest) == USAGE
        assert name == "plan" or getattr(one, "sluice_" + name)(model.handle, *rest) == USAGE
    one.sluice_close(None)
    refused(NO_MEMORY, "memory_limit is 1000 bytes, the plan takes ", lambda: Model(one, memory_limit=1000))
    refused(BAD_DATA, "/nowhere/one.safetensors", lambda: Model(one, files=b"/nowhere"))
    refused(USAGE, "made for", lambda: Model(one, threads=1000))
    assert train(model, x, y, 0, 6) == losses, "what was refused has changed something"
    model.close()


def older_callers(one, x, y, losses):
    """A caller that was compiled when options had fewer members: what lies behind them is not read. The plan says who made it."""
    model = Model.__new__(Model)
    model.library, model.handle = one, c.c_void_p()
    model.check(one.sluice_open(c.byref(Options(size=Options.memory_limit.offset, memory_limit=1000)), c.byref(model.handle)))
    assert train(model, x, y, 0, 6) == losses
    plan = model.described("plan")
    assert plan["version"] == 1 and re.fullmatch(r"[0-9.]+[+]([0-9a-f]{7,}|unknown)", plan["compiler"]), plan["compiler"]
    model.close()


def from_callbacks(one, two, x, y, cuda):
    """A callback's calls on its own handle are refused, on a GPU those on others of its library, too; closing waits for the call to end."""
    statuses, said, other, foreign = [], [], Model(one), Model(two)

    def ask(*_):
        for library, handle in ((one, model), (one, other), (two, foreign)):
            statuses.append(library.sluice_steps(handle.handle))
            library.sluice_close(handle.handle)
        try:
            Model(one).close()
        except Failed as failed:
            said.append(str(failed))
        return 0
    model = Model(one, progress=PROGRESS(ask))
    assert model.predict(x[:8], (8, 5)).any() and statuses == [-1, -1 if cuda else 0, 0], statuses
    assert said == (["a callback of a call on a GPU cannot open another handle of its library"] if cuda else []), said


def by_turns(folder, one, x, y, losses):
    """What another handle of the library has told the device is not this one's, though it asks for what it has asked for before."""
    model, other = Model(one), Model(one)
    other.set("lr", 0.9)
    model.file("save", folder / "begin")
    for _ in range(2):
        model.file("load", folder / "begin")
        assert train(model, x, y, 0, 1) == losses[:1]
        assert train(other, x, y, 0, 1)
    model.file("load", folder / "begin")
    assert train(model, x, y, 0, 6) == losses
    model.close()
    other.close()


def cancelling(one, x, y, losses):
    seen = []
    progress = PROGRESS(lambda _, done, of: seen.append((done, of)) or (1 if done >= 16 else 0))
    model = Model(one, progress=progress)
    refused(CANCELLED, "cancelled", model.evaluate, x[:45], y[:45])
    assert seen == [(0, 45), (8, 45), (16, 45)], seen
    one.sluice_cancel(model.handle)
    refused(CANCELLED, "cancelled", model.step, x[:8], y[:8])
    assert train(model, x, y, 0, 6) == losses
    model.close()


def together(one, two, x, y, losses):
    """Two models, two handles of one, at once."""
    results = {}

    def run(key, library):
        model = Model(library)
        results[key] = train(model, x, y, 0, 6)
        model.close()
    threads = [threading.Thread(target=run, args=arguments) for arguments in (("a", one), ("b", one), ("c", two))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = Model(two)
    assert results["a"] == results["b"] == losses and results["c"] == train(alone, x, y, 0, 6) != losses
    alone.close()


def hyperparameters(one, two, x, y):
    model = Model(two)  # adam, with --accumulate
    value = c.c_double()
    model.check(two.sluice_get(model.handle, b"beta1", c.byref(value)))
    assert abs(value.value - 0.9) < 1e-6
    model.set("lr", 0)
    model.set("accumulate", 2)
    before = model.read("0.weight", (24, 16))
    first = model.step(x[:16], y[:16])
    assert first == model.step(x[:16], y[:16]) and np.array_equal(before, model.read("0.weight", (24, 16)))
    model.set("lr", 0.01)
    model.step(x[:16], y[:16])
    assert model.step(x[:16], y[:16]) < first
    written = np.ones((24, 16), np.float32)
    model.check(two.sluice_write(model.handle, b"0.weight", c.c_void_p(written.ctypes.data), c.c_size_t(written.nbytes)))
    assert np.array_equal(model.read("0.weight", (24, 16)), written)
    model.close()


def main():
    folder, cuda = pathlib.Path(sys.argv[1]), sys.argv[2:] == ["cuda"]
    one, two = (c.CDLL(str(folder / name)) for name in ("libone.so", "libtwo.so"))
    assert one.sluice_abi() == two.sluice_abi() == 1
    x, y = np.load(folder / "data/input.npy"), np.load(folder / "data/target.npy")
    losses = [np.float32(loss) for loss in of_steps(folder / "log.jsonl", "loss")]
    (folder / "foreign.safetensors").write_bytes(b"somebody's")
    like_the_program(folder, one, x, y, losses)
    checkpoints(folder, one, x, y, losses)
    mistakes(folder, one, x, y, losses)
    older_callers(one, x, y, losses)
    cancelling(one, x, y, losses)
    from_callbacks(one, two, x, y, cuda)
    by_turns(folder, one, x, y, losses)
    together(one, two, x, y, losses)
    hyperparameters(one, two, x, y)
    if cuda:
        refused(USAGE, "offload_to is for the host", lambda: Model(one, offload_to=b"arena"))
    for _ in range(50):
        Model(one).close()


main()
