# SPDX-License-Identifier: Apache-2.0
"""Claims, as claims.toml describes them, with the lines that belong to each, and the verdict that follows from these.

A claim's lines are those of its benches whose key ("CASE METRIC RIVAL") one of its `match` is found in, of a CPU or
of a GPU as `device` says. Every line belongs to one claim.
"""
import dataclasses
import re
import tomllib

from .lines import WrongData
from .words import EVEN, listed, number, percent

POOR = 0.5       # of a limit, where no rival is there
ROUNDING = 1e-9  # of a sum in floating point


@dataclasses.dataclass
class Outcome:
    """What one line says for or against its claim."""
    line: object
    by_ratio: bool
    miss: bool


@dataclasses.dataclass
class Claim:
    name: str
    title: str
    use: str      # what a reader does with the page
    asked: str
    timed: str
    against: str
    bench: list
    command: str
    match: list = dataclasses.field(default_factory=lambda: [""])
    device: bool | str = False  # "any": of a CPU or of a GPU
    rivals: dict = dataclasses.field(default_factory=dict)
    limit: str = ""
    words: list = dataclasses.field(default_factory=lambda: ["faster", "slower"])
    not_judged: list = dataclasses.field(default_factory=list)  # of {match, why}
    at_most: list = dataclasses.field(default_factory=list)     # metrics whose limit is an upper one
    at_least: list = dataclasses.field(default_factory=list)    # metrics whose limit is what is asked for
    tables: list = dataclasses.field(default_factory=list)      # made for this page alone
    in_tables: list = dataclasses.field(default_factory=list)   # lines that only those tables show
    lines: list = dataclasses.field(default_factory=list)

    def owns(self, line):
        return (line.bench in self.bench and self.device in ("any", bool(line.device))
                and any(re.search(match, line.key) for match in self.match))

    def judges(self, line):
        return not any(re.search(rule["match"], line.key) for rule in self.not_judged)

    def plain_lines(self):
        """Those of the tables that every page has."""
        return [line for line in self.lines if not any(re.search(match, line.key) for match in self.in_tables)]

    def misses_limit(self, line):
        if line.holds is not None or line.metric in self.at_most:
            return line.value > line.limit * (1 + ROUNDING)
        return line.of_limit < (1 if line.metric in self.at_least else POOR)

    def outcomes(self):
        """A case with a rival is judged by its ratios, any other by its limits."""
        judged = list(filter(self.judges, self.plain_lines()))
        with_rival = {(line.stem, line.machine, line.case) for line in judged if line.ratio is not None}
        found = []
        for line in judged:
            if line.ratio is not None:
                found.append(Outcome(line, True, line.ratio < 1 - EVEN))
            elif line.of_limit is not None and (line.stem, line.machine, line.case) not in with_rival:
                found.append(Outcome(line, False, self.misses_limit(line)))
        return found

    def misses(self):
        return [outcome for outcome in self.outcomes() if outcome.miss]

    def place(self, line):
        """What tells the line's case from others of this claim: setting, machine."""
        settings, machines = ({getattr(other, name) for other in self.lines} for name in ("setting", "machine"))
        setting = f", {line.setting}" if line.setting and len(settings) > 1 else ""
        machine = f", on {line.machine.partition(',')[0]}" if line.machine and len(machines) > 1 else ""
        return f"`{line.case}`{setting}{machine}"

    def verdict(self):
        outcomes = self.outcomes()
        by_ratio = [outcome for outcome in outcomes if outcome.by_ratio]
        by_limit = [outcome for outcome in outcomes if not outcome.by_ratio]
        parts = [self.ratios_verdict(by_ratio), self.limits_verdict(by_limit, " without a rival" if by_ratio else "")]
        return " ".join(part for part in parts if part) or "No rival and no limit: figures only."

    def ratios_verdict(self, outcomes):
        if not outcomes:
            return ""
        better, worse = self.words
        misses = sorted((outcome.line for outcome in outcomes if outcome.miss), key=lambda line: line.ratio)
        hits = [outcome.line.ratio for outcome in outcomes if outcome.line.ratio > 1 + EVEN]
        even = len(outcomes) - len(hits) - len(misses)
        text = f"{better.capitalize()} in {len(hits)} of {len(outcomes)} comparisons"
        if hits:
            text += f", {'up to ' if len(hits) > 1 else ''}{number(max(hits))} times"
        text += f"; even in {even}" if even else ""
        said = [self.said_of(line) for line in misses]
        return text + (f"; {worse} in {len(misses)}: {listed(said)}." if misses else ".")

    def said_of(self, line):
        within = ", within its spread" if line.spread is not None and 1 - line.ratio < line.spread else ""
        return f"{self.place(line)} against `{line.rival}` by {percent(1 - line.ratio)}{within}"

    def limits_verdict(self, outcomes, which):
        if not outcomes:
            return ""
        misses = [outcome.line for outcome in outcomes if outcome.miss]
        said = [f"{self.place(line)} has {number(line.value)} of {number(line.limit)} {line.unit}".strip()
                for line in misses]
        text = f"Limits met{which}: {len(outcomes) - len(misses)} of {len(outcomes)}"
        return text + (f"; missed: {listed(said)}." if misses else ".")


def load(path):
    """(claims, settings by a file's name, limits of machines)."""
    with open(path, "rb") as file:
        described = tomllib.load(file)
    try:
        claims = [Claim(**fields) for fields in described["claim"]]
    except TypeError as error:
        raise WrongData(f"{path.name}: {error}") from None
    return claims, described["settings"], described["machine_limit"]


def assign(claims, lines):
    for line in lines:
        owners = [claim for claim in claims if claim.owns(line)]
        if len(owners) != 1:
            said = " and ".join(claim.name for claim in owners) or "no claim"
            raise WrongData(f"{line.source}: `{line.bench}: {line.key}` belongs to {said} of claims.toml")
        owners[0].lines.append(line)
    for claim in claims:
        if not claim.lines:
            raise WrongData(f"claims.toml: {claim.name} has no line")
