# SPDX-License-Identifier: Apache-2.0
"""The index of claims, misses first, and the page of machines."""
import re

from .claims import POOR
from .words import EVEN, machine_of, number, percent, ratio, table

HEAD = f"""# Results

Find here how fast Recmill is beside other programs, where it is slower, and on which machine that was measured. Each
claim has a page with a verdict, a chart and every figure. `tools/results` writes all of these pages from
`bench/results`, so nothing here is written by hand: `tools/results --check` fails where a page is old.

## How results are measured

- A benchmark is `build/recmill bench NAME --json`. It prints a JSON line for each case and rival, and that line is the
  data. Some limits are measured by scripts in `bench`, which print lines of their own.
- Answers are checked first. A case whose answers differ from the rival's is not timed.
- Recmill and its rivals alternate in one run on one machine. Both have 2 threads, unless a name ends in `_1t` or a page
  says otherwise.
- *Ours* is the median of the repetitions.
- *Ratio* is the rival's median time by ours. Above 1 is in Recmill's favour: 2.00 is twice as fast.
- *Slower by 7 %* is a ratio of 0.93. *Even* is a ratio within {percent(EVEN)} of 1.
- *Spread* is half the distance between the quartiles of the repetitions' ratios, as a share of the ratio.
- *Limit* is what the machine allows, measured in the same run: for example the peak of its multiply-adds, or its
  memory's rate. Some limits are what is asked for, which their pages say.
- *Share of limit* is how near ours comes to the limit.
- A *comparison* is one case beside one rival.
- Where a command printed a case more than once at one commit, its lines are runs 1, 2 and so on, and all of them count.
- What newer runs replaced, and notes on past runs, is in [bench/history](../../bench/history/diary.md).

## Claims

A comparison is a miss where its ratio is below 1 and not even. A case without a rival is a miss where it is above a
limit that it must keep to, below what is asked for, or, where the limit is what the machine allows, below
{percent(POOR)} of it. Claims with misses come first, the largest miss at the top.
"""


def link(claim):
    return f"[{claim.title}]({claim.name}.md)"


def worst(claim):
    """Of the misses, how far the largest is from what would be none."""
    shares = []
    for outcome in claim.misses():
        line = outcome.line
        if outcome.by_ratio:
            shares.append(line.ratio)
        else:
            shares.append(line.limit / line.value if line.value > line.limit else line.of_limit)
    return min(shares, default=1.0)


def least(claim):
    ratios = [outcome.line.ratio for outcome in claim.outcomes() if outcome.by_ratio]
    return ratio(min(ratios)) if ratios else ""


def readme(claims):
    missing = sorted((claim for claim in claims if claim.misses()), key=worst)
    held = [claim for claim in claims if not claim.misses()]
    rows = [[link(claim), claim.against, str(len(claim.misses())), least(claim), claim.verdict()]
            for claim in missing + held]
    return (f"{HEAD}\n{table(['claim', 'beside', 'misses', 'least ratio', 'verdict'], rows)}\n"
            f"[Machines](machines.md): where each claim was measured.\n")


def of_machine(claims):
    """machine: [(claim, its lines there)]."""
    machines = {}
    for claim in claims:
        lines = {}
        for line in claim.lines:
            lines.setdefault(machine_of(line), []).append(line)
        for machine, inner in lines.items():
            machines.setdefault(machine, []).append((claim, inner))
    return machines


def span(values):
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def limits_there(lines, limits):
    rows = []
    for limit in limits:
        found = [line for line in lines if line.bench == limit["bench"] and re.search(limit["match"], line.key)]
        values = [line.limit if limit["field"] == "limit" else getattr(line, limit["field"]) for line in found]
        values = [value for value in values if value is not None]
        if values:
            unit = limit.get("unit") or found[0].unit
            rows.append([limit["what"], f"{span(values)} {unit}", str(len(values)), f"`bench {limit['bench']}`"])
    return rows


def machines_page(claims, limits):
    text = ["# Machines\n\nLook up here where a claim was measured, and what that machine can do. Names are those that "
            "the lines have. [All results](README.md)\n"]
    for machine, measured in sorted(of_machine(claims).items()):
        rows = [[link(claim), str(len(lines)), ", ".join(sorted({line.commit or "not recorded" for line in lines}))]
                for claim, lines in measured]
        text.append(f"## {machine[:1].upper() + machine[1:]}\n\n{table(['claim', 'figures', 'commits'], rows)}")
        found = limits_there([line for _, lines in measured for line in lines], limits)
        if found:
            text.append("Limits in its lines, from the least to the greatest:\n\n"
                        + table(["limit", "value", "lines", "measured by"], found))
    return "\n".join(text)
