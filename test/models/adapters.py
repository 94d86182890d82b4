# SPDX-License-Identifier: Apache-2.0
"""Models with adapters for test/execute/adapters.test and added-adapters.test: as PEFT writes them, around layers whose weights lie either way.

    adapters.py make FOLDER           writes FOLDER/NAME.onnx of each model, its base as NAME-base.safetensors, data/ and names.toml
    adapters.py compare FOLDER NAME   that merged exports give what the model with its adapters gives
    adapters.py saved FOLDER          that a layer trained beside adapters is exported as PEFT's modules_to_save
    adapters.py bare FOLDER           writes FOLDER/NAME.onnx of models without adapters, data/ and adapters to begin with
    adapters.py added FOLDER NAME     that sluicec's adapters train as PyTorch's do
"""
import pathlib
import sys

import numpy as np
import torch
from torch import nn

SAMPLES, TOKENS, WIDTH, CLASSES, BATCH = 8, 6, 8, 5, 4


class Conv1D(nn.Module):
    """A Linear whose weight is [inputs, outputs], as transformers' GPT-2 has it."""
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs) * 0.3), nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], self.weight.shape[1])


class Adapted(nn.Module):
    def __init__(self, layer, rank, scale, names=("default",)):
        super().__init__()
        inputs, outputs = (layer.in_features, layer.out_features) if isinstance(layer, nn.Linear) else layer.weight.shape
        self.base_layer, self.scale, self.dropout = layer, scale, nn.Dropout(0.1)
        self.lora_A = nn.ModuleDict({name: nn.Linear(inputs, rank, bias=False) for name in names})
        self.lora_B = nn.ModuleDict({name: nn.Linear(rank, outputs, bias=False) for name in names})
        for matrix in self.lora_B.values():
            nn.init.normal_(matrix.weight, std=0.1)

    def forward(self, x):
        y = self.base_layer(x)
        for name in self.lora_A:
            y = y + self.lora_B[name](self.lora_A[name](self.dropout(x))) * self.scale
        return y


def adapt(model, matrices, targets, rank, scale):
    """Puts adapters of these matrices, without dropout, around the layers that targets name; returns what is trained, by the names that exports have."""
    for target in targets:
        adapted = Adapted(getattr(model, target), rank, scale)
        adapted.dropout = nn.Identity()
        for part in "AB":
            getattr(adapted, f"lora_{part}")["default"].weight.data = matrices[f"{target}.lora_{part}.weight"]
        setattr(model, target, adapted)
    return {key.replace(".default", ""): value for key, value in model.named_parameters() if ".lora_" in key}


def train_alike(folder, name, model, trained, batch, steps, rate):
    """Trains as program NAME did on FOLDER/data and compares the losses, and the gradients of the first step; returns the inputs."""
    import json
    from safetensors.torch import load_file
    x, y = (torch.from_numpy(np.load(folder / "data" / part)) for part in ("input.npy", "target.npy"))
    optimizer = torch.optim.SGD(trained.values(), rate, momentum=0.9)
    losses = [event["loss"] for event in map(json.loads, open(folder / f"{name}.jsonl")) if event["event"] == "step"]
    for step in range(steps):
        first = step * batch % len(x)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[first:first + batch]).flatten(0, -2), y[first:first + batch].flatten())
        loss.backward()
        np.testing.assert_allclose(losses[step], loss.item(), rtol=1e-5)
        if step == 0:
            gradients = load_file(folder / f"{name}.gradients")
            assert set(gradients) == set(trained), set(gradients) ^ set(trained)
            for key, value in trained.items():
                assert (gradients[key] - value.grad).norm() <= 1e-5 * value.grad.norm(), key
        optimizer.step()
    return x


class Model(nn.Module):
    """Layers of two and three dimensions, a sum that goes on, two adapters of one weight, a factor over the sum."""
    def __init__(self, adapted):
        super().__init__()
        adapt = Adapted if adapted else lambda layer, *_: layer
        self.q = adapt(nn.Linear(WIDTH, 12), 2, 2.0)
        self.v = adapt(nn.Linear(12, 12), 3, 0.5, ("default", "other"))
        self.plain = nn.Linear(12, 12)
        self.c = adapt(Conv1D(12, 10), 2, 4.0)
        self.head = adapt(nn.Linear(10, CLASSES, bias=False), 2, -1.5)

    def forward(self, x):
        x = torch.relu(self.q(x))
        x = x + self.v(x)
        x = torch.relu(self.c(self.plain(x)))
        return self.head(x.mean(1)) * 0.5


class Tied(nn.Module):
    """A weight that is read where its adapter is not."""
    def __init__(self):
        super().__init__()
        self.layer = Adapted(nn.Linear(WIDTH, WIDTH), 2, 2.0)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        x = torch.relu(self.layer(x))
        return self.head(torch.relu(nn.functional.linear(x, self.layer.base_layer.weight)).mean(1))


class Saved(nn.Module):
    """A layer that PEFT trains as a whole beside an adapter (modules_to_save), as its models have it."""
    def __init__(self):
        super().__init__()
        self.q, self.head = Adapted(nn.Linear(WIDTH, WIDTH), 2, 2.0), nn.Module()
        self.head.modules_to_save = nn.ModuleDict({"default": nn.Linear(WIDTH, CLASSES)})

    def forward(self, x):
        return self.head.modules_to_save["default"](torch.relu(self.q(x)).mean(1))


class Lookalikes(nn.Module):
    """Products beside a weight that cannot be added to it, or need not be: with a function between, of something else, as wide as the weight, read elsewhere."""
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.down = nn.ModuleList(nn.Linear(WIDTH, WIDTH if i == 2 else 2, bias=False) for i in range(4))
        self.up = nn.ModuleList(nn.Linear(WIDTH if i == 2 else 2, WIDTH, bias=False) for i in range(4))
        self.head = nn.Linear(WIDTH + 2, CLASSES)

    def forward(self, x):
        y = self.layers[0](x) + self.up[0](torch.relu(self.down[0](x)))
        y = self.layers[1](y) + self.up[1](self.down[1](x))
        y = self.layers[2](y) + self.up[2](self.down[2](y))
        narrow = self.down[3](y)
        y = self.layers[3](y) + self.up[3](narrow)
        return self.head(torch.cat([y, narrow], 2).mean(1))


def make(folder):
    from reference import export
    from safetensors.torch import save_file
    torch.manual_seed(1)
    for name, model, dynamo in (("legacy", Model(True), False), ("dynamo", Model(True), True), ("tied", Tied(), False), ("none", Lookalikes(), False), ("saved", Saved(), False)):
        export(model, torch.zeros(BATCH, TOKENS, WIDTH), folder / f"{name}.onnx", dynamo=dynamo)
        plain = {key.replace(".base_layer", ""): value for key, value in model.state_dict().items() if ".lora_" not in key}
        save_file({key: value + 0.01 for key, value in plain.items()}, folder / f"{name}-base.safetensors")
    (folder / "names.toml").write_text("""'(.*)[.]base_layer[.](.*)' = { name = "$1.$2", regex = true }\n""")
    write_data(folder)


def compare(folder, name):
    import onnx
    import onnxruntime
    from safetensors.torch import load_file
    x = np.load(folder / "data/input.npy")[:BATCH]

    def run(path):
        return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"input": x})[0]
    wanted = run(folder / f"{name}-tuned.onnx")
    np.testing.assert_allclose(run(folder / f"{name}-merged.onnx"), wanted, rtol=1e-4, atol=1e-5)
    base, merged = load_file(folder / f"{name}-base.safetensors"), load_file(folder / f"{name}-merged.safetensors")
    assert set(merged) == set(base), sorted(merged)  # the names of a model without adapters, and nothing else
    for key in merged:
        assert torch.equal(merged[key], base[key]) == (key.startswith("plain") or key.endswith("bias")), key
    model = Model(False)
    model.load_state_dict(merged)
    np.testing.assert_allclose(model.eval()(torch.from_numpy(x)).detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
    values = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(str(folder / f"{name}-merged.onnx")).graph.initializer}
    assert not any(value.any() for key, value in values.items() if "lora_B" in key)


def saved(folder):
    """What PEFT's file calls a layer that is trained as a whole, and that its numbers are the trained ones."""
    import json
    from safetensors.torch import load_file
    peft, trained = load_file(folder / "saved-peft/adapter_model.safetensors"), load_file(folder / "saved-trained.safetensors")
    own = {"base_model.model." + key.replace(".modules_to_save", "").replace(".default", ""): value for key, value in trained.items()}
    assert set(peft) == {f"base_model.model.{key}" for key in ("q.lora_A.weight", "q.lora_B.weight", "head.weight", "head.bias")}, sorted(peft)
    assert set(own) == set(peft) and all(torch.equal(own[key], peft[key]) for key in peft)
    assert json.loads((folder / "saved-peft/adapter_config.json").read_text())["modules_to_save"] == ["head"]
    again = load_file(folder / "saved-again.safetensors")  # of a program that took PEFT's file
    assert set(again) == set(trained) and all(torch.equal(again[key], trained[key]) for key in trained)


STEPS, RATE, RANK, SCALE = 4, 0.05, 2, 1.5
TARGETS = ("q", "v", "c", "head")


def write_data(folder):
    (folder / "data").mkdir()
    rng = np.random.default_rng(2)
    np.save(folder / "data/input.npy", rng.standard_normal((SAMPLES, TOKENS, WIDTH)).astype(np.float32))
    np.save(folder / "data/target.npy", rng.integers(CLASSES, size=SAMPLES))


def bare(folder):
    from reference import export
    from safetensors.torch import save_file
    torch.manual_seed(1)
    model = Model(False)
    for name, dynamo in (("legacy", False), ("dynamo", True)):
        export(model, torch.zeros(BATCH, TOKENS, WIDTH), folder / f"{name}.onnx", dynamo=dynamo)
    save_file(model.state_dict(), folder / "base.safetensors")
    shapes = {name: getattr(model, name).weight.shape if name == "c" else getattr(model, name).weight.shape[::-1] for name in TARGETS}
    adapters = {f"{name}.lora_{part}.weight": torch.randn((RANK, inputs) if part == "A" else (outputs, RANK)) * 0.3
                for name, (inputs, outputs) in shapes.items() for part in "AB"}
    save_file(adapters, folder / "adapters.safetensors")
    write_data(folder)


def added(folder, name):
    import onnxruntime
    from safetensors.torch import load_file
    model = Model(False)
    model.load_state_dict(load_file(folder / "base.safetensors"))
    trained = adapt(model, load_file(folder / "adapters.safetensors"), TARGETS, RANK, SCALE)
    optimizer = torch.optim.SGD(trained.values(), RATE, momentum=0.9)
    x, y = (torch.from_numpy(np.load(folder / "data" / part)) for part in ("input.npy", "target.npy"))
    for step in range(STEPS):
        batch = slice(step * BATCH % SAMPLES, step * BATCH % SAMPLES + BATCH)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()
    exported = load_file(folder / f"{name}-adapters.safetensors")
    assert set(exported) == set(trained), sorted(exported)
    for key, value in trained.items():
        np.testing.assert_allclose(exported[key].numpy(), value.detach().numpy(), rtol=1e-4, atol=1e-6, err_msg=key)
    merged = Model(False)
    merged.load_state_dict(load_file(folder / f"{name}-merged.safetensors"))
    wanted = model.eval()(x[:BATCH]).detach().numpy()
    np.testing.assert_allclose(merged.eval()(x[:BATCH]).detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
    for path in (f"{name}-tuned.onnx", f"{name}-merged.onnx"):
        got = onnxruntime.InferenceSession(str(folder / path), providers=["CPUExecutionProvider"]).run(None, {"input": x[:BATCH].numpy()})[0]
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5, err_msg=path)
    import json
    peft, config = load_file(folder / f"{name}-peft/adapter_model.safetensors"), json.loads((folder / f"{name}-peft/adapter_config.json").read_text())
    assert {key.removeprefix("base_model.model.") for key in peft} == set(trained) and all(key.startswith("base_model.model.") for key in peft)
    assert all(torch.equal(peft["base_model.model." + key], value) for key, value in exported.items())
    assert (config["r"], config["lora_alpha"], config["target_modules"], config["modules_to_save"]) == (RANK, SCALE * RANK, sorted(TARGETS), None), config
    # As PEFT draws them: A evenly within 1 / sqrt(inputs), B zeros; other seeds, other numbers.
    first, second = (load_file(folder / f"{name}-seed{seed}.safetensors") for seed in (1, 2))
    for key, value in first.items():
        bound = value.shape[1]**-0.5
        assert not value.any() if "lora_B" in key else 0.7 * bound < value.abs().max() <= bound, key
        assert ("lora_B" in key) == torch.equal(value, second[key]), key


if __name__ == "__main__":
    {"make": make, "compare": compare, "saved": saved, "bare": bare, "added": added}[sys.argv[1]](pathlib.Path(sys.argv[2]), *sys.argv[3:])
