#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adapters beside a large decoder whose weights are held in fewer bits, compared with PyTorch on the floats that the forms stand for.

    large_tuning.py FOLDER [--layers 22] [--tokens 512] [--exporter dynamo|torchscript] [--form int4] [--rank 16] [--budget BYTES] [--steps 3] [--run ''] [--sluicec build/bin/sluicec]

The architecture is Llama's (rotary positions, grouped queries, gated units, RMSNorm) as transformers' LlamaForCausalLM builds it from a configuration, by default with the extents of
TinyLlama-1.1B; weights are random. Adapters stand beside all matrices of the blocks and begin with random numbers. Says what sluicec promises, what the process had resident, the losses of the program
and of PyTorch, on the forms' floats and on the model's own, and the largest relative difference of an adapter's gradient in the first step. Needs the Python environment of tools/setup.sh --references."""
import argparse
import json
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

WORDS, ALPHA, RATE, MOMENTUM = 32000, 32, 0.05, 0.9
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class Scores(nn.Module):
    def __init__(self, layers):
        import transformers
        super().__init__()
        self.model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=WORDS, hidden_size=2048, intermediate_size=5632, num_hidden_layers=layers, num_attention_heads=32, num_key_value_heads=4, max_position_embeddings=2048,
            tie_word_embeddings=False, attn_implementation="eager", use_cache=False))

    def forward(self, input):
        # Positions that nobody gives are searched for packed samples, for which TorchScript's exporter has no op.
        return self.model(input_ids=input, attention_mask=torch.ones_like(input), use_cache=False).logits


class Adapted(nn.Module):
    def __init__(self, layer, down, up, scale):
        super().__init__()
        self.layer, self.down, self.up, self.scale = layer, nn.Parameter(down), nn.Parameter(up), scale

    def forward(self, x):
        return self.layer(x) + (x @ self.down.T @ self.up.T) * self.scale


def layers_of(model):
    return {f"{path}.{name}": (parent, name, layer) for path, parent in model.named_modules() for name, layer in parent.named_children() if name in TARGETS}


def make(options):
    torch.manual_seed(1)
    model, example, path = Scores(options.layers).train(), torch.zeros(1, options.tokens, dtype=torch.int64), options.folder / "model.onnx"
    print(f"{sum(value.numel() for value in model.parameters()):,} parameters", flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if options.exporter == "dynamo":
            torch.onnx.export(model, (example,), str(path), dynamo=True, optimize=False, input_names=["input"], output_names=["output"], external_data=True)
        else:
            torch.onnx.export(model, (example,), str(path), dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, opset_version=17,
                              input_names=["input"], output_names=["output"])
    adapters = {}
    for name, (_, _, layer) in layers_of(model).items():
        adapters[f"{name}.lora_A.weight"] = torch.randn(options.rank, layer.in_features) * 0.02
        adapters[f"{name}.lora_B.weight"] = torch.randn(layer.out_features, options.rank) * 0.02
    save_file(adapters, options.folder / "adapters.safetensors")
    (options.folder / "data").mkdir(exist_ok=True)
    rng = np.random.default_rng(2)
    for name in ("input", "target"):
        np.save(options.folder / f"data/{name}.npy", rng.integers(WORDS, size=(options.steps, options.tokens)))


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.returncode, done.stderr)
    return done.stdout + done.stderr


def train(options):
    """The losses of the program, and what its log says at the end."""
    folder = options.folder
    budget = [f"--memory-budget={options.budget}"] if options.budget else []
    print(run(options.sluicec, folder / "model.onnx", "--loss=token-cross-entropy", f"--adapter=lora,rank={options.rank},alpha={ALPHA}", f"--frozen={options.form}", *budget, "--force", "-o",
              folder / "program"), flush=True)
    run(*options.run.split(), folder / "program", "--data", folder / "data", "--steps", options.steps, "--lr", RATE, "--init", folder / "adapters.safetensors", "--dump-gradients",
        folder / "gradients.safetensors", "--log", folder / "log.jsonl", "--export", folder / "whole.safetensors", "--force", "--quiet")
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [event for event in events if event["event"] == "step"], events[-1]


def batch(folder, step):
    return (torch.from_numpy(np.load(folder / f"data/{name}.npy")[step:step + 1]) for name in ("input", "target"))


def loss_of(model, folder, step):
    x, y = batch(folder, step)
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


def reference(options):
    """PyTorch's losses on the model's own floats (the first step's) and on those that the forms stand for, and the gradients of the first step."""
    folder, losses, first = options.folder, [], {}
    torch.manual_seed(1)
    model, trained, adapters = Scores(options.layers).train(), {}, load_file(folder / "adapters.safetensors")
    model.requires_grad_(False)
    for name, (parent, child, layer) in layers_of(model).items():
        adapted = Adapted(layer, adapters[f"{name}.lora_A.weight"], adapters[f"{name}.lora_B.weight"], ALPHA / options.rank)
        setattr(parent, child, adapted)
        trained |= {f"{name}.lora_A.weight": adapted.down, f"{name}.lora_B.weight": adapted.up}
    with torch.no_grad():
        own = loss_of(model, folder, 0).item()
    with safe_open(folder / "whole.safetensors", "pt") as held:
        for name, value in model.named_parameters():
            key = name.replace(".layer.weight", ".weight")
            if not value.requires_grad:
                value.data.copy_(held.get_tensor(key))
    optimizer = torch.optim.SGD(trained.values(), RATE, momentum=MOMENTUM)
    for step in range(options.steps):
        optimizer.zero_grad()
        loss = loss_of(model, folder, step)
        loss.backward()
        losses.append(loss.item())
        first = first or {name: value.grad.clone() for name, value in trained.items()}
        optimizer.step()
    return own, losses, first


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--exporter", choices=("dynamo", "torchscript"), default="dynamo")
    parser.add_argument("--form", default="int4")
    parser.add_argument("--budget", default="")
    parser.add_argument("--run", default="", help="words before the program")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not (options.folder / "adapters.safetensors").exists():
        make(options)
    steps, end = train(options)
    print(f"seconds a step: {[round(step['ms'] / 1e3, 2) for step in steps]}, predicted {end['predicted_ms'] / 1e3:.2f}; resident at most {end['resident_peak_bytes']:,} bytes", flush=True)
    own, losses, first = reference(options)
    found = load_file(options.folder / "gradients.safetensors")
    assert set(found) == set(first), (set(found) ^ set(first))
    apart = {name: ((found[name] - value).norm() / value.norm()).item() for name, value in first.items()}
    worst = max(apart, key=apart.get)
    print(f"losses: program {[step['loss'] for step in steps]}, PyTorch on the forms' floats {losses}, on the model's own {own}")
    print(f"gradients of {len(apart)} matrices: largest relative difference {apart[worst]:.2e}, of {worst}")


if __name__ == "__main__":
    sys.exit(main())
