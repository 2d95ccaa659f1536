# SPDX-License-Identifier: Apache-2.0
"""Cases that are held to limits: a whole DLRM beside rows in the trainers' memory, commits, disks, equal losses, and
the time that a loss costs."""
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import time

import measuring
from lab import LONGEST_RUN
from measuring import Failure
from shapes import Shape
from ways import LOCAL, OURS, ROW_WISE, Turns, cached

WHOLE = Shape(dim=64, zipf=1.05, batch=4096)
WHOLE_TIMED = 48
WHOLE_LOOKAHEAD = 64
COMMIT_EVERY = 20
SLOWEST_BESIDE_PLACED = 0.85
SLOWEST_WITH_COMMITS = 0.95
SLOWEST_ON_DISK = 0.85
RECOVERY_SECONDS = 60.0

ON_DISK = Shape(dim=64, zipf=1.09, batch=2048)
DISK_LOOKAHEAD = 200   # batches, the default, or as many as the cache holds
DISK_WARM = 64         # iterations before those that are timed, so that the database has grown
DISK_TIMED = 160
DISK_CACHE = 64 << 20  # bytes of rows of the next batches, both ways
TIMES_MEMORY = 8       # the database, beside the memory that it may take
SIZED_FOR = 8.5        # so that it is as large in every run

CHECKED = Shape(batch=4096)
CHECKED_ITERATIONS = 32
KEPT = [f"train.iterations={CHECKED_ITERATIONS}", "train.checkpoint.at_end=true"]
COMMITS_WHILE_CHECKED = 8
TOLD_EVERY = 8
KILLED_AFTER = 12  # iterations
KILLED_RANK = 2
MOST_KILLS = 3


def hold(printer, turns, metric, ours, rival, limit):
    """Our samples a second as a share of the rival's, and the spread of that."""
    ratio, spread = turns.ratio(ours, rival)
    printer.line(turns.case, metric, ratio, "", limit=limit, load=turns.load)
    printer.line(turns.case, f"spread_of_{metric}", spread, "", load=turns.load)


def whole_dlrm(lab, printer, pairs, name):
    lab.at("1gbit")
    values = cached(WHOLE_LOOKAHEAD)
    without = dataclasses.replace(OURS, values=[*values, "lookahead.commit_every=0"], ahead=WHOLE_LOOKAHEAD)
    commits = dataclasses.replace(without, name="commits", values=[*values, f"lookahead.commit_every={COMMIT_EVERY}"])
    turns = Turns(lab, name, [without, ROW_WISE, commits], WHOLE, pairs, WHOLE_TIMED)
    hold(printer, turns, "share_of_placed", without, ROW_WISE, SLOWEST_BESIDE_PLACED)
    hold(printer, turns, "share_with_commits", commits, without, SLOWEST_WITH_COMMITS)
    for way in turns.ways:
        printer.line(name, f"samples_per_second_{way.name}", WHOLE.batch / turns.median(way), "samples/s",
                     load=turns.load)


def bytes_in(folder):
    return sum(file.stat().st_size for file in pathlib.Path(folder).rglob("*") if file.is_file())


def disk(lab, printer, pairs, name):
    """One rank of both cores. The database's memory follows from how large it gets, in runs before."""
    rows = lab.folder / "rows"
    memory_way = [*cached(DISK_LOOKAHEAD), f"lookahead.cache={DISK_CACHE}",
                  f"train.iterations={DISK_WARM + DISK_TIMED + DISK_LOOKAHEAD}"]
    disk_way = [*memory_way, "lookahead.home=disk", f"lookahead.disk_path={rows}", "lookahead.commit_every=0"]

    def run(values):
        shutil.rmtree(rows, ignore_errors=True)
        return lab.train(ON_DISK.text(), values, hosts=False, threads=0)

    memory = 1 << 28
    for _ in range(2):  # with little memory it is smaller than with much
        run([*disk_way, f"lookahead.disk_memory={memory}"])
        memory = int(bytes_in(rows) / SIZED_FOR)
    seconds, load, sizes, first = {"memory": [], "disk": []}, 0.0, [], None
    for pair in range(pairs):
        for way in ("memory", "disk")[::1 if pair % 2 == 0 else -1]:
            load = max(load, measuring.wait_for_quiet())
            done = run(memory_way if way == "memory" else [*disk_way, f"lookahead.disk_memory={memory}"])
            first = first or done
            if done.losses != first.losses:
                raise Failure(f"{name}: losses with rows on a disk are not those with rows in memory")
            seconds[way].append(done.iteration_time(DISK_WARM, DISK_TIMED))
            if way == "disk":
                sizes.append(bytes_in(rows) / memory)
    ratio, spread = measuring.ratio_of(seconds["disk"], seconds["memory"])
    printer.line(name, "share_of_memory", ratio, "", limit=SLOWEST_ON_DISK, load=load)
    printer.line(name, "spread_of_share_of_memory", spread, "", load=load)
    printer.line(name, "database_by_its_memory", min(sizes), "times", limit=TIMES_MEMORY, load=load)
    for way, values in seconds.items():
        printer.line(name, f"samples_per_second_{way}", ON_DISK.batch / measuring.median(values), "samples/s",
                     load=load)
    shutil.rmtree(rows, ignore_errors=True)


def equal_losses(case, run, reference):
    """How many iterations have the loss of the reference, bit for bit; all that is trained is compared too."""
    if len(run.losses) != len(reference.losses):
        raise Failure(f"{case}: {len(run.losses)} losses, {len(reference.losses)} are expected")
    return sum(loss == expected for loss, expected in zip(run.losses, reference.losses))


def reference_run(lab):
    """One process of both cores, rows in its memory: plain synchronous training."""
    return lab.train(CHECKED.text(), [*LOCAL, *KEPT], hosts=False, threads=0, keep=True)


def losses(lab, printer, pairs, name):
    lab.at("1gbit")
    reference = reference_run(lab)
    with lab.servers() as servers:
        run = lab.train(CHECKED.text(), [*cached(), *KEPT, *servers], keep=True)
    equal = equal_losses(name, run, reference)
    lab.same_checkpoints(reference, run)
    printer.line(name, "iterations_of_equal_loss", equal, "iterations", limit=len(reference.losses))
    for iteration in range(0, CHECKED_ITERATIONS, TOLD_EVERY):
        printer.line(name, f"loss_of_iteration_{iteration}", run.losses[iteration], "")
        printer.line(name, f"loss_of_iteration_{iteration}_one_process", reference.losses[iteration], "")


def rank_process(config_name, rank):
    """The process of a rank of the run."""
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[1:2] == [b"train"] and f"name={config_name}".encode() in words \
                and f"OMPI_COMM_WORLD_RANK={rank}".encode() in variables:
            return int(folder.name)
    raise Failure(f"{config_name}: rank {rank} is not there")


def last_iteration(metrics):
    """Of those that have a line; 0 where there is none."""
    try:
        lines = metrics.read_text(encoding="utf-8").splitlines()
        return json.loads(lines[-1])["iteration"] if lines else 0
    except (OSError, ValueError):  # not there, or a line is being written
        return 0


def wait_until(what, seen, child):
    begin = time.monotonic()
    while not seen():
        if child.poll() is not None or time.monotonic() - begin > LONGEST_RUN:
            raise Failure(f"{what}: the job did not come to that")
        time.sleep(0.01)
    return time.monotonic()


def kill_one(lab, name, values):
    """Kills a rank of a job: (the run, seconds until it had trained an iteration after)."""
    with lab.launched(CHECKED.text(), values) as (run_name, said, child):
        metrics = lab.folder / "runs" / run_name / "metrics.jsonl"
        wait_until(f"{name}: {KILLED_AFTER} iterations", lambda: last_iteration(metrics) >= KILLED_AFTER, child)
        os.kill(rank_process(run_name, KILLED_RANK), signal.SIGKILL)
        killed = time.monotonic()
        wait_until(f"{name}: a new start", lambda: any("goes on from" in line for _, line in list(said)), child)
        # The new start takes out the lines that it will write again.
        lowest = last_iteration(metrics)

        def trained():
            nonlocal lowest
            last = last_iteration(metrics)
            lowest = min(lowest, last or lowest)
            return last > lowest

        went_on = wait_until(f"{name}: an iteration after the loss", trained, child)
    return lab.read(run_name), went_on - killed


def recovery(lab, printer, pairs, name):
    reference = reference_run(lab)
    seconds, equal = [], len(reference.losses)
    for _ in range(min(pairs, MOST_KILLS)):
        values = [*cached(), *KEPT, f"lookahead.commit_every={COMMITS_WHILE_CHECKED}"]
        run, took = kill_one(lab, name, values)
        seconds.append(took)
        equal = min(equal, equal_losses(name, run, reference))
        lab.same_checkpoints(reference, run)
        shutil.rmtree(run.folder)
    printer.line(name, "seconds_to_next_iteration", max(seconds), "s", limit=RECOVERY_SECONDS, at_most=True)
    printer.line(name, "iterations_of_equal_loss", equal, "iterations", limit=len(reference.losses))
