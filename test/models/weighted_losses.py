# SPDX-License-Identifier: Apache-2.0
"""Models, data and PyTorch's losses for test/execute/weighted-losses.test.

    weighted_losses.py make FOLDER       writes them
    weighted_losses.py compare FOLDER    what programs logged and predicted against them

`classes`: three classes of pixels with weights, one of them 0, and ignored targets. `own`: a model that ends in a loss of its own, a mean of weighted
differences, and gives what it predicts as its second output, which needs a softmax that the loss does not.
"""
import json
import pathlib
import sys

import numpy

WEIGHTS, IGNORED, STEPS, RATE = [1, 0.25, 3], 255, 6, 0.2


def models(torch):
    torch.manual_seed(3)
    pixels = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 3, 1))

    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(5, 3)

        def forward(self, x, wanted):
            scores = self.fc(x)
            return ((scores - wanted).abs() * torch.tensor([1.0, 2.0, 0.5])).mean(), scores.softmax(1)

    return pixels, Own()


def make(folder):
    import torch
    pixels, own = models(torch)
    x, wanted = torch.randn(8, 2, 5, 4), torch.randint(0, 3, (8, 5, 4))
    wanted[torch.rand(wanted.shape) < 0.2] = IGNORED
    features, numbers = torch.randn(8, 5), torch.randn(8, 3)
    export = dict(dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    torch.onnx.export(pixels, x[:4], folder / "classes.onnx", input_names=["x"], **export)
    torch.onnx.export(own, (features[:4], numbers[:4]), folder / "own.onnx", input_names=["x", "wanted"], output_names=["loss", "p"], **export)
    for name, arrays in {"classes": {"input": x, "target": wanted}, "own": {"x": features, "wanted": numbers}}.items():
        (folder / f"{name}-data").mkdir()
        for array, values in arrays.items():
            numpy.save(folder / f"{name}-data" / f"{array}.npy", values.numpy())
    entropy = torch.nn.CrossEntropyLoss(weight=torch.tensor(WEIGHTS, dtype=torch.float32), ignore_index=IGNORED)
    losses = {}
    for name, model, step in (("classes", pixels, lambda s: entropy(pixels(x[s]), wanted[s])), ("own", own, lambda s: own(features[s], numbers[s])[0])):
        optimizer = torch.optim.SGD(model.parameters(), RATE)
        losses[name] = []
        for i in range(STEPS):
            optimizer.zero_grad()
            loss = step(slice(4 * (i % 2), 4 * (i % 2) + 4))
            loss.backward()
            optimizer.step()
            losses[name].append(loss.item())
    right = (pixels(x).argmax(1) == wanted)[wanted != IGNORED].float().mean().item()
    (folder / "expected.json").write_text(json.dumps({"losses": losses, "accuracy": right, "p": own(features, numbers)[1].tolist()}))


def compare(folder):
    expected = json.loads((folder / "expected.json").read_text())
    for name, losses in expected["losses"].items():
        lines = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        found = [line["loss"] for line in lines if line["event"] == "step"]
        numpy.testing.assert_allclose(found, losses, rtol=1e-5, err_msg=name)
        if name == "classes":
            numpy.testing.assert_allclose([line["accuracy"] for line in lines if line["event"] == "evaluate"], expected["accuracy"], rtol=1e-6)
        else:
            assert [set(line) & {"mae", "accuracy"} for line in lines if line["event"] == "evaluate"] == [{"mae"}], "only what was asked for"
    numpy.testing.assert_allclose(numpy.load(folder / "p.npy"), expected["p"], rtol=1e-5)


if __name__ == "__main__":
    {"make": make, "compare": compare}[sys.argv[1]](pathlib.Path(sys.argv[2]))
