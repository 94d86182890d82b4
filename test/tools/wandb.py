# SPDX-License-Identifier: Apache-2.0
"""Compares what a stand-in for the library of Weights & Biases was told with a program's log: wandb.py said.json run.jsonl"""
import json
import sys

said = json.load(open(sys.argv[1]))
log = [json.loads(line) for line in open(sys.argv[2])]
steps, evaluations = ([line for line in log if line["event"] == event] for event in ("step", "evaluate"))
assert (said["mode"], said["project"], said["name"]) == ("offline", "tests", "run"), said
assert said["config"]["optimizer"] == "sgd" and said["config"]["batch"] == 8 and said["metrics"] == [["*", {"step_metric": "step"}]]
trained = [one for one in said["log"] if "train/loss" in one]
assert steps and [(one["step"], one["train/loss"], one["train/lr"]) for one in trained] == [(one["step"], one["loss"], one["lr"]) for one in steps]
evaluated = [one for one in said["log"] if "evaluation/loss" in one]
assert evaluations and [(one["step"], one["evaluation/accuracy"]) for one in evaluated] == [(one["step"], one["accuracy"]) for one in evaluations]
assert all(one[f"evaluation/f1_by_class/{i}"] == line["f1_by_class"][i] for one, line in zip(evaluated, evaluations) for i in range(5))
assert len(said["log"]) == len(trained) + len(evaluated) and said["summary"]["end/steps"] == log[-1]["steps"]
print(f"{len(trained)} steps, {len(evaluated)} evaluations")
