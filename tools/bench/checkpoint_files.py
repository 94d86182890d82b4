# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and logs of programs, read without the program: what robustness.py looks at between kills."""
import json
import struct

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(bytes_):
    state = 0xFFFFFFFF
    for byte in bytes_:
        state = state >> 8 ^ TABLE[(state ^ byte) & 0xFF]
    return f"{state ^ 0xFFFFFFFF:08x}"


def step_of(path):
    """The step of a checkpoint, read and summed by code that shares nothing with the program; None for no file."""
    if not path.exists():
        return None
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header, begin = json.loads(content[8:8 + length]), 8 + length
    words = header.pop("__metadata__")
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        assert crc32c(content[begin + first:begin + last]) == words["crc32c:" + name], f"{path}: {name} is damaged"
    assert begin + max(entry["data_offsets"][1] for entry in header.values()) == len(content), f"{path}: length"
    return int(words["step"])


def losses_of(log):
    """By step, as the log writes them: the shortest digits that read back as the same bits. The last line may be cut off."""
    lines = [json.loads(line) for line in log.read_text().split("\n")[:-1]] if log.exists() else []
    return {line["step"]: line["loss"] for line in lines if line["event"] == "step"}
