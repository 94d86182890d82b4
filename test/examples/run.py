# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of an example's README, as guide.py runs those of pages, in a copy of its folder.

    run.py FOLDER NAME [PYTHON]     NAME is a folder of examples/, FOLDER gets its copy; PYTHON is what the page calls python3 (default: this one)
"""
import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUBSTITUTIONS = {"timm": [(" --pretrained", "")]}  # nothing is downloaded
sys.path.insert(0, str(ROOT / "test/tools"))
import guide  # noqa: E402, beside the tests of pages


def main() -> None:
    out, name, python = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], (sys.argv[3:] or [sys.executable])[0]
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(ROOT / "examples" / name, out)
    (out / "bin").mkdir()
    (out / "bin/python3").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    (out / "bin/python3").chmod(0o755)
    environment = {**os.environ, "PATH": f"{out / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1",
                   "SLUICE_CACHE": str(out / "libraries"), "OMP_NUM_THREADS": "2"}
    commands = list(guide.commands(out / "README.md", None, ""))
    for command in commands:
        for old, new in SUBSTITUTIONS.get(name, []):
            command.text = command.text.replace(old, new)
    good = [guide.check(command, f"{name}/README.md:{command.line}", out, environment) for command in commands]
    sys.exit(not good or not all(good))


main()
