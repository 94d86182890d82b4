# SPDX-License-Identifier: Apache-2.0
"""What a budget does to a model of the zoo, by tools/bench/zoo.py --budget LIST: how long planning and refusing take, whether what a refusal calls the
smallest feasible budget is one, and whether one byte less is refused with the same number.

Times are those of whole compilations to a placed program. A refusal is slow that takes longer than five seconds and longer than three times the
compilation at the smallest feasible budget."""
import re

from zoo_limits import outcome, run_limited
from zoo_table import cell, commits, errors_of, machine

SECONDS, TIMES = 5, 3


def judge(options, flags, row):
    """Adds to `row` what each budget of options.budget comes to for the compilation of `flags`: row["budgets"] says it by budget."""
    status, row["keep_seconds"], _, error = run_limited(options, [*flags, "--emit=placed"])
    if status != 0:
        return row | {"verdict": outcome(status), "errors": errors_of(error)}
    row["budgets"] = {budget: judge_one(options, flags, budget) for budget in options.budget.split(",")}
    return row | {"verdict": ", ".join(found["verdict"] for found in row["budgets"].values()),
                  "seconds": sum(found["seconds"] for found in row["budgets"].values()),
                  "errors": [error for found in row["budgets"].values() for error in found["errors"]]}


def judge_one(options, flags, budget):
    def compiled(budget):
        status, seconds, _, error = run_limited(options, [*flags, "--emit=placed", f"--memory-budget={budget}"])
        return status, seconds, error

    status, seconds, error = compiled(budget)
    found = {"verdict": {0: "fits", 3: "refused"}.get(status, outcome(status)), "seconds": seconds, "errors": []}
    if status == 0:
        return found
    smallest = re.search(r"^smallest feasible budget: (\d+) bytes$", error, re.M)
    if status != 3 or not smallest:
        return found | {"verdict": f"{found['verdict']}, no smallest budget", "errors": errors_of(error)}
    found["smallest"] = int(smallest[1])
    status, found["smallest_seconds"], error = compiled(found["smallest"])
    if status != 0:
        return found | {"verdict": "its smallest budget is refused", "errors": errors_of(error)}
    status, _, error = compiled(found["smallest"] - 1)
    if status != 3 or f"smallest feasible budget: {found['smallest']} bytes" not in error:
        return found | {"verdict": f"one byte less: {outcome(status)}", "errors": errors_of(error)}
    if seconds > max(SECONDS, TIMES * found["smallest_seconds"]):
        found["verdict"] = "refused too late"
    return found


def page(budgets, versions, models, rows):
    """docs/results/refusals.md."""
    rows = [rows[model.name, "any"] for model in models if (model.name, "any") in rows]
    judged = [(row, budget, found) for row in rows for budget, found in row.get("budgets", {}).items()]
    lines = ["# Refusals", "",
             "The models of the [zoo](zoo.md), batch of 2, compiled to a placed program with budgets that are too small for most of them: how long the compiler takes to say no, and whether",
             "the smallest feasible budget that it names is one. That one is compiled, too, and one byte less has to be refused with the same number. A refusal may take",
             f"{SECONDS} s, or {TIMES} times the compilation at the smallest budget where that is more. Each model by the first exporter that takes it, torchscript before dynamo.", "",
             f"{machine()}, one thread, at real-time priority; {versions}. Commits, and how many models each judged: {commits(dict(enumerate(rows)))}.", "",
             f"    chrt -f 10 tools/bench/zoo.py --work DIR --budget {budgets}", f"    tools/bench/zoo.py --work DIR --budget {budgets} --table docs/results/refusals.md", "",
             "| budget | models | fit | are refused | otherwise | slowest refusal | refusals of more than 5 s |", "|---|---|---|---|---|---|---|"]
    for budget in budgets.split(","):
        these = [(row, found) for row, name, found in judged if name == budget]
        fit, refused = ([(row, found) for row, found in these if found["verdict"] == verdict] for verdict in ("fits", "refused"))
        slowest, name = max(((found["seconds"], row["model"]) for row, found in refused), default=(0, "-"))
        lines.append(f"| {budget} | {len(these)} | {len(fit)} | {len(refused)} | {len(these) - len(fit) - len(refused)} | {slowest:.1f} s ({name}) |"
                     f" {sum(found['seconds'] > SECONDS for _, found in refused)} |")
    lines += ["", "| model | budget | verdict | compilation without | with it | with the smallest | smallest | |", "|---|---|---|---|---|---|---|---|"]
    for row, budget, found in judged:
        smallest = f"{found['smallest_seconds']:.1f} s | {found['smallest']:,}" if "smallest_seconds" in found else "|"
        lines.append(f"| {row['model']} | {budget} | {found['verdict']} | {row['keep_seconds']:.1f} s | {found['seconds']:.1f} s |"
                     f" {smallest} | {cell(''.join(found['errors'][:1])[:200])} |")
    return "\n".join(lines) + "\n"
