# SPDX-License-Identifier: Apache-2.0
"""Models with an odd and large number of classes for test/execute/emulated-vocabulary.test, one in each form in which heads come, with data and PyTorch's losses and
first gradients, as reference.py has them: FOLDER/NAME.

    vocabulary.py FOLDER

`tied`: a decoder of text whose head has the embedding's weights. `added`: one with a head of its own, whose row is added after the product. `image`: a linear layer with a
row over features. `columns`: the same without one, and with weights that have the classes last."""
import pathlib
import sys

import torch
from torch import nn

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools/bench"))
from reference import HYPERPARAMETERS, export, record  # noqa: E402
from samples import Ids, make_data  # noqa: E402
from zoo_own import Decoder  # noqa: E402

WORDS, CLASSES, BATCH, STEPS = 521, 1001, 4, 4


def with_row(model):
    model.head = nn.Linear(32, WORDS)
    return model


class Columns(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.weights = nn.Linear(24, 32), nn.Parameter(torch.randn(32, CLASSES) * 0.2)

    def forward(self, x):
        return torch.tanh(self.hidden(x)) @ self.weights


MODELS = {
    "tied": (lambda: Decoder(WORDS, 16, 32, 4, 1), {"input": Ids(WORDS, 16)}, WORDS, (16,)),
    "added": (lambda: with_row(Decoder(WORDS, 16, 32, 4, 1)), {"input": Ids(WORDS, 16)}, WORDS, (16,)),
    "image": (lambda: nn.Sequential(nn.Linear(24, 32), nn.Tanh(), nn.Linear(32, CLASSES)), (24,), CLASSES, None),
    "columns": (Columns, (24,), CLASSES, None),
}


def main(folder):
    torch.set_num_threads(1)
    for name, (make, shape, classes, size) in MODELS.items():
        torch.manual_seed(1)
        model = make()
        x, target = make_data(shape, classes, BATCH, STEPS, size)
        (folder / name).mkdir(parents=True)
        export(model, x["input"][:BATCH] if isinstance(x, dict) else x[:BATCH], folder / name / "model.onnx")
        record(model, x, target, BATCH, folder / name, dict(HYPERPARAMETERS, lr=0.1), keep_final=False)


main(pathlib.Path(sys.argv[1]))
