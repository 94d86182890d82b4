#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package beside PyTorch and beside the program of the same file: a module trains in five lines, its weights come back into it, losses
have the program's bits.

    test/models/python_package.py FOLDER    empty; PYTHONPATH has the package, the PATH sluicec"""
import copy
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import torch

import sluice
from sluice._arrays import to_array
from sluice._compiler import export

from compare import load, of_steps, raises

FOLDER = pathlib.Path(sys.argv[1])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = torch.nn.Conv2d(2, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.Linear(8 * 16, 5)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.conv(x))).reshape(x.shape[0], -1))


def like_pytorch(x, y):
    torch.manual_seed(1)
    module, twin = Net(), Net()
    twin.load_state_dict(module.state_dict())
    trainer = sluice.compile(module, torch.zeros(8, 2, 4, 4), budget="90%")
    losses = trainer.fit(torch.from_numpy(x), y, epochs=2, lr=0.05, momentum=0.9)
    assert [len(epoch) for epoch in losses] == [6, 6] and trainer.steps == 12  # 50 samples
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.05, momentum=0.9)
    for epoch in losses:
        for i, loss in enumerate(epoch):
            optimizer.zero_grad()
            own = torch.nn.functional.cross_entropy(twin(torch.from_numpy(x[i * 8:i * 8 + 8])), torch.from_numpy(y[i * 8:i * 8 + 8]))
            own.backward()
            optimizer.step()
            assert abs(own.item() - loss) < 1e-5, (own.item(), loss)
    module.load_state_dict(trainer.state_dict())  # strict: nothing is missing
    for name, value in twin.state_dict().items():
        assert torch.allclose(module.state_dict()[name].float(), value.float(), atol=1e-5), name
    module.eval()
    assert np.allclose(trainer.predict(x), module(torch.from_numpy(x)).detach().numpy(), atol=1e-5)
    found = trainer.evaluate(x, y, metrics="f1")
    assert found["samples"] == 50 and abs(found["loss"] - torch.nn.functional.cross_entropy(module(torch.from_numpy(x)), torch.from_numpy(y)).item()) < 1e-5
    assert "<table>" in trainer.plan._repr_html_() and trainer.plan["batch"] == 8 and len(repr(trainer.plan)) < 200
    assert [one["name"] for one in trainer.plan["inputs"]] == ["x", "target"] and trainer.plan["outputs"][0]["name"] == "output", trainer.plan["inputs"]
    assert not trainer.load_state_dict(twin.state_dict()) and np.array_equal(trainer.read("head.weight"), twin.head.weight.detach().numpy())
    return module


class Partly(Net):
    """With a table of positions that is no parameter, a parameter of one number, and layers that stand still."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randn(2, 4, 4))
        self.scale = torch.nn.Parameter(torch.tensor(0.5))
        self.norm.weight.requires_grad_(False)
        self.head.bias.requires_grad_(False)

    def forward(self, x):
        return super().forward(x * self.scale + self.table)


def roles_of_the_module(x, y):
    torch.manual_seed(2)
    module = Partly()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    trainer = sluice.compile(module, torch.zeros(8, 2, 4, 4))
    trainer.fit(x, y, lr=0.05)
    optimizer = torch.optim.SGD((p for p in module.parameters() if p.requires_grad), lr=0.05, momentum=0.9)
    for i in range(6):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(torch.from_numpy(x[i * 8:i * 8 + 8])), torch.from_numpy(y[i * 8:i * 8 + 8])).backward()
        optimizer.step()
    state = trainer.state_dict()
    for name in ("table", "norm.weight", "head.bias"):
        assert torch.equal(state[name], before[name]), name
    for name, value in module.state_dict().items():
        assert torch.allclose(state[name].float(), value.float(), atol=1e-5), name
    assert not torch.equal(state["scale"], before["scale"])


def reported(x, y):
    """The page is of the trainer's own plan, and of nothing else."""
    torch.manual_seed(1)  # like_pytorch's, whose library is there
    module = Net()
    trainer = sluice.compile(module, torch.zeros(8, 2, 4, 4), budget="90%", compile_log=lambda line: sys.exit("compiled again: " + line))
    trainer.fit(x, y)
    module.load_state_dict(trainer.state_dict())
    page = trainer.report(FOLDER / "plan.html")
    assert page.text == (FOLDER / "plan.html").read_text() and '{"title":"Net.onnx"' in page.text and '"title":"Plan of ' in page.text
    assert '"title":"Time over memory"' in trainer.report(FOLDER / "plan.html").text, "written over"
    shown = page._repr_html_()
    assert shown.startswith("<iframe sandbox=") and shown.count("<") == 2 and shown.count('"') == 6
    assert trainer.report(str(FOLDER / "plan.csv")).text.startswith("strategy,budget_bytes")
    (FOLDER / "own.html").write_text("mine")
    raises(sluice.DataError, "own.html: exists and is not a report", trainer.report, FOLDER / "own.html")
    raises(sluice.DataError, "gone", trainer.report, FOLDER / "gone" / "plan.html")
    module.head.bias.requires_grad_(False)
    raises(sluice.UsageError, "Net is no longer what this trainer was compiled from", trainer.report)
    library = next(pathlib.Path(os.environ["SLUICE_CACHE"]).glob("*/libmodel.so"))
    with sluice.Trainer(library) as alone:
        raises(sluice.UsageError, "sluice.compile()", alone.report)


def like_the_program(module, x, y):
    path = export(module.train(), torch.zeros(8, 2, 4, 4), FOLDER)
    (FOLDER / "data").mkdir()
    np.save(FOLDER / "data/input.npy", x), np.save(FOLDER / "data/target.npy", y)
    run = lambda *words: subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)  # noqa: E731
    run("sluicec", path, "--optimizer=adamw", "-o", FOLDER / "program")
    run(FOLDER / "program", "--data", FOLDER / "data", "--epochs", 2, "--lr", 0.01, "--log", FOLDER / "log.jsonl", "--export", FOLDER / "weights.safetensors",
        "--checkpoint", FOLDER / "run")
    with sluice.compile(path, optimizer="adamw") as trainer:
        losses = trainer.fit(((x[i:i + 8], y[i:i + 8]) for i in range(0, 50, 8)), epochs=1, lr=0.01)[0]
        losses += trainer.fit(x, y)[0]
        assert losses == of_steps(FOLDER / "log.jsonl", "loss"), "bits"
        state = trainer.state_dict()
        assert all(np.array_equal(state[name], value) for name, value in load(FOLDER / "weights.safetensors").items())
        trainer.export(FOLDER / "own.onnx")
        assert '"An example: plan of ' in trainer.report().text
        again = sluice.compile(path, optimizer="adamw")
        again.load(FOLDER / "run")
        assert again.steps == 12 and np.array_equal(again.read("conv.weight"), state["conv.weight"])
    raises(sluice.Error, "closed", trainer.step, x[:8], y[:8])


def cached_and_refused(x, y):
    path = FOLDER / "Net.onnx"
    heard = []
    before = set(pathlib.Path(os.environ["SLUICE_CACHE"]).iterdir())
    sluice.compile(path, optimizer="lion", compile_log=heard.append)
    assert any("predicted" in line for line in heard)
    made = set(pathlib.Path(os.environ["SLUICE_CACHE"]).iterdir()) - before
    trainer = sluice.compile(path, optimizer="lion", compile_log=lambda line: sys.exit("compiled again: " + line))
    assert len(made) == 1 and made <= set(pathlib.Path(os.environ["SLUICE_CACHE"]).iterdir())
    raises(sluice.NoMemory, "smallest feasible budget", sluice.compile, path, budget=1000)
    raises(sluice.NoMemory, "Net: a budget of 1000 bytes", sluice.compile, Net(), torch.zeros(8, 2, 4, 4), budget=1000)
    raises(sluice.UsageError, "--loss", sluice.compile, path, loss="beauty")
    raises(sluice.NoMemory, "memory_limit", sluice.compile, path, memory_limit=1000)
    raises(sluice.UsageError, "has the shape (4, 2, 4, 4), the model takes (8, 2, 4, 4)", trainer.step, x[:4], y[:4])
    raises(sluice.DataError, "must lie between 0 and 4", trainer.step, x[:8], y[:8] + 4)
    raises(TypeError, "'target' takes int64, not values of type float64", trainer.step, x[:8], y[:8] * 0.5)
    raises(ValueError, "'target' holds a whole number above", trainer.step, x[:8], np.full(8, 2**63, np.uint64))
    raises(ValueError, "missing [], unknown ['z']", trainer.step, {"x": x[:8], "z": x[:8]}, y[:8])
    raises(ValueError, "missing ['target']", trainer.step, x[:8])
    raises(ValueError, "one step takes 8", trainer.fit, x[:5], y[:5])
    raises(KeyError, "gone", trainer.read, "gone")
    raises(ZeroDivisionError, "", trainer.evaluate, x, y, progress=lambda done, of: 1 / 0)
    raises(sluice.Cancelled, "", trainer.evaluate, x, y, progress=lambda done, of: done < 16)
    raises(ValueError, "has the shape [5, 128], not [128, 5]", trainer.write, "head.weight", trainer.read("head.weight").T)
    raises(sluice.UsageError, "cannot call its own trainer", trainer.evaluate, x, y, progress=lambda done, of: trainer.steps)
    raises(TypeError, "copied", copy.copy, trainer)
    asked = threading.Thread(target=lambda: [trainer.evaluate(x, y) for _ in range(50)])
    asked.start()
    assert all(trainer.variables() for _ in range(200))
    asked.join()
    path.write_bytes((FOLDER / "own.onnx").read_bytes())
    raises(sluice.UsageError, "Net.onnx is no longer what this trainer was compiled from", trainer.report)
    assert to_array(torch._neg_view(torch.ones(2)), "float32").tolist() == [-1, -1] and to_array(torch.ones(2, dtype=torch.bfloat16), "float32").tolist() == [1, 1]
    shown = torch.zeros(3, 4, requires_grad=True)
    assert to_array(shown, "float32").ctypes.data == shown.data_ptr(), "a copy that nobody needs"
    assert np.shares_memory(next(iter(trainer._batches(x, y, False, 0)[1]))[0]["x"], x), "a copy that nobody needs"


def main():
    os.environ["SLUICE_CACHE"] = str(FOLDER / "cache")
    random = np.random.default_rng(1)
    x, y = random.random((50, 2, 4, 4), np.float32), random.integers(0, 5, 50)
    module = like_pytorch(x, y)
    roles_of_the_module(x, y)
    reported(x, y)
    like_the_program(module, x, y)
    cached_and_refused(x, y)


main()
