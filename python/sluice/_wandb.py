# SPDX-License-Identifier: Apache-2.0
"""python -m sluice wandb LOG.jsonl: a run's log as an offline run of Weights & Biases, by their own library. Nothing is sent; `wandb sync` does that.

Curves have the names of --tensorboard, over `step`: an evaluation of earlier weights may stand behind later steps."""
import argparse
import json
import pathlib
import sys


def events(path: pathlib.Path) -> list[dict]:
    """The lines of a log; the last one of a run that was killed, or that still writes, may be in parts."""
    found, lines = [], path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            if number == len(lines):
                break
            event = None
        if not isinstance(event, dict) or "event" not in event:
            raise ValueError(f"{path}:{number}: is no event of a run; name a file that --log wrote")
        found.append(event)
    if not found or found[0]["event"] != "start":
        raise ValueError(f"{path}: does not begin with the start of a run; name a file that --log wrote")
    if found[0].get("version", 1) != 1:  # the first logs say none
        raise ValueError(f"{path}: is of version {found[0]['version']} of the log, this package reads 1; take that of a later Sluice")
    return found


def numbers(event: dict, prefix: str, classes: list) -> dict:
    """What of an event is a curve; F1 of a class is f1_by_class/NAME."""
    curves = {}
    for name, value in event.items():
        if name in ("event", "step", "epoch", "samples"):
            continue
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            curves[prefix + name] = value
        elif name.endswith("_by_class"):
            named = classes if len(classes) == len(value) else range(len(value))
            curves.update({f"{prefix}{name}/{one}": number for one, number in zip(named, value) if number is not None})
    return curves


def convert(path: pathlib.Path, **options) -> str:
    """Writes the run of a log; the folder that it is in. `options` are those of wandb.init."""
    import wandb
    log = events(path)
    classes = log[0].get("classes", [])
    with wandb.init(config={name: value for name, value in log[0].items() if name not in ("event", "version")}, mode="offline", **options) as run:
        run.define_metric("*", step_metric="step")
        for event in log:
            if event["event"] in ("step", "evaluate"):
                place = {name: event[name] for name in ("step", "epoch") if name in event}
                run.log({**place, **numbers(event, "train/" if event["event"] == "step" else "evaluation/", classes)})
            elif event["event"] == "end":
                run.summary.update(numbers(event, "end/", classes))
        return run.dir.removesuffix("/files")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="sluice wandb", description="Makes an offline run of Weights & Biases of a program's --log.")
    parser.add_argument("log", type=pathlib.Path, metavar="LOG.jsonl")
    parser.add_argument("--project", default="sluice", help="default: sluice")
    parser.add_argument("--name", help="what the run is called (default: the log's name)")
    parser.add_argument("--folder", type=pathlib.Path, default=".", help="where the folder wandb is made (default: here)")
    options = parser.parse_args(arguments)
    try:
        folder = convert(options.log, project=options.project, name=options.name or options.log.stem, dir=options.folder)
    except ModuleNotFoundError as error:
        if error.name != "wandb":
            raise
        sys.exit("sluice wandb: error: the library of Weights & Biases is missing; pip install wandb")
    except (OSError, ValueError) as error:
        sys.exit(f"sluice wandb: error: {error}")
    print(f"{folder}\nto send it: wandb sync {folder}")
