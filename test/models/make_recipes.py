#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what PyTorch makes of the tiny mlp in 50 steps with each optimizer, schedule, clipping, sum of batches, average, group, smoothing and mixup:
test/models/recipes/NAME.safetensors, which test/execute/recipes.test compares with programs. Needs the environment of
`tools/setup.sh --references`; its results are committed, so the test does not.

    losses, rates    of every step        norms    before clipping        shares    of --mixup
    final/NAME       parameters after the last step        final/NAME/ema    their averages"""
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
from torch.optim import lr_scheduler as schedules
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import draws
from networks import Mlp
from reference import load_initializers

STEPS, BATCH = 50, 8


class Rule(torch.optim.Optimizer):
    """A rule that torch has not: `update(w, g, state, group)` for each parameter."""
    def __init__(self, parameters, **defaults):
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                self.update(w, w.grad, self.state[w], group)


class Lion(Rule):
    """Chen et al. 2023, algorithm 2."""
    def update(self, w, g, state, group):
        m = state.setdefault("m", torch.zeros_like(w))
        beta1, beta2 = group["betas"]
        direction = torch.sign(beta1 * m + (1 - beta1) * g)
        w.mul_(1 - group["lr"] * group["weight_decay"]).add_(direction, alpha=-group["lr"])
        m.mul_(beta2).add_(g, alpha=1 - beta2)


class Lamb(Rule):
    """You et al. 2020 as NVIDIA's apex has it: without decay there is no trust ratio."""
    def update(self, w, g, state, group):
        m, v = state.setdefault("m", torch.zeros_like(w)), state.setdefault("v", torch.zeros_like(w))
        state["step"] = t = state.get("step", 0) + 1
        beta1, beta2 = group["betas"]
        m.mul_(beta1).add_(g, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        u = (m / (1 - beta1**t)) / ((v / (1 - beta2**t)).sqrt() + group["eps"]) + group["weight_decay"] * w
        ratio = float(w.norm() / u.norm()) if group["weight_decay"] and w.norm() > 0 and u.norm() > 0 else 1.0
        w.add_(u, alpha=-group["lr"] * ratio)


def warm(after, steps=10):
    """The contract's warm-up, then `after(k, n)` of the k-th of n steps, as factors of the rate."""
    return lambda o: schedules.LambdaLR(o, lambda s: (s + 1) / steps if s < steps else after(s - steps, STEPS - steps))


def mixup_share(alpha, epoch, sample):
    """What a program with --seed=0 draws for the batch that begins with this sample, written a second time; torch.distributions draws others."""
    key = draws.key(draws.key(0, draws.name("mixup"), epoch), 0, sample)
    for i in range(0, 1000, 2):
        u, v = draws.uniform(key, i), draws.uniform(key, i + 1)
        if alpha <= 1:
            if u**(1 / alpha) + v**(1 / alpha) <= 1:
                return u**(1 / alpha) / (u**(1 / alpha) + v**(1 / alpha))
        elif (square := (2 * u - 1)**2 + (2 * v - 1)**2) < 1:
            return 0.5 + (2 * u - 1) * (2 * v - 1) / square * math.sqrt(1 - square**(2 / (2 * alpha - 1)))
    raise ValueError(alpha)


SGD = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}
# name: rule, its hyperparameters, what else
RECIPES = {
    "sgd": (torch.optim.SGD, SGD, {}),
    "nesterov": (torch.optim.SGD, SGD | {"nesterov": True}, {}),
    "adam": (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.01}, {}),
    "adamw": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}, {}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.05, "weight_decay": 0.01, "lr_decay": 0.01}, {}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.005, "weight_decay": 0.01}, {}),
    "rmsprop-momentum": (torch.optim.RMSprop, {"lr": 0.002, "alpha": 0.9, "momentum": 0.5}, {}),
    "lamb": (Lamb, {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.01}, {}),
    "lion": (Lion, {"lr": 0.001, "betas": (0.9, 0.99), "weight_decay": 0.1}, {}),
    "step": (torch.optim.SGD, SGD, {"schedule": lambda o: schedules.StepLR(o, 15, 0.5)}),
    "linear": (torch.optim.SGD, SGD, {"schedule": warm(lambda k, n: 1 - 0.9 * k / n)}),
    "cosine": (torch.optim.SGD, SGD, {"schedule": warm(lambda k, n: 0.1 + 0.45 * (1 + math.cos(math.pi * k / n)))}),
    "one-cycle": (torch.optim.SGD, SGD, {"schedule": lambda o: schedules.OneCycleLR(o, 0.1, total_steps=STEPS)}),
    "one-cycle-adamw": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}, {"schedule": lambda o: schedules.OneCycleLR(
        o, 0.01, total_steps=STEPS, pct_start=0.25, anneal_strategy="linear", div_factor=10, final_div_factor=100, three_phase=True)}),
    "clip-value": (torch.optim.SGD, SGD, {"value": 0.02}),
    "clip-norm": (torch.optim.SGD, SGD, {"norm": 0.3}),
    "accumulate": (torch.optim.SGD, SGD, {"batches": 4, "norm": 0.3}),
    "ema": (torch.optim.SGD, SGD, {"ema": 0.9}),
    "label-smoothing": (torch.optim.SGD, SGD, {"smoothing": 0.2}),
    "mixup": (torch.optim.SGD, SGD, {"mixup": 0.4, "smoothing": 0.1}),
    "mixup-accumulate": (torch.optim.SGD, SGD, {"mixup": 2.0, "batches": 3}),
    "groups": (torch.optim.SGD, SGD, {"groups": True}),
}


def groups_of(model, base):
    """--group='.*bias:decay=0' --group='4[.].*:lr=0.5'"""
    return [{"params": [p], "lr": base["lr"] * (0.5 if name.startswith("4.") else 1),
             "weight_decay": 0 if name.endswith("bias") else base["weight_decay"]} for name, p in model.named_parameters()]


def record(root, rule, base, extra):
    model = Mlp()
    load_initializers(model, root / "tiny" / "mlp" / "model.onnx")
    data = [torch.from_numpy(np.load(root / "tiny" / "mlp" / "data" / f"{part}.npy")).split(BATCH) for part in ("input", "target")]
    batches, found = list(zip(*data)), {"losses": [], "rates": [], "norms": [], "shares": []}
    optimizer = rule(groups_of(model, base) if extra.get("groups") else model.parameters(), **base)
    schedule = extra["schedule"](optimizer) if "schedule" in extra else None
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(extra["ema"])) if "ema" in extra else None
    share = extra.get("batches", 1)
    for step in range(STEPS):
        optimizer.zero_grad()
        total = mixed = 0.0
        for i in range(step * share, (step + 1) * share):
            x, target = batches[i % len(batches)]
            if "mixup" in extra:
                own = mixup_share(extra["mixup"], i // len(batches), i % len(batches) * BATCH)
                target = F.one_hot(target, model[-1].out_features).float()
                x, target, mixed = own * x + (1 - own) * x.roll(1, 0), own * target + (1 - own) * target.roll(1, 0), mixed + own / share
            loss = F.cross_entropy(model(x), target, label_smoothing=extra.get("smoothing", 0.0))
            (loss / share).backward()
            total += loss.item() / share
        if "mixup" in extra:
            found["shares"].append(mixed)
        if "value" in extra:
            torch.nn.utils.clip_grad_value_(model.parameters(), extra["value"])
        if "norm" in extra:
            found["norms"].append(torch.nn.utils.clip_grad_norm_(model.parameters(), extra["norm"]).item())
        found["losses"].append(total)
        found["rates"].append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if schedule:
            schedule.step()
        if average:
            average.update_parameters(model)
    tensors = {key: np.array(value) for key, value in found.items() if value}
    tensors["noise_losses"] = np.zeros(STEPS)
    tensors |= {f"final/{name}": p.detach().numpy() for name, p in model.named_parameters()}
    if average:
        tensors |= {f"final/{name}/ema": p.detach().numpy() for name, p in average.module.named_parameters()}
    return tensors


def main():
    torch.set_num_threads(1)
    root = pathlib.Path(__file__).parent
    (root / "recipes").mkdir(exist_ok=True)
    for name, (rule, base, extra) in RECIPES.items():
        tensors = record(root, rule, base, extra)
        save_file(tensors, root / "recipes" / f"{name}.safetensors")
        print(f"{name}: losses {tensors['losses'][0]:.6f} to {tensors['losses'][-1]:.6f}")


main()
