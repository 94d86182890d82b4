#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""resident.py PROGRAM: trains on synthetic data, and checks what the program says of its memory at its start and end: both arenas together, and the whole
process, which takes at most 40 MiB beside them and beside pages of files, as docs/results/one-memory.md measures it.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench"))
from one_memory import run_watched  # noqa: E402


def main():
    resident, files, said = run_watched(sys.argv[1], 50)

    def numbers(pattern):
        found = re.findall("^" + pattern, said, re.MULTILINE)
        assert len(found) == 1, (pattern, said)
        return [int(number) for number in (found[0] if isinstance(found[0], tuple) else found)]

    planned = [numbers(name + r":\s+(\d+) bytes") for name in ("device memory", "host memory", "together")]
    assert planned[2][0] == planned[0][0] + planned[1][0], said
    device, host, together = (numbers(name + r":\s+(\d+) of (\d+) bytes touched") for name in ("device memory", "host memory", "together"))
    assert together == [device[0] + host[0], device[1] + host[1]] and together[1] == planned[2][0], said
    process = numbers(r"whole process:\s+(\d+) bytes .* resident at most$")[0]
    assert max(resident, together[0]) <= process <= together[1] + files + (40 << 20), (process, resident, together, files)
    print(f"together {together[1]} bytes, resident {process}, of files {files}")


if __name__ == "__main__":
    main()
