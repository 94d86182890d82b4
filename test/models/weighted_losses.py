# SPDX-License-Identifier: Apache-2.0
"""Models, data and PyTorch's losses for test/execute/weighted-losses.test.

    weighted_losses.py make FOLDER       writes them
    weighted_losses.py compare FOLDER    what programs logged and predicted against them
    weighted_losses.py large FOLDER      losses and weights of steps of two batches against those of one of both
    weighted_losses.py answers FOLDER    the same of answers of yes or no

`classes`: three classes of pixels with weights, one of them 0, and ignored targets. `own`: a model that ends in a loss of its own, a mean of weighted
differences, and gives what it predicts as its second output, which needs a softmax that the loss does not. `labels`: five answers of yes or no, some between
them and some ignored, with a weight of yes for each; `maps`: three answers a pixel, weighed by channel; `tags`: four for each of three tokens, all weighed alike.
"""
import json
import pathlib
import sys

import numpy

WEIGHTS, IGNORED, STEPS, RATE = [1, 0.25, 3], 255, 6, 0.2
POSITIVES = {"labels": [2.0, 0.5, 3.0, 1.0, 10.0], "maps": [[[2.0]], [[0.5]], [[4.0]]], "tags": [3.5]}


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


def steps(torch, model, loss_of, size):
    optimizer, losses = torch.optim.SGD(model.parameters(), RATE), []
    for i in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(slice(4 * i % 8, 4 * i % 8 + 4) if size == 4 else slice(0, 8))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def answers(torch, folder):
    """Losses of models of answers, by steps of 4 samples and of 8."""
    torch.manual_seed(4)
    models = {"labels": torch.nn.Sequential(torch.nn.Linear(6, 7), torch.nn.Tanh(), torch.nn.Linear(7, 5)),
              "maps": torch.nn.Conv2d(2, 3, 3, padding=1), "tags": torch.nn.Linear(5, 4)}
    inputs = {"labels": torch.randn(8, 6), "maps": torch.randn(8, 2, 5, 4), "tags": torch.randn(8, 3, 5)}
    expected = {}
    for name, model in models.items():
        x, first = inputs[name], {key: value.clone() for key, value in model.state_dict().items()}
        target = torch.randint(0, 2, model(x).shape).float()
        target[torch.rand(target.shape) < 0.2] = 0.25
        if name == "labels":
            target[:3][torch.rand(3, 5) < 0.7] = IGNORED
        torch.onnx.export(model, x[:4], folder / f"{name}.onnx", input_names=["x"], output_names=["y"], dynamo=False,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
        (folder / f"{name}-data").mkdir()
        numpy.save(folder / f"{name}-data" / "input.npy", x.numpy())
        numpy.save(folder / f"{name}-data" / "target.npy", target.numpy())

        def loss_of(s):
            each = torch.nn.functional.binary_cross_entropy_with_logits(model(x[s]), target[s], pos_weight=torch.tensor(POSITIVES[name]), reduction="none")
            return each[target[s] != IGNORED].mean()
        for size in (4, 8):
            model.load_state_dict(first)
            expected[f"{name}{size}"] = steps(torch, model, loss_of, size)
            expected[f"{name}{size}-after"] = loss_of(slice(0, 8)).item()
    return expected


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
    losses = {name: steps(torch, model, loss_of, 4) for name, model, loss_of in (("classes", pixels, lambda s: entropy(pixels(x[s]), wanted[s])),
                                                                                ("own", own, lambda s: own(features[s], numbers[s])[0]))}
    right = (pixels(x).argmax(1) == wanted)[wanted != IGNORED].float().mean().item()
    (folder / "expected.json").write_text(json.dumps({"losses": losses, "accuracy": right, "p": own(features, numbers)[1].tolist(), "answers": answers(torch, folder)}))


def compare_answers(folder):
    expected = json.loads((folder / "expected.json").read_text())["answers"]
    for log in sorted(folder.glob("*[48].jsonl")):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        found = [line["loss"] for line in lines if line["event"] == "step"]
        numpy.testing.assert_allclose(found, expected[log.stem], rtol=1e-5, err_msg=log.stem)
        after = [line["loss"] for line in lines if line["event"] == "evaluate"][-1]
        numpy.testing.assert_allclose(after, expected[f"{log.stem}-after"], rtol=1e-5, err_msg=log.stem)
        print(log.stem, "as PyTorch")


def large(folder):
    import torch
    from safetensors.numpy import load_file
    pixels = models(torch)[0].double()
    x, wanted = (torch.from_numpy(numpy.load(folder / f"classes-data/{name}.npy")) for name in ("input", "target"))
    x, weights = x.double(), torch.tensor(WEIGHTS, dtype=torch.float64)
    entropy = torch.nn.CrossEntropyLoss(weight=weights, ignore_index=IGNORED)
    losses = steps(torch, pixels, lambda s: entropy(pixels(x[s]), wanted[s]), 8)
    lines = [json.loads(line) for line in (folder / "classes8.log").read_text().splitlines()]
    numpy.testing.assert_allclose([line["loss"] for line in lines if line["event"] == "step"], losses, rtol=1e-6)
    lines += [json.loads(line) for line in (folder / "fives.log").read_text().splitlines()]
    evaluations = [line["loss"] for line in lines if line["event"] == "evaluate"][-2:]
    numpy.testing.assert_allclose(evaluations, [entropy(pixels(x), wanted).item()] * 2, rtol=1e-6)
    found = load_file(folder / "classes8.safetensors")
    for name, value in pixels.state_dict().items():
        numpy.testing.assert_allclose(found[name], value.numpy(), rtol=1e-6, atol=1e-7, err_msg=name)
    sums = [weights[half[half != IGNORED]].sum().item() for half in (wanted[:4], wanted[4:])]
    counts = [int((half != IGNORED).sum()) for half in (wanted[:4], wanted[4:])]
    assert abs(sums[0] / sum(sums) - counts[0] / sum(counts)) > 0.04, (sums, counts)
    print(f"sums of weights {sums[0]:.2f} and {sums[1]:.2f}: as one large batch")


def compare_measures(folder, mae):
    """Of the output that is no loss, by itself and by its name."""
    p, wanted = (numpy.array(values, dtype=float) for values in (json.loads((folder / "expected.json").read_text())["p"], numpy.load(folder / "own-data/wanted.npy")))
    named = [line for line in map(json.loads, (folder / "own.named").read_text().splitlines()) if line["event"] == "evaluate"][-1]
    numpy.testing.assert_allclose([mae, named["mae"]], abs(p - wanted).mean(), rtol=1e-5)


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
            compare_measures(folder, [line for line in lines if line["event"] == "evaluate"][-1]["mae"])
    numpy.testing.assert_allclose(numpy.load(folder / "p.npy"), expected["p"], rtol=1e-5)


if __name__ == "__main__":
    {"make": make, "compare": compare, "large": large, "answers": compare_answers}[sys.argv[1]](pathlib.Path(sys.argv[2]))
