# SPDX-License-Identifier: Apache-2.0
"""Whether a checkpoint is of the last step in a log: last_step.py LOG.jsonl CHECKPOINT.safetensors."""
import json
import struct
import sys

with open(sys.argv[1]) as file:
    last = [event["step"] for event in map(json.loads, file) if event["event"] == "step"][-1]
with open(sys.argv[2], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
sys.exit(0 if int(header["__metadata__"]["step"]) == last else f"{header['__metadata__']['step']} is not {last}")
