# SPDX-License-Identifier: Apache-2.0
"""How the Python package is used, for a checker of types: never run. Calls that make no sense say which error the checker has to find."""
import pathlib
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import sluice

images, labels = np.zeros((8, 2, 4, 4), np.float32), np.zeros(8, np.int64)
module = torch.nn.Linear(4, 2)
with sluice.compile(module, torch.zeros(8, 4), budget="60%", optimizer="adamw", log=print) as trainer:
    loss: float = trainer.step(torch.from_numpy(images), labels)
    loss = trainer.step({"x": images}, {"target": labels})
    losses: list[list[float]] = trainer.fit(images, labels, epochs=3, shuffle=True, lr=3e-4, progress=lambda epoch, step, steps, value: None)
    losses = trainer.fit(((images, labels) for _ in range(3)), momentum=0.9)
    losses = trainer.fit("imagefolder:photos", epochs=2)
    with trainer.files(pathlib.Path("photos"), validation_split=20, shuffle=True, augment="flip", class_=["a", "b"]) as photos:
        losses = trainer.fit(photos, lr=0.1)
        found_in_files: dict[str, Any] = trainer.evaluate(photos)
        epoch: int = photos.step()[0]
    scores: npt.NDArray[Any] = trainer.predict(images)
    several: dict[str, npt.NDArray[Any]] = trainer.predict([images, images], outputs=["output"], progress=lambda done, of: done < of)
    found: float = trainer.evaluate(images, labels, metrics="f1")["loss"]
    module.load_state_dict(trainer.state_dict())
    missing: list[str] = trainer.load_state_dict(module.state_dict())
    trainer.write("weight", trainer.read("weight"))
    trainer.save(pathlib.Path("run"))
    page: str = trainer.report("plan.html").text
    seconds: float = trainer.plan["predicted_seconds"]
trainer = sluice.compile("model.onnx", batch=8)
trainer.step()  # type: ignore[call-arg]
trainer.fit(images, labels, epochs="3")  # type: ignore[arg-type]
trainer.set(lr="fast")  # type: ignore[arg-type]
trainer.fit(epochs=3)  # type: ignore[call-arg]
several = trainer.predict(images)  # type: ignore[assignment]
