# SPDX-License-Identifier: Apache-2.0
"""python -m sluice is the command sluice, which stands beside sluicec."""
import os
import sys

from ._compiler import find_compiler


def main():
    command = find_compiler().with_name("sluice")
    try:
        os.execv(command, ["sluice", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"sluice: error: cannot start {command}: {error.strerror}")


if __name__ == "__main__":
    main()
