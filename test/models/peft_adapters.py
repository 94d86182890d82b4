# SPDX-License-Identifier: Apache-2.0
"""Adapters as PEFT itself makes and trains them, for test/execute/peft-adapters.test: LoRA and DoRA beside convolutions and matrices.

    peft_adapters.py make FOLDER             writes FOLDER/model.onnx, base.safetensors and data/, and of each kind FOLDER/KIND-peft, a folder of PEFT's with adapters
                                             to begin with
    peft_adapters.py compare FOLDER KIND     that program KIND trained them as PEFT does: losses, gradients of the first step, tensors after the last; that PEFT reads what
                                             it wrote, and merges to what it merged
    peft_adapters.py same FOLDER FILES       that exported models give the same, and not what the model gave in the beginning
    peft_adapters.py lengths FOLDER FILE     that the magnitudes in FILE are the lengths of the base's weights
"""
import pathlib
import sys

import numpy as np
import torch
from torch import nn

SAMPLES, BATCH, STEPS, RATE, CLASSES = 8, 4, 4, 0.05, 5


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Conv2d(8, 12, 1, bias=False)
        self.line = nn.Conv1d(12, 10, 3, padding=1)
        self.biased, self.bare, self.head = nn.Linear(10 * 16, 32), nn.Linear(32, 20, bias=False), nn.Linear(20, CLASSES)

    def forward(self, x):
        x = torch.tanh(self.second(torch.tanh(self.first(x))))
        x = torch.tanh(self.line(x.flatten(2)))
        x = torch.tanh(self.biased(x.flatten(1)))
        x = torch.tanh(self.bare(x.unsqueeze(1)).squeeze(1))
        return self.head(x)


def base(folder):
    from safetensors.torch import load_file
    model = Model()
    model.load_state_dict(load_file(folder / "base.safetensors"))
    return model


KINDS = {"lora": {"target_modules": ["first", "second", "line", "bare"]}, "dora": {"target_modules": ["first", "second", "line", "biased", "bare"], "use_dora": True}}


def make(folder):
    import peft
    from reference import export
    from safetensors.torch import save_file
    torch.manual_seed(2)
    model = Model()
    export(model, torch.zeros(BATCH, 3, 8, 8), folder / "model.onnx")
    save_file(model.state_dict(), folder / "base.safetensors")
    rng = np.random.default_rng(3)
    (folder / "data").mkdir()
    np.save(folder / "data/input.npy", rng.normal(size=(SAMPLES, 3, 8, 8)).astype(np.float32))
    np.save(folder / "data/target.npy", rng.integers(CLASSES, size=SAMPLES))
    for kind, words in KINDS.items():
        adapted = peft.get_peft_model(base(folder), peft.LoraConfig(r=2, lora_alpha=3, **words))
        for name, value in adapted.named_parameters():
            if "lora_B" in name:
                nn.init.normal_(value, std=0.2)
            if "magnitude" in name:
                value.data *= torch.rand_like(value) + 0.5
        adapted.save_pretrained(folder / f"{kind}-peft")


def own(name):
    """The name in Sluice's model."""
    name = name.removeprefix("base_model.model.").replace(".default", "")
    return name.removesuffix(".weight") if "magnitude" in name else name


def compare(folder, kind):
    import onnxruntime
    import peft
    from adapters import train_alike
    from safetensors.torch import load_file
    model = peft.PeftModel.from_pretrained(base(folder), folder / f"{kind}-peft", is_trainable=True)
    trained = {own(name): value for name, value in model.named_parameters() if value.requires_grad}
    x = train_alike(folder, kind, model, trained, BATCH, STEPS, RATE)
    written = load_file(folder / f"{kind}-trained/adapter_model.safetensors")
    assert {own(key) for key in written} == set(trained), sorted(written)
    for key, value in written.items():
        np.testing.assert_allclose(value.numpy(), trained[own(key)].detach().numpy(), rtol=1e-4, atol=1e-6, err_msg=key)
    wanted = model.eval()(x).detach().numpy()
    again = peft.PeftModel.from_pretrained(base(folder), folder / f"{kind}-trained").eval()
    np.testing.assert_allclose(again(x).detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
    merged, ours = again.merge_and_unload(), Model()
    ours.load_state_dict(load_file(folder / f"{kind}-merged.safetensors"))
    for key, value in merged.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[key].numpy(), value.numpy(), rtol=1e-4, atol=1e-5, err_msg=key)
    for path in (f"{kind}-tuned.onnx", f"{kind}-merged.onnx"):
        got = onnxruntime.InferenceSession(str(folder / path), providers=["CPUExecutionProvider"]).run(None, {"input": x.numpy()})[0]
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5, err_msg=path)


def lengths(folder, file):
    from safetensors.torch import load_file
    weights, found = load_file(folder / "base.safetensors"), 0
    for key, value in load_file(folder / file).items():
        if "magnitude" in key:
            found += 1
            weight = weights[key.replace("lora_magnitude_vector", "weight")]
            assert list(value.shape) == ([1, len(weight)] + [1] * (weight.dim() - 2) if weight.dim() > 2 else [len(weight)]), key
            np.testing.assert_allclose(value.flatten().numpy(), weight.flatten(1).norm(dim=1).numpy(), rtol=1e-6, err_msg=key)
    assert found == 5


def same(folder, *paths):
    import onnxruntime
    x = np.load(folder / "data/input.npy")
    begun, *outputs = (onnxruntime.InferenceSession(str(folder / path), providers=["CPUExecutionProvider"]).run(None, {"input": x})[0] for path in ("model.onnx", *paths))
    for output in outputs[1:]:
        np.testing.assert_allclose(output, outputs[0], rtol=1e-4, atol=1e-5)
    assert np.abs(outputs[0] - begun).max() > 1e-3


if __name__ == "__main__":
    {"make": make, "compare": compare, "lengths": lengths, "same": same}[sys.argv[1]](pathlib.Path(sys.argv[2]), *sys.argv[3:])
