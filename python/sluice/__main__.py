# SPDX-License-Identifier: Apache-2.0
"""python -m sluice is the command sluice, which stands beside sluicec."""
import os
import sys

from ._compiler import find_compiler


def main(name="sluice"):
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
