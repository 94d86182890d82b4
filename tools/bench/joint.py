#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one plan of everything is ahead of the best plan of one kind alone, at the same bytes, predicted, as Markdown lines on stdout.

    tools/bench/joint.py [--device v100-pcie] [--target cuda] MODEL:BATCH:BUDGET[:PARTS,..][:FLAG...] ..

MODEL is a folder below ~/.cache/sluice/models (test/models/make_torchvision.py --export-only, make_gpt2.py), BUDGET a share of what keeping everything on the device needs (40%), or `both`: a
fiftieth more than the smallest budget at which activations alone and homes alone have a plan, PARTS what --parts takes, several with a semicolon between them. Of several batches (1,2,4) the one
is taken for which these two smallest budgets are nearest to each other, as shares of the larger one. Alone are: activations kept, moved and made again, whole (--strategy=mixed); states, and states and parameters, as many
of them at home in host memory as the budget needs, with all activations kept; parts, with all activations of them kept. Together: activations planned, with as many states and
parameters at home as is best, with each of the parts. Of each the fastest one that fits is taken; times are over keeping everything on the device."""
import argparse
import itertools

from beyond import plan

AWAY = ["--state-home=host", "--parameter-home=host"]
HOMES = ([], ["--state-home=auto"], ["--state-home=auto", "--parameter-home=auto"])


class Planner:
    def __init__(self, options, model, flags):
        self.options, self.model, self.flags = options, model, flags
        self.known = {}

    def plan(self, *flags):
        """Figures of the plan; none where it does not fit."""
        if flags not in self.known:
            self.known[flags] = plan(self.options, self.model, [*self.flags, *flags])[0]
        return self.known[flags]

    def best(self, tries, budget, keeps):
        """(seconds, flags) of the fastest try within the budget; none fits: (None, [])."""
        found = []
        for flags in tries:
            made = self.plan(*flags, *(["--strategy=keep"] if keeps else []), f"--memory-budget={budget}")
            if made:
                found.append((made["seconds"], flags))
        return min(found, default=(None, []))

    def smallest(self):
        """Smallest budgets in bytes of activations alone and of homes alone."""
        return [plan(self.options, self.model, [*self.flags, *alone, "--memory-budget=4096"])[1] for alone in ([], ["--strategy=keep", *AWAY])]


def even(options, model, batches, flags):
    """(batch, its planner, its smallest budgets); budgets are asked for only where there are several batches."""
    planners = [(batch, Planner(options, model, [f"--batch={batch}", *flags])) for batch in batches.split(",")]
    if len(planners) == 1:
        return *planners[0], None
    found = [(*one, one[1].smallest()) for one in planners]
    return max(found, key=lambda one: min(one[2]) / max(one[2]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--device", default="v100-pcie")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    print("| model | batch | budget MiB | of keep | activations alone | homes alone | parts alone | together | by | ahead of the best alone |\n|---|---|---|---|---|---|---|---|---|---|")
    for word in options.models:
        model, batch, budget, parts, *flags = (word + "::").split(":")
        cuts = [[f"--parts={cut}"] for cut in parts.split(";") if cut]
        batch, planner, smallest = even(options, model, batch, list(filter(None, flags)))
        keep = planner.plan("--strategy=keep")
        size = int(1.02 * max(smallest or planner.smallest())) if budget == "both" else int(keep["keep_arena"] * float(budget.rstrip("%")) / 100)
        alone = [planner.best([[]], size, False), planner.best(HOMES[1:], size, True), planner.best(cuts, size, True)]
        together = min((planner.best([[*home, *cut]], size, False) for home, cut in itertools.product(([], HOMES[-1]), [[], *cuts])), key=lambda found: found[0] or float("inf"))
        over = lambda found: f"{found[0] / keep['keep_seconds'] - 1:+.1%}" if found[0] else "-"
        first = min((found[0] for found in alone if found[0]), default=None)
        ahead = f"{1 - together[0] / first:.1%}" if first else "alone none fits"
        row = [model, batch, f"{size / 2**20:.0f}", f"{size / keep['keep_arena']:.0%}", *map(over, alone), over(together), " ".join(together[1]) or "activations", ahead]
        print("| " + " | ".join(row).replace("%", " %") + " |", flush=True)


if __name__ == "__main__":
    main()
