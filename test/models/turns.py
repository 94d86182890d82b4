# SPDX-License-Identifier: Apache-2.0
"""Models with two losses for steps that take turns, their data, and PyTorch's loops with two optimizers, for test/execute/turns.test.

    turns.py make FOLDER MODEL [--exporter torchscript|dynamo] [--rounds N]    FOLDER/{model.onnx, data/, test/, expected.json, expected.safetensors}
    turns.py compare FOLDER LOG CHECKPOINT    what a program has logged and saved against what make has written

dcgan: convolutions, transposed ones and BatchNorm; two steps a round, each with a batch of its own. wgan: a critic, five steps a round, and a generator.
drawn: dcgan with noise that the graph draws, so that there is nothing to compare with.
"""
import argparse
import json
import pathlib

import numpy

BATCH, SAMPLES, TESTED, NOISE = 8, 56, 19, 6
ADAM = dict(lr=2e-3, betas=(0.5, 0.999))
CRITIC_STEPS = {"dcgan": 1, "wgan": 5, "drawn": 1}


def networks(model):
    from torch import nn
    if model == "wgan":
        generator = nn.Sequential(nn.Linear(NOISE, 16), nn.ReLU(), nn.Linear(16, 5))
        return generator, nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1, bias=False))
    generator = nn.Sequential(nn.ConvTranspose2d(NOISE, 16, 4, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                              nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                              nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh())
    return generator, nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16),
                                    nn.LeakyReLU(0.2), nn.Conv2d(16, 1, 4), nn.Flatten())


def network(model):
    import torch
    from torch import nn
    from torch.nn.functional import binary_cross_entropy_with_logits as bce

    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.generator, self.discriminator = networks(model)

        def of_generator(self, fake):
            score = self.discriminator(fake)
            return -score.mean() if model == "wgan" else bce(score, torch.ones_like(score))

        def of_discriminator(self, real, fake):
            real, fake = self.discriminator(real), self.discriminator(fake)
            if model == "wgan":
                return fake.mean() - real.mean()
            return bce(real, torch.ones_like(real)) + bce(fake, torch.zeros_like(fake))

        def forward(self, real, noise=None):
            """Both losses; the exporters keep of each what it needs."""
            if noise is None:
                noise = torch.randn(BATCH, NOISE, 1, 1)
            fake = self.generator(noise)
            scores = self.discriminator(real), self.discriminator(fake)
            if model == "wgan":
                return scores[1].mean() - scores[0].mean(), -scores[1].mean(), fake
            ones, zeros = torch.ones_like(scores[0]), torch.zeros_like(scores[0])
            return bce(scores[0], ones) + bce(scores[1], zeros), bce(scores[1], ones), fake

    torch.manual_seed(3)
    return Pair()


def export(torch, pair, inputs, path, exporter):
    names = ["images", "noise"][:len(inputs)]
    common = dict(input_names=names, output_names=["loss_d", "loss_g", "fake"])
    if exporter == "dynamo":
        torch.onnx.export(pair, inputs, str(path), dynamo=True, optimize=False, verbose=False, **common)
    else:
        torch.onnx.export(pair, inputs, str(path), dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, opset_version=17, **common)


def initial(torch, path):
    """Weights and running statistics as the file has them."""
    import onnx
    return {tensor.name: torch.tensor(onnx.numpy_helper.to_array(tensor)) for tensor in onnx.load(str(path)).graph.initializer
            if not tensor.name.endswith("num_batches_tracked")}


def data(model, samples, seed):
    random = numpy.random.default_rng(seed)
    shape, noise = ((5,), (NOISE,)) if model == "wgan" else ((1, 16, 16), (NOISE, 1, 1))
    images = random.normal(0.3, 0.5, (samples, *shape))
    if model != "wgan":
        images = numpy.tanh(images + numpy.linspace(-1, 1, 16))
    return images.astype("float32"), random.normal(size=(samples, *noise)).astype("float32")


def optimizers(torch, pair, model):
    both = pair.discriminator.parameters(), pair.generator.parameters()
    if model == "wgan":
        return [torch.optim.RMSprop(parameters, 1e-3) for parameters in both]
    return [torch.optim.Adam(parameters, **ADAM) for parameters in both]


def train(torch, pair, model, arrays, rounds):
    """Each step has a batch of its own; a generator's step runs the discriminator on what is made alone."""
    (discriminator, generator), losses = optimizers(torch, pair, model), []
    batches = [[torch.tensor(array[first:first + BATCH]).double() for array in arrays] for first in range(0, SAMPLES, BATCH)]
    for step in range(rounds * (CRITIC_STEPS[model] + 1)):
        images, noise = batches[step % len(batches)]
        if step % (CRITIC_STEPS[model] + 1) < CRITIC_STEPS[model]:
            optimizer, loss = discriminator, pair.of_discriminator(images, pair.generator(noise).detach())
        else:
            optimizer, loss = generator, pair.of_generator(pair.generator(noise))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def evaluate(torch, pair, arrays):
    """Losses of samples one by one, which add up to means over samples."""
    pair.eval()
    with torch.no_grad():
        images, noise = (torch.tensor(array).double() for array in arrays)
        fake = pair.generator(noise)
        return pair.of_discriminator(images, fake).item(), pair.of_generator(fake).item()


def make(folder, model, exporter, rounds):
    import torch
    from safetensors.torch import save_file
    pair, arrays, tested = network(model).train(), data(model, SAMPLES, 1), data(model, TESTED, 2)
    for name, both in (("data", arrays), ("test", tested)):
        (folder / name).mkdir(exist_ok=True)
        for kind, array in zip(("images", "noise"), both):
            if kind == "images" or model != "drawn":
                numpy.save(folder / name / f"{kind if model != 'drawn' else 'input'}.npy", array)
    inputs = tuple(torch.tensor(array[:BATCH]) for array in arrays)[:1 if model == "drawn" else 2]
    export(torch, pair, inputs, folder / "model.onnx", exporter)
    pair.load_state_dict(initial(torch, folder / "model.onnx"), strict=False)  # the exporter has run it
    pair.train().double()
    losses = train(torch, pair, model, arrays, rounds)
    evaluation = evaluate(torch, pair, tested)
    (folder / "expected.json").write_text(json.dumps({"losses": losses, "evaluation": evaluation}))
    save_file({name: value.float().contiguous() for name, value in pair.state_dict().items() if value.dim()}, folder / "expected.safetensors")


def compare(folder, log, checkpoint):
    from safetensors.numpy import load_file
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    expected, steps = json.loads((folder / "expected.json").read_text()), [line for line in lines if line["event"] == "step"]
    numpy.testing.assert_allclose([step["loss"] for step in steps], expected["losses"], rtol=1e-4, atol=1e-6)
    evaluation = [line for line in lines if line["event"] == "evaluate"][-1]
    found = [evaluation[f"{turn}.loss"] for turn in ("discriminator", "generator")]
    numpy.testing.assert_allclose(found, expected["evaluation"], rtol=1e-4)
    wanted, saved = load_file(folder / "expected.safetensors"), load_file(checkpoint)
    worst = 0
    for name, value in wanted.items():
        numpy.testing.assert_allclose(saved[name].reshape(value.shape), value, rtol=1e-4, atol=2e-5, err_msg=name)
        worst = max(worst, float(numpy.abs(saved[name].reshape(value.shape) - value).max()))
    error = max(abs(step["loss"] / loss - 1) for step, loss in zip(steps, expected["losses"]))
    print(f"{len(steps)} steps as PyTorch's two optimizers: losses within {error:.1e}, {len(wanted)} tensors within {worst:.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="what", required=True)
    making = commands.add_parser("make")
    making.add_argument("folder", type=pathlib.Path)
    making.add_argument("model", choices=CRITIC_STEPS)
    making.add_argument("--exporter", choices=("torchscript", "dynamo"), default="torchscript")
    making.add_argument("--rounds", type=int, default=20)
    comparing = commands.add_parser("compare")
    for name in ("folder", "log", "checkpoint"):
        comparing.add_argument(name, type=pathlib.Path)
    words = parser.parse_args()
    make(words.folder, words.model, words.exporter, words.rounds) if words.what == "make" else compare(words.folder, words.log, words.checkpoint)
