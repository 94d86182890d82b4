# SPDX-License-Identifier: Apache-2.0
"""Samples and losses of the models that tests and benchmarks train. Needs torch alone: the memory of a process that imports this is PyTorch's."""
import torch
import torch.nn.functional as F


class Ids:
    """Samples that are `length` ids below `limit`."""
    def __init__(self, limit, length):
        self.limit, self.length = limit, length

    def draw(self, count, generator):
        return torch.randint(0, self.limit, (count, self.length), generator=generator)


class Lengths:
    """Masks of texts of up to `length` tokens: ones, then zeros."""
    def __init__(self, length):
        self.length = length

    def draw(self, count, generator):
        return (torch.arange(self.length) < torch.randint(1, self.length + 1, (count, 1), generator=generator)).long()


def as_inputs(x):
    """Name and tensor of each input of a model."""
    return x if isinstance(x, dict) else {"input": x}


def make_data(shape, targets, batch, steps, size=None):
    generator = torch.Generator().manual_seed(3)
    count = batch * steps
    if isinstance(shape, dict):
        x = {name: kind.draw(count, generator) for name, kind in shape.items()}
    else:
        x = torch.randn((count, *shape), generator=generator)
    if isinstance(targets, int):
        target = torch.randint(0, targets, (count, *(size or ())), generator=generator)
    else:
        target = torch.randn((count, *targets), generator=generator)
    return x, target


def loss_of(model, x, target):
    y = model(*as_inputs(x).values())
    if getattr(model, "classes_last", False):
        y, target = y.flatten(0, -2), target.flatten()
    return F.cross_entropy(y, target) if target.dtype == torch.int64 else F.mse_loss(y, target)


def still(model):
    """Turns off what is drawn while training: dropout and stochastic depth of all kinds."""
    for module in model.modules():
        if isinstance(module, torch.nn.modules.dropout._DropoutNd) or type(module).__name__ == "StochasticDepth":
            module.p = 0.0
        if hasattr(module, "drop_prob"):
            module.drop_prob = 0.0
        if isinstance(module, torch.nn.MultiheadAttention):
            module.dropout = 0.0
    return model
