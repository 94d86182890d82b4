# SPDX-License-Identifier: Apache-2.0
"""A model with BatchNorm and Dropout, data, and what PyTorch makes of whole steps, for test/execute/ranks-norm.test.

    synchronized.py make FOLDER                     writes model.onnx, data, and weights of STEPS steps of UNITS * BATCH samples each
    synchronized.py compare FOLDER LOG CHECKPOINT   losses and weights of a run of UNITS ranks against them

Pixels have a class each, or none (IGNORED): more of them in some batches than in others, and in one batch all."""
import json
import pathlib
import struct
import sys

import numpy

STEPS, RATE, UNITS, BATCH, IGNORED = 5, 0.2, 4, 2, 255


def make(folder):
    import torch
    torch.manual_seed(3)
    layers = [torch.nn.Conv2d(3, 8, 3, padding=1, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, padding=1, stride=2),
              torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Conv2d(8, 4, 1)]
    model = torch.nn.Sequential(*layers)
    x = torch.randn(STEPS * UNITS * BATCH, 3, 8, 8) * 2 + 1
    y = torch.randint(0, 4, (len(x), 4, 4))
    for unit in range(len(x) // BATCH):  # of the four of a step: none, a third, two thirds, all
        y[unit * BATCH:(unit + 1) * BATCH][torch.rand(BATCH, 4, 4) < unit % UNITS / 3] = IGNORED
    torch.onnx.export(model, x[:BATCH], folder / "model.onnx", input_names=["x"], output_names=["y"], dynamo=False,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    (folder / "data").mkdir()
    numpy.save(folder / "data/input.npy", x.numpy())
    numpy.save(folder / "data/target.npy", y.numpy())
    model[6] = torch.nn.Identity()
    optimizer, losses = torch.optim.SGD(model.parameters(), RATE), []
    for step in range(STEPS):
        some = slice(step * UNITS * BATCH, (step + 1) * UNITS * BATCH)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x[some]), y[some], ignore_index=IGNORED)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    numpy.savez(folder / "expected.npz", losses=losses, **{name: value.numpy() for name, value in model.state_dict().items() if "num_batches" not in name})


def compare(folder, log, checkpoint):
    expected = numpy.load(folder / "expected.npz")
    with open(log) as file:
        losses = [event["loss"] for event in map(json.loads, file) if event["event"] == "step"]
    data = pathlib.Path(checkpoint).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    for name in expected:
        if name == "losses":
            values = numpy.array(losses)
        else:
            entry = header[name]
            values = numpy.frombuffer(data[8 + length:][slice(*entry["data_offsets"])], numpy.float32).reshape(entry["shape"])
        wanted = expected[name].astype(numpy.float64)
        error = numpy.linalg.norm(values - wanted) / max(numpy.linalg.norm(wanted), 1e-30)
        print(f"{name} {error:.1e}")
        assert error < 1e-5, f"{name} differs by {error:.1e} of {wanted}"


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(pathlib.Path(sys.argv[2]))
    else:
        compare(pathlib.Path(sys.argv[2]), *sys.argv[3:])
