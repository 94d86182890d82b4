# SPDX-License-Identifier: Apache-2.0
"""Images, masks and PyTorch's losses for test/execute/segmentation.test.

    segmentation.py make FOLDER       writes them: model.onnx, images/, masks/, expected.json
    segmentation.py compare FOLDER    what the program logged and predicted against them

A U-Net for colour images and three classes of pixels, which depend on the colours; some pixels are ignored. Masks are PNG with a palette, as VOC has them.
"""
import json
import pathlib
import sys

import numpy as np

IMAGES, SIZE, BATCH, STEPS, CLASSES, IGNORED, WEIGHTS, RATE = 10, 16, 4, 6, 3, 255, [1, 0.5, 3], 0.1


def pictures(folder):
    """Bytes (N, SIZE, SIZE, 3) and classes (N, SIZE, SIZE), in the order of the files' names."""
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
        palette = Image.fromarray(mask, mode="P")
        palette.putpalette(list(range(255, -1, -1)) * 3)
        palette.save(folder / f"masks/street_{i}_labels.png")
    return images, masks


def make(folder):
    import torch
    from networks import DeepUNet
    from reference import export, load_initializers
    torch.manual_seed(4)
    torch.set_num_threads(1)
    images, masks = pictures(folder)
    x = (torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25
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
    counted, answers = y != IGNORED, scores.argmax(1)
    shares = [(counted & (y == c) & (answers == c)).sum() / (counted & ((y == c) | (answers == c))).sum() for c in range(CLASSES)]
    accuracy = (answers == y)[counted].float().mean().item()
    (folder / "expected.json").write_text(json.dumps(
        {"losses": losses, "accuracy": accuracy, "mean_iou": float(sum(shares)) / CLASSES, "scores": scores.numpy().tolist()}))


def compare(folder):
    expected = json.loads((folder / "expected.json").read_text())
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    np.testing.assert_allclose([line["loss"] for line in lines if line["event"] == "step"], expected["losses"], rtol=1e-5)
    last = [line for line in lines if line["event"] == "evaluate"][-1]
    for metric in ("accuracy", "mean_iou"):
        np.testing.assert_allclose(last[metric], expected[metric], rtol=1e-6, err_msg=metric)
    np.testing.assert_allclose(np.load(folder / "scores.npy"), expected["scores"], rtol=1e-3, atol=1e-4)


if __name__ == "__main__":
    {"make": make, "compare": compare}[sys.argv[1]](pathlib.Path(sys.argv[2]))
