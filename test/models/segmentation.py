# SPDX-License-Identifier: Apache-2.0
"""Images, masks and PyTorch's losses for test/execute/segmentation.test and yes-or-no.test.

    segmentation.py make FOLDER       writes them: model.onnx, images/, masks/, large/, expected.json
    segmentation.py compare FOLDER    what the program logged and predicted against them
    segmentation.py binary FOLDER [flat]   the same for a model of one answer a pixel, (N, 1, H, W) or flat (N, H, W)
    segmentation.py compared FOLDER   likewise

A U-Net for colour images and three classes of pixels, which depend on the colours, or for one of them against the others; some pixels are ignored. Masks are PNG
with a palette, as VOC has them. Images in large/ have sizes of their own.
"""
import json
import pathlib
import sys

import numpy as np

IMAGES, SIZE, BATCH, STEPS, CLASSES, IGNORED, WEIGHTS, RATE = 10, 16, 4, 6, 3, 255, [1, 0.5, 3], 0.1
LARGE = [(37, 29), (16, 16), (11, 40)]  # widths and heights
YES, NO, NEITHER = 255, 0, 128          # numbers in masks of one answer


def pictures(folder, numbers=None):
    """Bytes (N, SIZE, SIZE, 3) and classes (N, SIZE, SIZE), in the order of the files' names. `numbers`: what masks have for each class."""
    from PIL import Image
    rng = np.random.default_rng(3)
    coarse = rng.integers(256, size=(IMAGES, SIZE // 4, SIZE // 4, 3))
    images = np.clip(coarse.repeat(4, 1).repeat(4, 2) + rng.integers(-20, 20, size=(IMAGES, SIZE, SIZE, 3)), 0, 255).astype(np.uint8)
    masks = np.where(images[..., 0] > 150, 1, np.where(images[..., 1] > 150, 2, 0)).astype(np.uint8)
    masks[rng.random(masks.shape) < 0.1] = IGNORED
    for name in ("images", "masks"):
        (folder / name).mkdir()
    for i, (image, mask) in enumerate(zip(images, masks)):
        Image.fromarray(image).save(folder / f"images/street_{i}.png")
        palette = Image.fromarray(mask if numbers is None else numbers[mask], mode="P")
        palette.putpalette(list(range(255, -1, -1)) * 3)
        palette.save(folder / f"masks/street_{i}_labels.png")
    return images, masks


def enlarged(folder, images):
    """Writes large/; returns its images in the model's size, as the program makes them."""
    from PIL import Image
    (folder / "large").mkdir()
    resized = []
    for i, size in enumerate(LARGE):
        image = Image.fromarray(images[i]).resize(size, Image.BICUBIC)
        image.save(folder / f"large/wide_{i}.png")
        resized.append(np.asarray(image.resize((SIZE, SIZE), Image.BILINEAR)))
    return np.stack(resized)


def prepared(images):
    import torch
    return (torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25


def nearest(mask, size):
    """As Pillow resizes by NEAREST."""
    columns, rows = ((np.arange(n) + 0.5) * SIZE / n for n in size)
    return mask[rows.astype(int)][:, columns.astype(int)]


def check_masks(folder, names, sizes, answers, certain):
    """That each mask has its image's size and PyTorch's answers, but where two are as good."""
    from PIL import Image
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{name}.png" for name in names), list(folder.iterdir())
    for name, size, answer, sure in zip(names, sizes, answers, certain):
        mask = Image.open(folder / f"{name}.png")
        assert mask.mode == "L" and mask.size == size, (name, mask.mode, mask.size)
        differ = (np.asarray(mask) != nearest(answer, size)) & nearest(sure, size)
        assert not differ.any(), (name, differ.sum())


def check_all(folder, expected, answers):
    """The masks of both folders of images, from the scores of each."""
    street = [f"street_{i}" for i in range(IMAGES)], [(SIZE, SIZE)] * IMAGES
    wide = [f"wide_{i}" for i in range(len(LARGE))], LARGE
    for out, (names, sizes), key in (("answers", street, "scores"), ("wide", wide, "large")):
        scores = np.array(expected[key])
        check_masks(folder / out, names, sizes, *answers(scores))


def make(folder):
    import torch
    from networks import DeepUNet
    from reference import export, load_initializers
    torch.manual_seed(4)
    torch.set_num_threads(1)
    images, masks = pictures(folder)
    x = prepared(images)
    y = torch.from_numpy(masks.astype(np.int64))
    model = DeepUNet(3, 6, 1, CLASSES)
    export(model, x[:BATCH], folder / "model.onnx")
    load_initializers(model, folder / "model.onnx")
    loss_of = torch.nn.CrossEntropyLoss(weight=torch.tensor(WEIGHTS), ignore_index=IGNORED)
    optimizer, losses = torch.optim.SGD(model.parameters(), RATE), []
    for step in range(STEPS):
        part = slice(step % 2 * BATCH, step % 2 * BATCH + BATCH)  # two batches an epoch, the rest is left out
        optimizer.zero_grad()
        loss = loss_of(model(x[part]), y[part])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        scores = model.eval()(x)
        large = model(prepared(enlarged(folder, images)))
    counted, answers = y != IGNORED, scores.argmax(1)
    shares = [(counted & (y == c) & (answers == c)).sum() / (counted & ((y == c) | (answers == c))).sum() for c in range(CLASSES)]
    accuracy = (answers == y)[counted].float().mean().item()
    (folder / "expected.json").write_text(json.dumps(
        {"losses": losses, "accuracy": accuracy, "mean_iou": float(sum(shares)) / CLASSES, "ious": [float(share) for share in shares],
         "scores": scores.numpy().tolist(), "large": large.numpy().tolist()}))


def compare(folder):
    expected = json.loads((folder / "expected.json").read_text())
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    np.testing.assert_allclose([line["loss"] for line in lines if line["event"] == "step"], expected["losses"], rtol=1e-5)
    last = [line for line in lines if line["event"] == "evaluate"][-1]
    for metric in ("accuracy", "mean_iou"):
        np.testing.assert_allclose(last[metric], expected[metric], rtol=1e-6, err_msg=metric)
    np.testing.assert_allclose(last["iou_by_class"], expected["ious"], rtol=1e-6)
    np.testing.assert_allclose(np.load(folder / "scores.npy"), expected["scores"], rtol=1e-3, atol=1e-4)

    def answers(scores):
        first, second = np.moveaxis(np.sort(scores, 1)[:, ::-1], 1, 0)[:2]
        return scores.argmax(1), first - second > 1e-3
    check_all(folder, expected, answers)


def make_binary(folder, flat=False):
    import torch
    from networks import DeepUNet
    from reference import export, load_initializers
    torch.manual_seed(4)
    torch.set_num_threads(1)
    numbers = np.full(256, NO, np.uint8)
    numbers[1], numbers[IGNORED] = YES, NEITHER
    images, masks = pictures(folder, numbers)
    x, y, counted = prepared(images), torch.from_numpy((masks == 1).astype(np.float32)), torch.from_numpy(masks != IGNORED)

    class Yes(DeepUNet):
        def forward(self, x):
            return super().forward(x).squeeze(1) if flat else super().forward(x)
    if not flat:
        y, counted = y[:, None], counted[:, None]
    model, large = Yes(3, 6, 1, 1), prepared(enlarged(folder, images))
    start = {name: value.clone() for name, value in model.state_dict().items()}
    for shift in (0, None):  # the second time with a bias by which about half of the answers are yes
        model.load_state_dict(start)
        with torch.no_grad():
            model.head.bias -= scores.median() if shift is None else 0
        export(model, x[:BATCH], folder / "model.onnx")
        load_initializers(model, folder / "model.onnx")
        model.train()
        optimizer, losses, gradients, sums = torch.optim.SGD(model.parameters(), RATE), [], {}, []
        for step in range(STEPS):
            part = slice(step % 2 * BATCH, step % 2 * BATCH + BATCH)
            optimizer.zero_grad()
            logits = model(x[part])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits[counted[part]], y[part][counted[part]])
            loss.backward()
            if step == 0:
                gradients = {name: parameter.grad.numpy().tolist() for name, parameter in model.named_parameters()}
            optimizer.step()
            losses.append(loss.item())
            sums.append(int(counted[part].sum()))
        with torch.no_grad():
            scores = model.eval()(x)
    with torch.no_grad():
        large = model(large)
    there, answered = y[counted] > 0.5, scores[counted] > 0
    both = int((there & answered).sum())
    (folder / "expected.json").write_text(json.dumps(
        {"losses": losses, "gradients": gradients, "counted": sums, "accuracy": float((there == answered).float().mean()),
         "mean_iou": both / int((there | answered).sum()), "precision": both / int(answered.sum()), "recall": both / int(there.sum()),
         "scores": scores.reshape(IMAGES, SIZE, SIZE).tolist(), "large": large.reshape(-1, SIZE, SIZE).tolist()}))


def compare_binary(folder):
    from safetensors.numpy import load_file
    expected = json.loads((folder / "expected.json").read_text())
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    np.testing.assert_allclose([line["loss"] for line in lines if line["event"] == "step"], expected["losses"], rtol=1e-5)
    last = [line for line in lines if line["event"] == "evaluate"][-1]
    for metric in ("accuracy", "mean_iou", "precision", "recall"):
        np.testing.assert_allclose(last[metric], expected[metric], rtol=1e-6, err_msg=metric)
    np.testing.assert_allclose(last["iou_by_class"], [expected["mean_iou"]], rtol=1e-6)
    found = load_file(folder / "gradients.safetensors")
    for name, gradient in expected["gradients"].items():
        np.testing.assert_allclose(found[name], gradient, rtol=1e-3, atol=1e-6, err_msg=name)
    check_all(folder, expected, lambda scores: (np.where(scores > 0, YES, NO), np.abs(scores) > 1e-3))


if __name__ == "__main__":
    commands = {"make": make, "compare": compare, "binary": make_binary, "compared": compare_binary}
    commands[sys.argv[1]](pathlib.Path(sys.argv[2]), *(argument == "flat" for argument in sys.argv[3:]))
