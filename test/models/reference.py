# SPDX-License-Identifier: Apache-2.0
"""Exports a PyTorch model and records what PyTorch makes of it: losses of some SGD steps, gradients of the first one, parameters and
statistics after the last. A folder per model:

    model.onnx              TorchScript exporter in training mode, dynamic batch
    data/input.npy, target.npy    `steps` batches in file order; NAME.npy for each of several inputs
    reference.safetensors   losses, gradient/NAME, final/NAME, noise/NAME, noise_losses

noise/NAME is how far PyTorch's own gradient moves (norm of difference over norm) when all weights carry a relative noise of 1e-6: the
largest of DRAWS draws. One ReLU or pool winner within rounding of its border moves a gradient by 1e-3 to 1e-2, and few draws miss it."""
import copy
import json
import pathlib
import warnings

import numpy as np
import onnx
import torch
from safetensors.numpy import save_file

from samples import as_inputs, loss_of, make_data  # noqa: F401, also for who imports this module

DRAWS = 10
HYPERPARAMETERS = {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4}


def split(x, batch):
    """Batches of what as_inputs takes."""
    return [dict(zip(as_inputs(x), part)) for part in zip(*(v.split(batch) for v in as_inputs(x).values()))]


def export(model, sample, path, opset=17, training=True, dynamo=False, dynamic=True):
    sample, names = tuple(as_inputs(sample).values()), list(as_inputs(sample))
    mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
    model = copy.deepcopy(model).train(training)
    axes = {name: {0: "batch"} for name in [*names, "output"]} if dynamic else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            # Optimized, it would fold weights with what reads them.
            torch.onnx.export(model, sample, str(path), dynamo=True, optimize=False, input_names=names, output_names=["output"], external_data=False)
        else:
            torch.onnx.export(model, sample, str(path), dynamo=False, training=mode, do_constant_folding=False, opset_version=opset,
                              input_names=names, output_names=["output"], dynamic_axes=axes)


def load_initializers(model, path):
    """Takes the weights and statistics that the file holds: tracing in training mode has moved the statistics."""
    values = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(str(path)).graph.initializer}
    state = model.state_dict()
    for name in state:
        if name in values:
            state[name] = torch.from_numpy(values[name].copy())
    model.load_state_dict(state)


def names_in_file(model, path):
    """What the file calls each parameter: those that a model uses in several places have several names."""
    present, names = {t.name for t in onnx.load(str(path)).graph.initializer}, {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    return {aliases[0]: next((name for name in aliases if name in present), aliases[0]) for aliases in names.values()}


def gradients_of(model, x, target):
    model.zero_grad()
    loss = loss_of(model, x, target)
    loss.backward()
    return loss.item(), {name: p.grad.detach().clone() for name, p in model.named_parameters()}


def with_noise(model, relative, seed):
    noisy = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in noisy.parameters():
            p.mul_(1 + relative * torch.randn(p.shape, generator=generator))
    return noisy


def train(model, batches, hyperparameters, rule=torch.optim.SGD):
    optimizer = rule(model.parameters(), **hyperparameters)
    losses = []
    for x, target in batches:
        optimizer.zero_grad()
        loss = loss_of(model, x, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def record(model, x, target, batch, folder, hyperparameters, keep_final=True, rule=torch.optim.SGD, frozen=False, file="reference"):
    """Writes data and reference files of a model whose model.onnx is in the folder. `frozen`: BatchNorm uses its running statistics."""
    folder = pathlib.Path(folder)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for name, values in as_inputs(x).items():
        np.save(folder / "data" / f"{name}.npy", values.numpy())
    np.save(folder / "data" / "target.npy", target.numpy())
    load_initializers(model, folder / "model.onnx")
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout) or type(module).__name__ == "StochasticDepth":  # torchvision's
            module.p = 0.0
        if frozen and isinstance(module, torch.nn.BatchNorm2d):
            module.eval()
    batches = list(zip(split(x, batch), target.split(batch)))
    _, gradients = gradients_of(copy.deepcopy(model), *batches[0])
    files = names_in_file(model, folder / "model.onnx")
    tensors = {f"gradient/{files[name]}": g.numpy() for name, g in gradients.items()}
    noise = {name: 0.0 for name in gradients}
    noisy_losses = []
    for seed in range(DRAWS):
        _, moved = gradients_of(with_noise(model, 1e-6, seed), *batches[0])
        for name, g in gradients.items():
            noise[name] = max(noise[name], float((moved[name] - g).norm() / g.norm().clamp_min(1e-30)))
        if seed < 3:
            noisy_losses.append(train(with_noise(model, 1e-6, seed), batches, hyperparameters, rule))
    for name, change in noise.items():
        tensors[f"noise/{files[name]}"] = np.array([change], np.float32)
    losses = train(model, batches, hyperparameters, rule)
    tensors["losses"] = np.array(losses, np.float64)
    tensors["noise_losses"] = np.max(np.abs(np.array(noisy_losses) - losses), 0) / np.abs(losses)
    if keep_final:
        parameters = dict(model.named_parameters())
        for name, value in model.state_dict().items():
            if name in parameters or (value.dtype == torch.float32 and "running" in name):
                tensors[f"final/{name}"] = value.numpy()
    metadata = {"batch": str(batch), "hyperparameters": json.dumps(hyperparameters), "torch": torch.__version__}
    save_file({name: np.ascontiguousarray(t) for name, t in tensors.items()}, folder / f"{file}.safetensors", metadata=metadata)
    return losses
