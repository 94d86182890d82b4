#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one plan of everything is ahead of the best plan of one kind alone, at the same bytes, predicted, as Markdown lines on stdout.

    tools/bench/joint.py [--device v100-pcie] [--target cuda] MODEL:BATCH:BUDGET[:PARTS,..][:FLAG...] ..

MODEL is a folder below ~/.cache/sluice/models (test/models/make_torchvision.py --export-only, make_gpt2.py), BUDGET a share of what keeping everything on the device needs (40%), PARTS what
--parts takes, several with a semicolon between them. Alone are: activations kept, moved and made again, whole (--strategy=mixed); states, and states and parameters, as many
of them at home in host memory as the budget needs, with all activations kept; parts, with all activations of them kept. Together: each of the homes with each of the parts, activations planned. Of each the fastest one that fits is taken; times are over keeping everything on the device."""
import argparse
import itertools

from beyond import plan

HOMES = ([], ["--state-home=auto"], ["--state-home=auto", "--parameter-home=auto"])


class Planner:
    def __init__(self, options, model, flags):
        self.options, self.model, self.flags = options, model, flags

    def plan(self, *flags):
        """Figures of the plan; none where it does not fit."""
        return plan(self.options, self.model, [*self.flags, *flags])[0]

    def best(self, tries, budget, keeps):
        """(seconds, flags) of the fastest try within the budget; none fits: (None, [])."""
        found = []
        for flags in tries:
            made = self.plan(*flags, *(["--strategy=keep"] if keeps else []), f"--memory-budget={budget}")
            if made:
                found.append((made["seconds"], flags))
        return min(found, default=(None, []))


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
        planner = Planner(options, model, [f"--batch={batch}", *filter(None, flags)])
        keep = planner.plan("--strategy=keep")
        share = float(budget.rstrip("%")) / 100
        size = int(keep["keep_arena"] * share)
        alone = [planner.best([[]], size, False), planner.best(HOMES[1:], size, True), planner.best(cuts, size, True)]
        together = min((planner.best([home], size, False) for home in ([*home, *cut] for home, cut in itertools.product(HOMES, [[], *cuts]))), key=lambda found: found[0] or float("inf"))
        over = lambda found: f"{found[0] / keep['keep_seconds'] - 1:+.1%}" if found[0] else "-"
        first = min((found[0] for found in alone if found[0]), default=None)
        ahead = f"{1 - together[0] / first:.1%}" if first else "alone none fits"
        row = [model, batch, f"{size / 2**20:.0f}", f"{share:.0%}", *map(over, alone), over(together), " ".join(together[1]) or "activations", ahead]
        print("| " + " | ".join(row).replace("%", " %") + " |", flush=True)


if __name__ == "__main__":
    main()
