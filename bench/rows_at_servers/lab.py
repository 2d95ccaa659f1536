# SPDX-License-Identifier: Apache-2.0
"""Emulated hosts (tools/netlab), embedding servers and training runs on them."""
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

from measuring import Failure

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NETLAB = ROOT / "tools/netlab"
TRAINERS, SERVERS = 4, 2  # a host each
PORT = 7001
LONGEST_RUN = 280  # seconds
LONGEST_START = 60


@dataclasses.dataclass
class Run:
    """What one training run left behind."""
    folder: pathlib.Path
    losses: list          # of each iteration, before its update
    seconds: list         # of each iteration, from its end to that of the one before
    summary: dict
    server_bytes: int = 0  # that links of servers' hosts carried, both ways

    def iteration_time(self, first, count):
        return sum(self.seconds[first:first + count]) / count


def sets(values):
    return [word for value in values for word in ("--set", value)]


def ended(child):
    if child.poll() is None:
        child.kill()
    child.wait()


class Lab:
    """Hosts that are made at the start and taken down at the end, also of a program that fails."""

    def __init__(self, recmill, folder):
        self.recmill, self.folder = str(recmill), pathlib.Path(folder)
        self.name = f"rows{os.getpid() % 100000}"
        self.hosts = {}
        self.rate = None
        self.number = 0  # of runs so far

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.hosts:
            subprocess.run([NETLAB, "down", "--name", self.name], check=False)

    def netlab(self, verb, *words):
        done = subprocess.run([NETLAB, verb, "--name", self.name, *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"netlab {verb}: {done.stderr.strip()}")
        return done.stdout

    def at(self, rate):
        """Makes the hosts when they are first needed. `rate` is that of every link and direction."""
        if not self.hosts:
            self.hosts = {"none": ""}  # `up` may be interrupted
            self.netlab("up", str(TRAINERS + SERVERS), "--rate", rate)
            self.hosts = dict(line.split() for line in self.netlab("hosts").splitlines())
        elif rate != self.rate:
            self.netlab("rate", rate)
        self.rate = rate

    def on(self, host, *command):
        return [NETLAB, "exec", "--name", self.name, host, "--", *command]

    def carried_by_servers(self):
        counts = json.loads(self.netlab("bytes", "--json"))
        return sum(counts[f"h{host}"][way] for host in range(TRAINERS, TRAINERS + SERVERS)
                   for way in ("sent", "received"))

    def server(self, host, address):
        """An embedding server that listens; what it says is in a file."""
        log = self.folder / f"server{host}.log"
        with log.open("w", encoding="utf-8") as out:
            command = self.on(f"h{host}", self.recmill, "server", "embedding", "--listen", address, "--insecure")
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=out)
        begin = time.monotonic()
        while "embedding server at" not in log.read_text():
            if child.poll() is not None or time.monotonic() - begin > LONGEST_START:
                ended(child)
                raise Failure(f"the embedding server at {address} did not start: {log.read_text().strip()}")
            time.sleep(0.02)
        return child

    @contextlib.contextmanager
    def servers(self):
        """Fresh embedding servers; what a configuration says of them."""
        addresses = [f"{self.hosts[f'h{host}']}:{PORT}" for host in range(TRAINERS, TRAINERS + SERVERS)]
        children = []
        try:
            for host, address in enumerate(addresses, TRAINERS):
                children.append(self.server(host, address))
            listed = ", ".join(f'"{address}"' for address in addresses)
            yield [f"lookahead.servers=[{listed}]", "lookahead.home=remote", "lookahead.insecure=true"]
        finally:
            early = [(address, child.poll()) for address, child in zip(addresses, children) if child.poll() is not None]
            for child in children:
                child.send_signal(signal.SIGINT)
            for child in children:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(timeout=10)
                ended(child)
            for address, status in early:
                raise Failure(f"the embedding server at {address} ended with status {status}")

    def config(self, name, text):
        path = self.folder / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def train(self, text, values, trainers=TRAINERS, hosts=True, threads=1, keep=False):
        """Trains `text` with `values` set: on a host a trainer, or in one process of this machine."""
        self.number += 1
        name = f"run{self.number}"
        command = [self.recmill, "train", self.config(name, text), "--quiet", "--overwrite",
                   *sets([f"name={name}", f"train.runs={self.folder}/runs", f"train.threads={threads}", *values])]
        if hosts:
            command = [NETLAB, "mpirun", "--name", self.name, "-n", str(trainers), "--", *command]
        before = self.carried_by_servers() if hosts else 0
        self.run(command, name)
        run = self.read(name)
        run.server_bytes = self.carried_by_servers() - before if hosts else 0
        if not keep:
            shutil.rmtree(run.folder)
        return run

    def run(self, command, name):
        log = self.folder / f"{name}.log"
        with log.open("w", encoding="utf-8") as out:
            child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT)
            try:
                status = child.wait(timeout=LONGEST_RUN)
            except subprocess.TimeoutExpired:
                status = f"none after {LONGEST_RUN} s"
            finally:
                ended(child)
        if status != 0:
            said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            told = [line for line in said if line.startswith("recmill:")] or said[-1:] or ["it said nothing"]
            raise Failure(f"{name}: exit status {status}: {told[0]}")

    def read(self, name):
        folder = self.folder / "runs" / name
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        lines = [line for line in lines if line["kind"] == "train"]
        samples = [0, *[line["samples"] for line in lines]]
        seconds = [(after - before) / line["samples_per_second"]
                   for before, after, line in zip(samples, samples[1:], lines)]
        summary = json.loads((folder / "summary.json").read_text())
        return Run(folder, [line["log_loss"] for line in lines], seconds, summary)

    def same_checkpoints(self, one, other):
        self.run([self.recmill, "verify", "--checkpoints", one.folder, other.folder], "checkpoints")

    @contextlib.contextmanager
    def launched(self, text, values, trainers=TRAINERS, servers=SERVERS):
        """A job of `recmill launch` on this machine: its name, and what it says, line by line, with times."""
        self.number += 1
        name = f"run{self.number}"
        said = []
        command = [self.recmill, "launch", "--ranks", str(trainers), "--servers", str(servers), "--", "train",
                   self.config(name, text), "--quiet", "--overwrite",
                   *sets([f"name={name}", f"train.runs={self.folder}/runs", "train.threads=1", *values])]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        reader = threading.Thread(target=lambda: said.extend((time.monotonic(), line) for line in child.stderr),
                                  daemon=True)
        reader.start()
        try:
            yield name, said, child
            if child.wait(timeout=LONGEST_RUN) != 0:
                last = said[-1][1].strip() if said else "it said nothing"
                raise Failure(f"{name}: the job ended with status {child.returncode}: {last}")
        finally:
            if child.poll() is None:  # twice: the first asks the ranks to save
                for _ in range(2):
                    child.send_signal(signal.SIGINT)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        child.wait(timeout=5)
            ended(child)
