#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the losses of two training logs.

    test/models/losses.py a.jsonl b.jsonl [--tolerance 0.05 | --within 0.05]

Without a tolerance they must be the same numbers. With one, every relative difference is at most that, and one at least is not zero: a
lossy plan that changes nothing did not do what it was asked to. --within lets it."""
import argparse
import json
import sys


def losses(path):
    with open(path) as file:
        return [event["loss"] for event in map(json.loads, file) if event["event"] == "step"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--within", type=float)
    options = parser.parse_args()
    a, b = losses(options.a), losses(options.b)
    if len(a) != len(b) or not a:
        sys.exit(f"losses: {len(a)} and {len(b)} steps")
    worst = max(abs(x - y) / max(abs(x), 1e-30) for x, y in zip(a, b))
    print(f"losses: {len(a)} steps, largest relative difference {worst:.2e}")
    if options.within is not None:
        sys.exit(0 if worst <= options.within else 1)
    if options.tolerance is None:
        sys.exit(0 if a == b else 1)
    sys.exit(0 if 0 < worst <= options.tolerance else 1)


if __name__ == "__main__":
    main()
