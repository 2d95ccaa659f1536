# SPDX-License-Identifier: Apache-2.0
"""Reads bench/results/*.jsonl and bench/results/gpu/*.jsonl: every line becomes one or more `Line`s.

A line of `recmill bench ... --json` is one `Line`. Scripts of bench/ print lines of other shapes (SHAPES); what they
hold is split into figures and limits. A line of any other shape is an error.
"""
import dataclasses
import json

KEYS = {"bench", "case", "metric", "value", "unit", "rival", "ratio", "spread", "limit", "of_limit", "machine",
        "commit"}
OPTIONAL_KEYS = {"device", "core_to_core_ns", "foreign_load"}


class WrongData(Exception):
    """Says in one line what is wrong with the data."""


@dataclasses.dataclass
class Line:
    bench: str
    case: str
    metric: str
    value: float
    unit: str = ""
    rival: str | None = None
    ratio: float | None = None
    spread: float | None = None
    limit: float | None = None
    of_limit: float | None = None
    machine: str | None = None
    commit: str | None = None
    device: str | None = None
    core_to_core_ns: float | None = None
    foreign_load: float | None = None  # share of the cores that others had, where the machine was not quiet
    holds: bool | None = None  # as the line says; only scripts' lines say it
    source: str = ""           # file and number, for errors
    stem: str = ""             # the file's name without its ending
    setting: str = ""          # what the file's name says: hosts, rate of links
    run: int = 0               # 1, 2, ... where the same was measured more than once at one commit

    @property
    def key(self):
        """What a claim's `match` is matched with."""
        return f"{self.case} {self.metric} {self.rival or ''}".strip()


def numbers_in(value, name=""):
    """(name, number) of every number in a nested value."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers_in(inner, f"{name}_{key}" if name else key)
    elif isinstance(value, list):
        for at, inner in enumerate(value, 1):
            yield from numbers_in(inner, f"{name}_{at}")
    else:
        yield name, value


def figures(fields, bench, case, leave_out=()):
    rest = {key: value for key, value in fields.items() if key not in leave_out}
    return [Line(bench, case, name, value, machine=fields.get("machine"), commit=fields.get("commit"))
            for name, value in numbers_in(rest)]


def held_to(bench, case, metric, value, limit, fields, unit=""):
    return Line(bench, case, metric, value, unit, limit=limit, of_limit=value / limit, holds=value <= limit,
                machine=fields.get("machine"), commit=fields.get("commit"))


def memory_limits(fields):
    case = fields["case"]
    line = held_to("memory_limits", case, "value", fields["value"], fields["limit"], fields, fields["unit"])
    if line.holds != fields["holds"]:
        raise WrongData(f"memory_limits, {case}: `holds` contradicts the value and its limit")
    return [line] + figures(fields, "memory_limits", case, ("value", "limit"))


def bfloat16_auc(fields):
    lines = []
    pairs = zip(fields["auc"]["float32"], fields["auc"]["bfloat16"], fields["differences"])
    for seed, (wide, narrow, difference) in enumerate(pairs, 1):
        case = f"bfloat16_seed_{seed}"
        both = {"auc_float32": wide, "auc_bfloat16": narrow, "commit": fields["commit"]}
        lines += figures(both, "bfloat16_auc", case)
        lines.append(held_to("bfloat16_auc", case, "difference_in_auc", abs(difference), fields["limit"], fields))
    if all(line.holds is not False for line in lines) != fields["holds"]:
        raise WrongData("bfloat16_auc: `holds` contradicts the differences and their limit")
    return lines + figures({name: fields[name] for name in ("mean_difference", "planted_auc", "commit")},
                           "bfloat16_auc", "bfloat16")


def compare_with_pytorch(fields):
    case = fields["config"].rpartition("/")[2].removesuffix(".toml")
    lines = [held_to("compare_with_pytorch", case, f"difference_in_{name}", value, fields["tolerance"], fields)
             for name, value in fields["difference"].items()]
    return lines + figures(fields, "compare_with_pytorch", case, ("difference", "tolerance"))


def quickstart(fields):
    return figures(fields, "quickstart", fields["name"])


def scikit_metrics(fields):
    return figures({f"largest_difference_of_{name}" if name in ("auc", "log_loss") else name: value
                    for name, value in fields.items()}, "scikit_metrics", "scikit_metrics")


# (a bench's name, keys that its lines must have, what makes `Line`s of one); what has no name is told by its keys.
SHAPES = [
    ("memory_limits", {"case", "value", "unit", "limit", "holds", "machine", "commit"}, memory_limits),
    ("bfloat16_auc", {"auc", "differences", "mean_difference", "limit", "holds", "planted_auc", "commit"},
     bfloat16_auc),
    (None, {"config", "recmill", "pytorch", "difference", "tolerance", "commit"}, compare_with_pytorch),
    (None, {"name", "ending", "log_loss", "auc", "planted_auc", "commit"}, quickstart),
    (None, {"cases", "auc", "auc_undefined", "log_loss", "log_loss_undefined"}, scikit_metrics),
]


def lines_of(fields, source):
    keys = set(fields)
    if KEYS <= keys and keys <= KEYS | OPTIONAL_KEYS:
        line = Line(**fields)
        line.unit = line.unit or ""
        if line.value is None or (line.rival is None) != (line.ratio is None):
            raise WrongData(f"{source}: no value, or a rival without a ratio, or a ratio without a rival")
        return [line]
    for name, needed, read in SHAPES:
        if needed <= keys and fields.get("bench") == name:
            return read(fields)
    raise WrongData(f"{source}: a line of unknown shape, with the keys {', '.join(sorted(keys))}")


def read_file(path, root, settings):
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        source = f"{path.relative_to(root)}:{number}"
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise WrongData(f"{source}: no JSON: {error}") from None
        if not isinstance(fields, dict):
            raise WrongData(f"{source}: no JSON object")
        for line in lines_of(fields, source):
            line.source, line.stem, line.setting = source, path.stem, settings.get(path.stem, "")
            lines.append(line)
    return lines


def number_runs(lines):
    """Lines of one commit may repeat each other; of two commits the older belongs in bench/history."""
    groups = {}
    for line in lines:
        key = (line.setting, line.bench, line.key, line.machine, line.device)
        groups.setdefault(key, []).append(line)
    for same in groups.values():
        if len({line.commit for line in same}) > 1:
            first, last = same[0], same[-1]
            raise WrongData(f"{last.source}: measured at {last.commit}, and in {first.source} at {first.commit}: "
                            "move the older line to bench/history")
        if len(same) > 1:
            for run, line in enumerate(same, 1):
                line.run = run


def read_all(root, settings):
    folder = root / "bench/results"
    lines = []
    for path in [*sorted(folder.glob("*.jsonl")), *sorted(folder.glob("gpu/*.jsonl"))]:
        lines += read_file(path, root, settings)
    number_runs(lines)
    return lines
