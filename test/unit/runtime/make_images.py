# SPDX-License-Identifier: Apache-2.0
# Writes images/ beside this file: small pictures and what Pillow and torchvision make of them, for common_images.cpp.
#   make_images.py    (in the environment of tools/setup.sh --references; Pillow 10 or later)
import pathlib

import numpy as np
from PIL import Image, ImageEnhance

here = pathlib.Path(__file__).parent / "images"
here.mkdir(exist_ok=True)
rng = np.random.default_rng(5)
y, x = np.mgrid[0:37, 0:53]
smooth = np.stack([x * 4.7, y * 6.5, 127 + 90 * np.sin(x / 5.0) * np.cos(y / 4.0)], -1)
picture = Image.fromarray(np.clip(smooth + rng.normal(0, 20, smooth.shape), 0, 255).astype(np.uint8))

picture.save(here / "colours.png")
picture.save(here / "colours.jpg", quality=90)
picture.convert("L").save(here / "grey.png")
picture.convert("L").save(here / "grey.jpg", quality=90)
picture.convert("P").save(here / "palette.png")
picture.convert("RGBA").save(here / "alpha.png")
picture.convert("CMYK").save(here / "cmyk.jpg")


def expect(name, image):
    """Rows of interleaved bytes, after width, height and channels as 32-bit numbers."""
    array = np.asarray(image)
    array = array[:, :, None] if array.ndim == 2 else array
    head = np.array([array.shape[1], array.shape[0], array.shape[2]], "<i4")
    (here / name).write_bytes(head.tobytes() + array.tobytes())


for name in ("colours.png", "colours.jpg", "grey.png", "grey.jpg", "palette.png", "alpha.png"):
    expect(name + ".rgb", Image.open(here / name).convert("RGB"))
expect("colours.png.grey", picture.convert("L"))
for width, height in ((24, 24), (100, 20), (53, 80), (7, 37)):
    expect(f"resized-{width}-{height}", picture.resize((width, height), Image.BILINEAR))
expect("part", picture.crop((5, 3, 45, 30)).resize((16, 48), Image.BILINEAR))
for angle in (15.5, -130.25):
    expect(f"rotated-{angle}", picture.rotate(angle, Image.BILINEAR))
for name, enhance in (("brightness", ImageEnhance.Brightness), ("contrast", ImageEnhance.Contrast),
                      ("saturation", ImageEnhance.Color)):
    for factor in (0.4, 1.7):
        expect(f"{name}-{factor}", enhance(picture).enhance(factor))
