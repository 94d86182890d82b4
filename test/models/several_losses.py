# SPDX-License-Identifier: Apache-2.0
"""Models, data and PyTorch's losses and gradients for test/execute/several-losses.test, ctc.test and emulated-losses.test.

    several_losses.py make FOLDER            writes them
    several_losses.py compare FOLDER NAME    what the program of a model logged (NAME.jsonl), dumped (NAME.gradients) and, of `heads`, predicted (p.npz), against them

`heads`: one trunk, three outputs with a loss each, of which two share their targets, and an output without one. `times`: CTC of a model that ends in a
log-softmax and has time in front, targets padded with the blank. `lengths`: CTC of plain scores with the batch in front, lengths as arrays of their own, one target
too long for its steps.
"""
import json
import pathlib
import sys

import numpy

STEPS, RATE, BATCH, SAMPLES, IGNORED = 4, 0.2, 4, 10, -1


def models(torch):
    torch.manual_seed(5)

    class Heads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk = torch.nn.Sequential(torch.nn.Conv2d(2, 8, 3, padding=1), torch.nn.Tanh(), torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.Tanh(), torch.nn.Conv2d(8, 8, 3, padding=1))
            self.logits, self.aux, self.boxes = torch.nn.Linear(8, 4), torch.nn.Linear(8, 4), torch.nn.Linear(8, 3)

        def forward(self, x):
            features = self.trunk(x).relu().mean((2, 3))
            return self.logits(features), self.aux(features), self.boxes(features), features.tanh()

    class Scores(torch.nn.Sequential):
        def __init__(self, *last):
            super().__init__(torch.nn.Linear(5, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 6), *last)

    return {"heads": Heads(), "times": Scores(torch.nn.LogSoftmax(2)), "lengths": Scores()}


def arrays(torch):
    torch.manual_seed(7)  # no batch without a class that counts: PyTorch's loss of such a one is 0/0
    classes = torch.randint(0, 4, (SAMPLES,))
    classes[torch.rand(SAMPLES) < 0.3] = IGNORED
    labels = torch.tensor([[1, 2, 2, 0], [3, 0, 0, 0], [5, 4, 3, 2], [1, 1, 0, 0], [0, 0, 0, 0], [4, 4, 4, 0], [2, 3, 0, 0], [5, 1, 5, 1], [3, 2, 1, 0], [1, 0, 0, 0]])
    counts = (labels != 0).sum(1)
    return {"heads": {"input": torch.randn(SAMPLES, 2, 12, 10), "class": classes, "target_boxes": torch.randn(SAMPLES, 3)},
            "times": {"input": torch.randn(SAMPLES, 9, 5), "target": labels},
            "lengths": {"input": torch.randn(SAMPLES, 9, 5), "target": (labels + 5) % 6, "steps": torch.tensor([9, 7, 2, 5, 1, 9, 4, 8, 6, 3]), "labels": counts}}


def losses_of(torch, name, model, a, s):
    """The loss of samples, and its parts."""
    entropy = torch.nn.CrossEntropyLoss(ignore_index=IGNORED)
    if name == "heads":
        logits, aux, boxes, _ = model(a["input"][s])
        parts = [entropy(logits, a["class"][s]), entropy(aux, a["class"][s]), torch.nn.functional.mse_loss(boxes, a["target_boxes"][s])]
        return parts[0] + 0.3 * parts[1] + 0.5 * parts[2], parts
    if name == "times":
        scores = model(a["input"][s].transpose(0, 1))
        counts = (a["target"][s] != 0).sum(1)
        return torch.nn.CTCLoss()(scores, a["target"][s], torch.full_like(counts, 9), counts), []
    scores = model(a["input"][s]).log_softmax(2).transpose(0, 1)
    return torch.nn.CTCLoss(blank=5, zero_infinity=True)(scores, a["target"][s], a["steps"][s], a["labels"][s]), []


def make(folder):
    import torch
    from safetensors.torch import save_file
    data, expected = arrays(torch), {}
    for name, model in models(torch).items():
        a = data[name]
        example = a["input"][:BATCH].transpose(0, 1) if name == "times" else a["input"][:BATCH]
        torch.onnx.export(model, example, folder / f"{name}.onnx", input_names=["x"], output_names=["logits", "aux", "boxes", "features"] if name == "heads" else ["y"],
                          dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
        (folder / f"{name}-data").mkdir()
        for array, values in a.items():
            numpy.save(folder / f"{name}-data" / f"{array}.npy", values.numpy())
        optimizer, steps = torch.optim.SGD(model.parameters(), RATE), []
        for i in range(STEPS):
            optimizer.zero_grad()
            loss, parts = losses_of(torch, name, model, a, slice(BATCH * (i % 2), BATCH * (i % 2) + BATCH))
            loss.backward()
            if i == 0:
                save_file({key: value.grad.clone() for key, value in model.named_parameters()}, folder / f"{name}.reference")
            optimizer.step()
            steps.append([loss.item()] + [part.item() for part in parts])
        whole, parts = losses_of(torch, name, model, a, slice(None))
        expected[name] = {"steps": steps, "whole": [whole.item()] + [part.item() for part in parts]}
        if name == "heads":
            outputs = model(a["input"])
            counted = a["class"] != IGNORED
            expected[name]["accuracy"] = (outputs[0].argmax(1) == a["class"])[counted].float().mean().item()
            expected[name]["mae"] = (outputs[2] - a["target_boxes"]).abs().mean().item()
            expected[name]["outputs"] = {key: value.tolist() for key, value in zip(("logits", "aux", "boxes", "features"), outputs)}
    (folder / "expected.json").write_text(json.dumps(expected))


def compare(folder, name):
    from safetensors.numpy import load_file
    expected = json.loads((folder / "expected.json").read_text())[name]
    keys = ["loss"] + (["logits.loss", "aux.loss", "boxes.loss"] if name == "heads" else [])
    lines = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    numpy.testing.assert_allclose([[line[key] for key in keys] for line in lines if line["event"] == "step"], expected["steps"], rtol=1e-5)
    found, wanted = load_file(folder / f"{name}.gradients"), load_file(folder / f"{name}.reference")
    assert set(found) == set(wanted), set(found) ^ set(wanted)
    for key, value in wanted.items():
        assert numpy.abs(found[key] - value).max() <= 1e-5 * numpy.abs(value).max(), key
    measured = [line for line in lines if line["event"] == "evaluate"][-1:]
    for line in measured:
        numpy.testing.assert_allclose([line[key] for key in keys], expected["whole"], rtol=1e-5)
        if name == "heads":
            numpy.testing.assert_allclose([line["logits.accuracy"], line["boxes.mae"]], [expected["accuracy"], expected["mae"]], rtol=1e-5)
            assert line["samples"] == SAMPLES
    if name == "heads" and (folder / "p.npz").exists():
        predicted = numpy.load(folder / "p.npz")
        assert set(predicted.files) == {"sample", "logits", "aux", "boxes", "features"}, predicted.files
        for key, values in expected["outputs"].items():
            numpy.testing.assert_allclose(predicted[key], values, rtol=1e-4, atol=1e-5, err_msg=key)


if __name__ == "__main__":
    {"make": make, "compare": compare}[sys.argv[1]](pathlib.Path(sys.argv[2]), *sys.argv[3:])
