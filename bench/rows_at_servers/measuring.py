# SPDX-License-Identifier: Apache-2.0
"""Medians, ratios and the lines that are printed, as `recmill bench` has them (src/bench/alternation.h)."""
import json
import os
import time

QUIET_LOAD = 0.08     # of the cores; the start of a run waits until others take less
LONGEST_WAIT = 30.0   # seconds
SAMPLE_SECONDS = 0.3


class Failure(Exception):
    """Says in one line what went wrong."""


def quantile(values, at):
    values = sorted(values)
    place = at * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def median(values):
    return quantile(values, 0.5)


def ratio_of(ours, rivals):
    """(ratio of medians, half the distance of the quartiles of ratios as a share of it); both lists are times."""
    ratios = [rival / our for our, rival in zip(ours, rivals)]
    ratio = median(rivals) / median(ours)
    return ratio, (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2 / ratio


def load_of_others():
    """Share of the cores that is busy now; nothing of ours runs."""
    def jiffies():
        with open("/proc/stat", encoding="utf-8") as stat:
            fields = list(map(int, stat.readline().split()[1:9]))
        return sum(fields), sum(fields) - fields[3] - fields[4]

    total, busy = jiffies()
    time.sleep(SAMPLE_SECONDS)
    total, busy = (now - before for now, before in zip(jiffies(), (total, busy)))
    return busy / max(1, total)


def wait_for_quiet():
    """The load of others when it is low, or has not become low for long."""
    begin = time.monotonic()
    while (load := load_of_others()) > QUIET_LOAD and time.monotonic() - begin < LONGEST_WAIT:
        time.sleep(1)
    return load


def machine():
    """The processor, named as `recmill bench` names it."""
    facts = {}
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if not line.strip():
                break
            key, _, value = line.partition(":")
            facts[key.strip()] = value.strip()
    name = facts.get("model name", "unknown processor")
    for key, word in (("cpu family", "family"), ("model", "model")):
        name += f" {word} {facts[key]}" if key in facts else ""
    return f"{name}, {os.cpu_count()} cores"


class Printer:
    """Prints lines of one run of the benchmark."""

    def __init__(self, commit, as_json):
        self.commit, self.as_json = commit, as_json
        self.misses = []

    def line(self, case, metric, value, unit, rival=None, ratio=None, limit=None, at_most=False, load=0.0):
        """`ratio` is (ratio, spread). A value beyond its limit is a miss, which the end of the program tells."""
        ratio, spread = ratio or (None, None)
        fields = {"bench": "rows_at_servers", "case": case, "metric": metric, "value": value, "unit": unit,
                  "rival": rival, "ratio": ratio, "spread": spread, "limit": limit,
                  "of_limit": None if limit is None else value / limit, "machine": machine(), "commit": self.commit}
        if load > QUIET_LOAD:
            fields["foreign_load"] = load
        if limit is not None and (value > limit if at_most else value < limit):
            self.misses.append(f"{case}: {metric} is {value:.4g} {unit}, asked for are {limit:.4g}")
        if self.as_json:
            print(json.dumps(fields), flush=True)
            return
        beside = f", {ratio:.3f} ± {spread:.3f} beside {rival}" if rival else ""
        print(f"{case:24} {metric:36} {value:12,.4g} {unit}{beside}"
              + (f", limit {limit:,.4g}" if limit is not None else ""), flush=True)
