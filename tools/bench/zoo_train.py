# SPDX-License-Identifier: Apache-2.0
"""Three steps of SGD of a model of the zoo, by its compiled program and by PyTorch. They agree where losses are within 2e-3 of each other and the whole
first gradient is within 1e-2 in norm; else all may be within four times what PyTorch itself moves when its weights carry a noise of 1e-6, each
gradient by its norm (test/models/reference.py says why): BatchNorm over few values makes small networks that sensitive."""
import shutil
import warnings

import torch

import compare
import reference
from zoo_limits import in_child, outcome, run_limited
from samples import still
from zoo_table import errors_of

BATCH, STEPS, RATE = 4, 3, 0.01
LOSSES, GRADIENTS = 2e-3, 1e-2


def write_reference(model, exporter, folder):
    """The exported model, data and what PyTorch makes of it. Random numbers are off: no dropout."""
    reference.DRAWS = 2
    torch.manual_seed(1)
    warnings.simplefilter("ignore")
    made = still(model.make())
    x, target = model.data(BATCH, STEPS)
    if model.name == "googlenet":  # its auxiliary heads reach no loss of ours
        made.aux_logits, made.aux1, made.aux2 = False, None, None
    first = {name: values[:BATCH] for name, values in x.items()} if isinstance(x, dict) else x[:BATCH]
    reference.export(made, first, folder / "model.onnx", opset=None, dynamo=exporter == "dynamo", dynamic=exporter == "torchscript")
    reference.record(made, x, target, BATCH, folder, {"lr": RATE}, keep_final=False)


def differences(folder):
    """Largest relative error of a loss; (error, limit, name) of the first gradient that is furthest from its limit; the whole gradient's error."""
    known, dumped = compare.load(folder / "reference.safetensors"), compare.load(folder / "gradients")
    found = compare.of_steps(folder / "log", "loss")
    if len(found) != STEPS:
        raise ValueError(f"{len(found)} steps in the log")
    losses = max(abs(a - b) / abs(b) for a, b in zip(found, known["losses"]))
    limit = max(LOSSES, 4 * float(known["noise_losses"].max()))
    rows, square, whole = [], 0.0, 0.0
    for name, gradient in known.items():
        if not name.startswith("gradient/"):
            continue
        name = name[len("gradient/"):]
        if name not in dumped:
            if abs(gradient).max() == 0:  # it does not reach the loss
                continue
            raise ValueError(f"the program has no gradient of {name}")
        error = compare.relative(dumped[name].reshape(gradient.shape), gradient)
        size = float((gradient.astype("float64") ** 2).sum())
        square, whole = square + size * error ** 2, whole + size
        if size ** 0.5 >= 1e-7 * max(1.0, gradient.size ** 0.5):  # less is rounding noise, as of a bias in front of a BatchNorm
            rows.append((error, max(GRADIENTS, 4 * float(known[f"noise/{name}"][0])), name))
    return losses, limit, max(rows, key=lambda row: row[0] / row[1]), (square / whole) ** 0.5


def verdict(losses, loss_limit, gradient, gradient_limit, whole):
    if losses <= LOSSES and whole <= GRADIENTS:
        return "agrees"
    return "within PyTorch's noise" if losses <= loss_limit and gradient <= gradient_limit else "differs"


def judge(options, model, exporter):
    """The verdict of one model that is trained, as a dict."""
    folder = options.work / f"train-{model.name.replace('/', '-')}-{exporter}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    row = {"model": model.name, "exporter": exporter, "family": model.family, "errors": []}
    try:
        return row | trained(options, model, exporter, folder)
    finally:
        for name in ("program", "data"):
            path = folder / name
            if not options.keep and path.exists():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not options.keep:
            shutil.rmtree(folder)


def trained(options, model, exporter, folder):
    if word := in_child(lambda: write_reference(model, exporter, folder)):
        return {"verdict": "export or PyTorch fails", "errors": [word]}
    # PyTorch's side of test/models/reference.py knows cross-entropy and mse
    loss = "mse" if isinstance(model.targets, tuple) else model.loss
    batch = [f"--batch={BATCH}"] if exporter == "torchscript" else []
    program = folder / "program"
    status, seconds, peak, error = run_limited(options, [options.sluicec, folder / "model.onnx", f"--loss={loss}", "--dropout=off", *batch, "-o", program])
    if status != 0:
        return {"verdict": outcome(status), "errors": errors_of(error), "seconds": seconds, "peak": peak}
    status, _, _, error = run_limited(options, [program, "--data", folder / "data", "--steps", str(STEPS), "--lr", str(RATE), "--momentum", "0", "--threads", "1",
                                                "--log", folder / "log", "--dump-gradients", folder / "gradients"])
    if status != 0:
        return {"verdict": "the program " + ("is too slow" if status is None else f"ends with status {status}"), "errors": [error.strip()[-300:]]}
    try:
        losses, limit, (gradient, most, name), whole = differences(folder)
    except ValueError as what:
        return {"verdict": "differs", "errors": [str(what)], "seconds": seconds}
    word = verdict(losses, limit, gradient, most, whole)
    return {"verdict": word, "seconds": seconds, "loss_error": losses, "loss_limit": limit, "gradient_error": gradient,
            "gradient_limit": most, "gradient": name, "whole_gradient_error": whole,
            "errors": [f"gradient of {name} {gradient:.1e} apart (limit {most:.1e})"] if word == "differs" else []}
