# SPDX-License-Identifier: Apache-2.0
"""A model with adapters over weights in fewer bits, for test/execute/frozen-forms.test: an embedding table that is tied to the head, layers whose weights lie either
way, of odd extents.

    frozen_forms.py make FOLDER             writes FOLDER/model.onnx, base.safetensors, adapters.safetensors and data/
    frozen_forms.py compare FOLDER NAME     that program NAME, whose weights are read from NAME.safetensors, trains as PyTorch does on what they stand for:
                                            losses, gradients of the first step, adapters after the last, exports
    frozen_forms.py sizes FOLDER LINE FLOATS FORM   that the base of the explained plan FORM is smaller than that of FLOATS by what LINE, what sluicec said, tells
"""
import pathlib
import re
import sys

import numpy as np
import torch
from torch import nn

from adapters import Conv1D, adapt, train_alike

SAMPLES, TOKENS, BATCH, WORDS, WIDTH, ODD, STEPS, RATE, RANK, SCALE = 8, 6, 4, 96, 64, 67, 4, 0.05, 2, 1.5
TARGETS = ("q", "v", "c")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.q, self.v, self.c = nn.Linear(WIDTH, ODD), nn.Linear(ODD, 70), Conv1D(70, WIDTH)

    def forward(self, ids):
        x = self.words(ids)
        x = torch.relu(self.q(x))
        x = torch.tanh(self.v(x) * 0.2)
        return nn.functional.linear(self.c(x) * 0.1, self.words.weight)


def make(folder):
    from reference import export
    from safetensors.torch import save_file
    torch.manual_seed(3)
    model = Model()
    export(model, torch.zeros(BATCH, TOKENS, dtype=torch.int64), folder / "model.onnx")
    save_file({key: value + 0.01 for key, value in model.state_dict().items()}, folder / "base.safetensors")
    shapes = {"q": (WIDTH, ODD), "v": (ODD, 70), "c": (70, WIDTH)}
    save_file({f"{name}.lora_{part}.weight": torch.randn((RANK, inputs) if part == "A" else (outputs, RANK)) * 0.2
               for name, (inputs, outputs) in shapes.items() for part in "AB"}, folder / "adapters.safetensors")
    (folder / "data").mkdir()
    rng = np.random.default_rng(2)
    np.save(folder / "data/input.npy", rng.integers(WORDS, size=(SAMPLES, TOKENS)))
    np.save(folder / "data/target.npy", rng.integers(WORDS, size=(SAMPLES, TOKENS)))


# Of 4 bits, as QLoRA's appendix has them.
NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534,
                0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0], np.float32)


def restored(form, shape, bits, group, dimension, coding):
    """What runtime/Quantization.h says of the bytes, element by element."""
    if bits == 16:
        return form.float()
    data, (rows, columns) = form.numpy().tobytes(), shape
    groups = -(-(rows, columns)[dimension] // group)
    count = groups * (columns if dimension == 0 else rows)

    def table(number):
        part = np.frombuffer(data, np.float32, count, 4 * count * number)
        return part.reshape((groups, columns) if dimension == 0 else (rows, groups)).repeat(group, dimension)[:rows, :columns]
    start, width = -(-4 * count * (2 if coding == "Asymmetric" else 1) // 64) * 64, columns if bits == 8 else (columns + 1) // 2
    codes = np.frombuffer(data, np.uint8, rows * width, start).reshape(rows, width)
    assert len(data) == start + rows * width
    if bits == 4:
        codes = np.concatenate([codes & 15, codes >> 4], 1)[:, :columns]
    numbers = NF4[codes] if coding == "NormalFloat" else codes.astype(np.float32) - (table(1) if coding == "Asymmetric" else 2**(bits - 1))
    return torch.from_numpy(numbers * table(0))


def floats_of(folder, name, reference):
    """The weights that a program begins with, as floats: the forms that its source names."""
    from safetensors.torch import load_file
    held = load_file(folder / f"{name}.safetensors")
    rows = re.findall(r'\{"([\w.]+)",[^{}]*\snullptr,\s*\{(\d+), (\d+), (\d), (\d+), (\d+)(?:, Coding::(\w+))?\}\},', (folder / f"{name}.cpp").read_text())
    forms = {row[0]: (*map(int, row[1:6]), row[6]) for row in rows}
    weights = {}
    for key, value in reference.items():
        bits, group, dimension, *shape, coding = forms.get(key, (0, 0, 0, ""))
        assert coding == ({"asymmetric": "Asymmetric", "nf4": "NormalFloat"}.get(name, "") if bits else ""), (key, coding)
        weights[key] = restored(held[key], shape, bits, group, dimension, coding) if bits else held[key]
        error = ((weights[key] - value).norm() / value.norm()).item()
        assert (error == 0) == (bits == 0) and error < {0: 1e-9, 16: 3e-3, 8: 1e-2, 4: 0.15}[bits], (key, bits, error)
    return weights, forms


def compare(folder, name):
    import onnxruntime
    from safetensors.torch import load_file
    model = Model()
    reference = onnx_weights(folder)
    weights, forms = floats_of(folder, name, reference)
    assert set(forms) == ({"words.weight"} if "bf16" not in name else set()) | {f"{target}.weight" for target in TARGETS}, forms
    # Groups lie along what products sum over: rows of [outputs, inputs], columns of Conv1D's [inputs, outputs].
    assert "bf16" in name or {key: form[2] for key, form in forms.items()} == {"words.weight": 1, "q.weight": 1, "v.weight": 1, "c.weight": 0}, forms
    model.load_state_dict(weights)
    exported = load_file(folder / f"{name}-whole.safetensors")
    assert all(torch.equal(exported[key], value) for key, value in weights.items())
    scores = {path: onnxruntime.InferenceSession(str(folder / path), providers=["CPUExecutionProvider"]) for path in (f"{name}-tuned.onnx", f"{name}-merged.onnx")}
    trained = adapt(model, load_file(folder / "adapters.safetensors"), TARGETS, RANK, SCALE)
    x = train_alike(folder, name, model, trained, BATCH, STEPS, RATE)
    tuned = load_file(folder / f"{name}-adapters.safetensors")
    for key, value in trained.items():
        np.testing.assert_allclose(tuned[key].numpy(), value.detach().numpy(), rtol=1e-4, atol=1e-6, err_msg=key)
    wanted = model.eval()(x[:BATCH]).detach().numpy()
    merged = Model()
    merged.load_state_dict(load_file(folder / f"{name}-merged.safetensors"))  # strictly: its names and nothing else
    np.testing.assert_allclose(merged.eval()(x[:BATCH]).detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
    for path, session in scores.items():
        np.testing.assert_allclose(session.run(None, {"input": x[:BATCH].numpy()})[0], wanted, rtol=1e-4, atol=1e-5, err_msg=path)


def onnx_weights(folder):
    import onnx
    graph = onnx.load(str(folder / "model.onnx")).graph
    wanted = set(Model().state_dict())
    return {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in graph.initializer if t.name in wanted}


def sizes(folder, line, floats, form):
    said = re.search(r"note: (\d+) of the \d+ tensors that flags hold fixed are kept in .*: (\d+) bytes instead of (\d+), (\d+) less", (folder / line).read_text())
    count, after, before, less = map(int, said.groups())
    assert less == before - after and count > 0
    base = [int(re.search(r"of which (\d+) live through the whole step", (folder / path).read_text())[1]) for path in (floats, form)]
    assert abs(base[0] - base[1] - less) < 256 * count, (base, less)
    smallest = [int(re.search(r"smallest feasible budget: (\d+) bytes", (folder / path).read_text())[1]) for path in (floats, form)]
    # What one matrix takes as floats comes to the peak, where nothing else is larger.
    assert less - 4 * 96 * 64 - 256 * count <= smallest[0] - smallest[1] <= less + 256 * count, (smallest, less)


if __name__ == "__main__":
    {"make": make, "compare": compare, "sizes": sizes}[sys.argv[1]](pathlib.Path(sys.argv[2]), *sys.argv[3:])
