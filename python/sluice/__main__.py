# SPDX-License-Identifier: Apache-2.0
"""python -m sluice is the command sluice, which stands beside sluicec, and has four commands more: convert, generate, tokenize and wandb."""
import os
import sys

from ._compiler import find_compiler


def main(name="sluice"):
    if name == "sluice" and sys.argv[1:2] == ["wandb"]:
        from . import _wandb
        return _wandb.main(sys.argv[2:])
    if name == "sluice" and sys.argv[1:2] == ["convert"]:
        from . import _convert
        return _convert.main(sys.argv[2:])
    if name == "sluice" and sys.argv[1:2] == ["tokenize"]:
        from . import _tokenize
        return _tokenize.main(sys.argv[2:])
    if name == "sluice" and sys.argv[1:2] == ["generate"]:
        from . import _generate
        return _generate.main(sys.argv[2:])
    command = find_compiler().with_name(name)
    try:
        os.execv(command, [name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: error: cannot start {command}: {error.strerror}")


def compiler():
    main("sluicec")


def planner():
    main("sluice-plan")


if __name__ == "__main__":
    main()
