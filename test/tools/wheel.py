# SPDX-License-Identifier: Apache-2.0
"""What an installed wheel does from Python, for wheel.sh.

    wheel.py onnx FOLDER      FOLDER has model.onnx and its data: training it here has the bits of its program
    wheel.py torch FOLDER     so has a module of PyTorch, in five lines, those of the program of its file
    wheel.py nothing FOLDER   there is no C++ compiler: an exception says what to install"""
import json
import pathlib
import subprocess
import sys

import numpy as np

import sluice


def weights(path):
    """Of a safetensors file, by their names."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = {name: one for name, one in json.loads(data[8:begin]).items() if name != "__metadata__"}
    return {name: np.frombuffer(data[begin:], np.uint8)[slice(*one["data_offsets"])].view(np.float32).reshape(one["shape"]) for name, one in tensors.items()}


def of_program(model, folder, flags, training):
    """The weights that the program of a model ends with."""
    for words in (["sluicec", model, *flags, "--force", "-o", folder / "program"], [folder / "program", *training, "--export", folder / "weights.safetensors"]):
        subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
    return weights(folder / "weights.safetensors")


def compare(state, expected):
    assert expected and all(np.array_equal(np.asarray(state[name]), value) for name, value in expected.items()), "bits"
    print(f"{len(expected)} tensors have the bits of the program")


def onnx(folder):
    expected = of_program(folder / "model.onnx", folder, ["--batch=8"], ["--data", folder / "data", "--epochs", "2", "--lr", "0.1"])
    x, y = (np.load(folder / f"data/{name}.npy") for name in ("input", "target"))
    trainer = sluice.compile(folder / "model.onnx", batch=8)
    trainer.fit(x, y, epochs=2, lr=0.1)
    compare(trainer.state_dict(), expected)


def torch(folder):
    import torch
    from safetensors.torch import save_file
    from sluice._compiler import export
    torch.manual_seed(1)
    layers = [layer for i in range(6) for layer in (torch.nn.Conv2d(8 if i else 2, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU())]
    module = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 5))
    rng, example = np.random.default_rng(0), torch.zeros(16, 2, 16, 16)
    images, labels = rng.standard_normal((48, 2, 16, 16), dtype=np.float32), rng.integers(5, size=48)
    data = folder / "images"
    data.mkdir()
    np.save(data / "input.npy", images), np.save(data / "target.npy", labels)
    first = data / "first.safetensors"  # exporting moves running statistics, of the file alone
    save_file({name: value for name, value in module.state_dict().items() if value.is_floating_point()}, first)
    training = ["--init", first, "--data", data, "--epochs", "3", "--lr", "3e-4"]
    expected = of_program(export(module, example, data), folder, ["--memory-budget=60%", "--optimizer=adamw"], training)

    trainer = sluice.compile(module, example, budget="60%", optimizer="adamw")
    trainer.fit(images, labels, epochs=3, lr=3e-4)
    module.load_state_dict(trainer.state_dict())
    compare(module.state_dict(), expected)


def nothing(folder):
    try:
        sluice.compile(folder / "model.onnx", batch=8, optimizer="lion")
    except sluice.Error as error:
        assert str(error).startswith(f"{folder}/model.onnx: there is no C++ compiler") and "install one (Debian, Ubuntu: g++; Fedora: gcc-c++)" in str(error), error
        print(f"without a C++ compiler: {error}")
    else:
        raise AssertionError("compiled without a C++ compiler")


{"onnx": onnx, "torch": torch, "nothing": nothing}[sys.argv[1]](pathlib.Path(sys.argv[2]))
