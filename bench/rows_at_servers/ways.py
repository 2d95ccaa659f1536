# SPDX-License-Identifier: Apache-2.0
"""Ways to train the same model, and cases that time them in turns."""
import dataclasses

import measuring
from lab import TRAINERS
from measuring import Failure
from shapes import Shape

LOOKAHEAD = 16  # batches
WARM = 3        # iterations before those that are timed
TIMED = 10
FEW_ROWS = 8    # of each table, where no row is to travel
AHEAD = 4       # batches that are read ahead without a cache: train.queue

NO_LOOKAHEAD = ["embedding.store=cached", "lookahead.batches=0", "lookahead.prefetch=0"]
PLACED = ["embedding.store=placed"]
TORCHREC_LIKE = [*PLACED, "placement.planner=torchrec_like", "placement.dedup_fetch=false"]
LOCAL = ["embedding.store=local"]


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    values: list
    at_servers: bool = False
    shape: Shape | None = None  # where it is another than the case's
    trainers: int = TRAINERS
    few_rows: bool = False      # tables of FEW_ROWS: another model, whose losses are its own
    timed: int = 0              # iterations, where they are others than the case's
    ahead: int = AHEAD          # batches that are read before they are trained


def cached(lookahead=LOOKAHEAD):
    return ["embedding.store=cached", f"lookahead.batches={lookahead}"]


OURS = Way("cached", cached(), at_servers=True, ahead=LOOKAHEAD)
WITHOUT = Way("no_lookahead", NO_LOOKAHEAD, at_servers=True)
ROW_WISE = Way("placed", PLACED)
TORCHREC = Way("torchrec_like_nodedup", TORCHREC_LIKE)
IDEAL = Way("ideal", LOCAL, few_rows=True)


def one_run(lab, way, shape, timed=TIMED):
    """Trains until WARM + timed iterations have ended, and as many more as batches that are read ahead meanwhile: so
    that those which are timed read one batch an iteration, as they would in a long run."""
    shape, timed = way.shape or shape, way.timed or timed
    text = shape.text(FEW_ROWS) if way.few_rows else shape.text()
    values = [*way.values, f"train.iterations={WARM + timed + way.ahead}"]
    if not way.at_servers:
        return lab.train(text, values, way.trainers)
    with lab.servers() as servers:
        return lab.train(text, [*values, *servers], way.trainers)


def check_losses(case, way, run, first_way, first_run):
    """Both trained the same model: every iteration that both have has the same loss, bit for bit."""
    for iteration, (loss, expected) in enumerate(zip(run.losses, first_run.losses)):
        if loss != expected:
            raise Failure(f"{case}: the loss of iteration {iteration} is {loss} with {way.name}, "
                          f"{expected} with {first_way.name}")


class Turns:
    """Runs of several ways, pair by pair, the order turned about in every other one."""

    def __init__(self, lab, case, ways, shape, pairs, timed=TIMED):
        self.ways, self.case = ways, case
        self.seconds = {way.name: [] for way in ways}  # an iteration, by pair
        self.bytes = {way.name: [] for way in ways}    # an iteration, to and from the servers
        self.load = 0.0
        first = None
        for pair in range(pairs):
            for way in ways if pair % 2 == 0 else reversed(ways):
                self.load = max(self.load, measuring.wait_for_quiet())
                run = one_run(lab, way, shape, timed)
                if way.shape is None and not way.few_rows and way.trainers == TRAINERS:
                    first = first or (way, run)
                    check_losses(case, way, run, *first)
                self.seconds[way.name].append(run.iteration_time(WARM, way.timed or timed))
                self.bytes[way.name].append(run.server_bytes / len(run.seconds))

    def ratio(self, ours, rival):
        return measuring.ratio_of(self.seconds[ours.name], self.seconds[rival.name])

    def median(self, way):
        return measuring.median(self.seconds[way.name])


def figures_of(printer, turns):
    """Ours beside every rival, and what each way took."""
    ours, *rivals = turns.ways
    value = 1e3 * turns.median(ours)
    for rival in rivals:
        printer.line(turns.case, "time_per_iteration", value, "ms", rival.name, turns.ratio(ours, rival),
                     load=turns.load)
    for way in turns.ways:
        printer.line(turns.case, f"time_per_iteration_{way.name}", 1e3 * turns.median(way), "ms", load=turns.load)
        if way.at_servers:
            printer.line(turns.case, f"megabytes_per_iteration_{way.name}",
                         measuring.median(turns.bytes[way.name]) / 1e6, "MB", load=turns.load)


def beside(model, data, rate, *rivals):
    """A case: our way beside others, at one rate of links."""
    def case(lab, printer, pairs, name):
        lab.at(rate)
        figures_of(printer, Turns(lab, name, [OURS, *rivals], Shape(model, data), pairs))
    return case


def throughput_of(ways):
    """A case for each way: samples a second, in turns."""
    def case(lab, printer, pairs, name):
        lab.at("200mbit")
        turns = Turns(lab, name, ways, Shape(), pairs)
        for way in ways:
            printer.line(way.name, "samples_per_second", way.shape.batch / turns.median(way), "samples/s",
                         load=turns.load)
    return case


def scaled(trainers=TRAINERS, batch=Shape.batch, timed=TIMED):
    """Figure 16: more trainers with as many samples each, or larger batches for all."""
    name = f"batch_{batch}" if trainers == TRAINERS else f"trainers_{trainers}"
    return dataclasses.replace(OURS, name=name, shape=Shape(batch=batch), trainers=trainers, timed=timed)


EACH = Shape.batch // TRAINERS
TRAINERS_CASE = throughput_of([scaled(1, EACH), scaled(2, 2 * EACH), dataclasses.replace(scaled(), name="trainers_4")])
BATCHES_CASE = throughput_of([scaled(batch=4096), scaled(batch=8192), scaled(batch=16384, timed=6)])
