# SPDX-License-Identifier: Apache-2.0
"""BagPipe's figures 9 to 16 (SOSP 2023) with ours beside them. What the data lack is left out."""
from .oper import cell, ratio, table

MODELS = {"dlrm": "DLRM", "wide_and_deep": "Wide&Deep", "deep_cross": "Deep&Cross", "deep_fm": "DeepFM"}
SLOW, FAST = "200mbit", "1gbit"
RATES = {SLOW: "200 Mbit/s", FAST: "1 Gbit/s"}
RIVALS = ("no_lookahead", "placed", "torchrec_like_nodedup")

# What the paper prints: BagPipe's times over others', in ms where it says them.
FIGURE_9 = {"dlrm": "TorchRec 2.1; FAE 3.4; FB-Research 5.6; HET 2.3",
            "wide_and_deep": "TorchRec 1.3; FAE 3.7; FB-Research 4.2; HET 1.6"}
FIGURE_10 = {"dlrm": "2.1", "wide_and_deep": "1.2", "deep_cross": "", "deep_fm": "3.7"}
FIGURE_11 = {("dlrm", SLOW): "56 ms at 10 Gbit/s", ("dlrm", FAST): "30 ms at 25 Gbit/s",
             ("deep_fm", SLOW): "253 ms, 3.7, at 10 Gbit/s", ("deep_fm", FAST): "128 ms, 2.5, at 25 Gbit/s"}
FIGURE_12 = "1.9 to 2.4"
FIGURE_15 = {("dlrm", SLOW): "30, 56", ("dlrm", FAST): "19, 30", ("deep_fm", SLOW): "236, 253",
             ("deep_fm", FAST): "116, 128"}  # ideal, BagPipe, in ms


class Lines:
    def __init__(self, lines):
        self.by_key = {(line.case, line.metric, line.rival): line for line in lines
                       if line.bench == "rows_at_servers"}

    def value(self, case, metric):
        line = self.by_key.get((case, metric, None))
        return None if line is None else line.value

    def beside(self, case, rival):
        """[ours, the rival's time, ratio]; None where that was not measured."""
        line = self.by_key.get((case, "time_per_iteration", rival))
        if line is None:
            return None
        return [f"{line.value:,.1f}", cell(self.value(case, f"time_per_iteration_{rival}"), "{:,.1f}"), ratio(line)]

    def megabytes(self, case, way):
        return cell(self.value(case, f"megabytes_per_iteration_{way}"), "{:,.1f}")


def figure_9(lines):
    rows = []
    for model, paper in FIGURE_9.items():
        for rival in RIVALS:
            found = lines.beside(f"{model}_{SLOW}", rival)
            if found:
                rows.append([MODELS[model], f"`{rival}`", *found, paper if rival == RIVALS[0] else ""])
    return table("Figure 9: beside other ways (measured)",
                 "`torchrec_like_nodedup` stands for TorchRec: its kind of plan and of messages, carried out by our "
                 "store. Left out: FAE trains hot and cold batches apart, in another order, which is not built; "
                 "FB-Research's system is PyTorch and Caffe2 on GPUs, and most of its time is reading; HET is "
                 "asynchronous, so that its answers are others.",
                 ["model", "beside", "ours, ms", "theirs, ms", "ratio", "paper's ratios"], rows)


def figure_10(lines):
    rows = []
    for model, paper in FIGURE_10.items():
        case = f"{model}_{SLOW}"
        found = lines.beside(case, "no_lookahead")
        if found:
            rows.append([MODELS[model], *found, lines.megabytes(case, "cached"), lines.megabytes(case, "no_lookahead"),
                         paper])
    return table("Figure 10: four models (measured; bytes counted)",
                 "Ratios are to no lookahead, the paper's to TorchRec. MB are what the servers' links carry in an "
                 "iteration, both ways. The paper's DeepFM has its 33.8 million linear weights as dense parameters, "
                 "summed over trainers in each iteration; ours has them as rows.",
                 ["model", "ours, ms", "no lookahead, ms", "ratio", "ours, MB", "no lookahead, MB", "paper's ratio"],
                 rows)


def figure_11(lines):
    rows = []
    for (model, rate), paper in FIGURE_11.items():
        found = lines.beside(f"{model}_{rate}", "no_lookahead")
        if found:
            rows.append([f"{MODELS[model]}, {RATES[rate]}", *found, paper])
    return table("Figure 11: other hardware (measured)",
                 "Only the rate of links is another here; the paper changes GPUs (V100, A10G) and links, and has "
                 "ratios to TorchRec.",
                 ["model, links", "ours, ms", "no lookahead, ms", "ratio", "paper: BagPipe"], rows)


def figure_12(lines):
    rows = []
    for data, case in (("Kaggle", f"dlrm_{SLOW}"), ("Avazu", f"dlrm_avazu_{SLOW}"),
                       ("Terabyte", f"dlrm_terabyte_{SLOW}")):
        found = lines.beside(case, "no_lookahead")
        if found:
            rows.append([data, *found, lines.megabytes(case, "cached"), lines.megabytes(case, "no_lookahead"),
                         FIGURE_12])
    return table("Figure 12: tables of other data sets (measured; bytes counted)",
                 "Tables have the data sets' rows, 250,000 at most, all of dimension 48; lookups follow Zipf's law at "
                 "1.2. Ratios are to no lookahead, the paper's to TorchRec.",
                 ["tables", "ours, ms", "no lookahead, ms", "ratio", "ours, MB", "no lookahead, MB", "paper's ratio"],
                 rows)


def figure_13(lines):
    rows = []
    for (case, metric, _), line in lines.by_key.items():
        name = metric.removeprefix("loss_of_iteration_")
        if case == "losses" and name.isdigit():
            rows.append([f"loss of iteration {name}", f"{line.value:.10f}",
                         cell(lines.value("losses", f"{metric}_one_process"), "{:.10f}")])
    equal = lines.by_key.get(("losses", "iterations_of_equal_loss", None))
    if equal:
        rows.append(["iterations whose loss is another", f"{equal.limit - equal.value:.0f} of {equal.limit:.0f}", ""])
    return table("Figure 13: convergence (counted)",
                 "Four trainers with rows at two servers are beside one process with all rows in its memory. Losses of "
                 "all iterations, and rows and layers at the end, are compared bit for bit. The paper's losses are "
                 "close to TorchRec's, as both begin at random.", ["", "cached, at servers", "one process"], rows)


def figure_14(lines):
    seconds = lines.value("recovery", "seconds_to_next_iteration")
    equal = lines.by_key.get(("recovery", "iterations_of_equal_loss", None))
    rows = []
    if seconds is not None and equal:
        rows.append(["seconds until an iteration has ended after it, the longest", cell(seconds),
                     "under 60; FB-Research 13 min"])
        rows.append(["iterations whose loss is another", f"{equal.limit - equal.value:.0f} of {equal.limit:.0f}", ""])
    return table("Figure 14: the loss of a trainer (measured)",
                 "One of four trainers under `recmill launch --servers 2` is killed (SIGKILL). All trainers start "
                 "again and go on from the last commit. FB-Research's system is left out.",
                 ["", "ours", "paper: BagPipe"], rows)


def figure_15(lines):
    rows = []
    for (model, rate), paper in FIGURE_15.items():
        found = lines.beside(f"{model}_{rate}", "ideal")
        if found:
            ours, ideal = (lines.value(f"{model}_{rate}", f"time_per_iteration_{way}") for way in ("cached", "ideal"))
            rows.append([f"{MODELS[model]}, {RATES[rate]}", found[1], found[0], f"{ours - ideal:,.1f}",
                         f"{ours / ideal:.2f}", paper])
    return table("Figure 15: beside an ideal (measured)",
                 "The paper's ideal has all rows at every trainer and synchronises none. Ours is the same model, "
                 "samples and trainers on tables of 8 rows, at the trainers: lookups and updates are made, dense "
                 "gradients travel, next to no rows do. It is another model, a bound and no rival, so it is not in the "
                 "verdict. Here whatever a cache does takes time of the same two cores.",
                 ["model, links", "ideal, ms", "ours, ms", "more, ms", "ours by ideal", "paper: ideal, BagPipe, ms"],
                 rows)


def figure_16(lines):
    rows = [[f"{name.rpartition('_')[2]} {name.partition('_')[0]}", cell(line.value, "{:,.0f}"), ""]
            for (name, metric, _), line in lines.by_key.items()
            if metric == "samples_per_second" and name.startswith("trainers_")]
    for row in rows:
        row[0] = row[0].replace("1 trainers", "1 trainer") + ", 2,048 samples each"
    rows += [[f"4 trainers, {int(name.rpartition('_')[2]):,} samples in all", cell(line.value, "{:,.0f}"), ""]
             for (name, metric, _), line in lines.by_key.items()
             if metric == "samples_per_second" and name.startswith("batch_")]
    if rows:
        rows[0][2] = "320,000 of 16 trainers, 446,000 of 32"
    return table("Figure 16: more trainers, and larger batches (measured)",
                 "DLRM at 200 Mbit/s. A trainer has one thread. From 2 trainers on all share two cores, so that more "
                 "trainers bring no more processors here, and a ratio of what 32 GPUs bring is left out.",
                 ["trainers, samples", "samples a second", "paper"], rows)


def tables(_, all_lines):
    lines = Lines(all_lines)
    parts = (figure_9, figure_10, figure_11, figure_12, figure_13, figure_14, figure_15, figure_16)
    return "".join(part(lines) for part in parts)
