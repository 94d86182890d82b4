# SPDX-License-Identifier: Apache-2.0
"""Gives hostile profiles to the compiler, as --device and as --profile: profiles.py SLUICEC MODEL. Each must end with status 0 or 1, in time,
and an error must be one line."""
import json
import os
import subprocess
import sys

sluicec, model = sys.argv[1:]
links = {"d2h": 1e9, "h2d": 1e9, "duplex": 1e9}
rates = {"flops": {"fp32": 1e11}, "memory_bandwidth": 1e10}
good = {"version": 1, "device": "x", "links": links, "rates": rates}
texts = ['{"version":1}', json.dumps(good), "", "[]", "[" * 200000, '{"version":' + "[" * 200000 + "]" * 200000 + "}", "\xff"]
numbers = [0, -1, 1e-320, 1e300, 1e400, 2**64, "1", None]
for path in (["links", "d2h"], ["links", "h2d"], ["links", "duplex"], ["links", "latency_seconds"], ["links", "contention"], ["rates", "flops", "fp32"],
             ["rates", "memory_bandwidth"], ["rates", "launch_seconds"], ["rates", "efficiency"], ["rates", "efficiency", "conv"], ["codecs", "fp16"],
             ["codec_contention"], ["threads"], ["memory_bytes"], ["version"], ["links"], ["rates"], ["ops"], ["ops", "seconds"], ["ops", "workspace_bytes"]):
    for number in numbers:
        profile = json.loads(json.dumps(good))
        inner = profile
        if path[0] == "ops" and len(path) > 1:
            profile["ops"] = [{"node": "/0/Gemm", "op": "matmul", "seconds": 1, path[1]: number}]
        else:
            for key in path[:-1]:
                inner = inner.setdefault(key, {})
            inner[path[-1]] = number
        texts.append(json.dumps(profile).replace("Infinity", "1e400"))
texts.append('{"version":1,"links":{"d2h":NaN}}')


def check(path, flags, said):
    done = subprocess.run([sluicec, model, "--batch=8", "--emit=planned", "--memory-budget=70%act", "--host-budget=unlimited", *flags], capture_output=True, timeout=60)
    error = done.stderr.decode("utf-8", "replace")
    if done.returncode not in (0, 1, 3) or (done.returncode == 1 and error.count("\n") != 1):
        sys.exit(f"status {done.returncode} with {flags}: {said[:200]}: {error[:500]}")
    return done.returncode


statuses = []
for i, text in enumerate(texts):
    with open("hostile.json", "w", encoding="latin-1") as file:
        file.write(text)
    flag = "--device" if i % 2 == 0 or i < 7 else "--profile"
    statuses.append(check("hostile.json", [f"{flag}=hostile.json"], text))
assert statuses[0] == 1 and statuses[1] in (0, 3), statuses[:2]
os.mkfifo("profile-pipe")
for path in ("profile-pipe", "/dev/zero", "."):
    for flag in ("--device", "--profile"):
        assert check(path, [f"{flag}={path}"], path) == 1, path
print(f"{len(texts)} profiles: {statuses.count(1)} refused, {len(texts) - statuses.count(1)} taken")
