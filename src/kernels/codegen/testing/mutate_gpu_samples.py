#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes every barrier and every atomic out of the sample kernels for GPUs, one at a time; the tests must see it.

usage: mutate_gpu_samples.py FOLDER RUNNER COMPILER FLAG...
FOLDER has sources of kernels, gpu_sample_NAME.cc. Each changed source is compiled with the flags into a library and
given to RUNNER with its NAME (run_gpu_sample, run_gpu_update_sample), or as RECMILL_KERNELS to one that is a test;
it must fail, and pass with the source as it is.

None may be missed: whatever is left out as unused is cut out of the source, which must compile and pass without, and
every barrier and atomic that a plain search finds in the rest must have been taken out once.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# What is taken out, and what is in its place; {0}, {1}: the call's arguments.
MUTATIONS = {
    "__syncthreads": ("", "the barrier"),
    "__syncthreads_or": ("({0})", "the barrier"),
    "__syncwarp": ("", "the barrier of a warp"),
    "recmill::arrive": ("(*({0}))++", "the atomic"),
    "atomicAdd": ("((*({0}) += {1}) - {1})", "the atomic"),
    "atomicInc": ("(*({0}))++", "the atomic"),
}
# Whatever threads agree by.
AGREES = re.compile(r"(?:recmill::)?\b(?:__sync(?:threads|warp)\w*|__threadfence\w*|atomic[A-Z]\w*|arrive)(?=\()")
# The same by a plain search for words, that knows nothing of how they are written or where they are.
AGREES_PLAINLY = re.compile(r"\w*(?:syncthreads|syncwarp|threadfence|atomic)\w*|\barrive\b")

Job = collections.namedtuple("Job", "sample words text is_changed")


def call(text, begin):
    """(arguments, end) of the call whose opening bracket is at `begin`."""
    arguments, depth, at = [""], 0, begin
    while True:
        letter = text[at]
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0:
            return [argument.strip() for argument in arguments], at + 1
        if letter == "," and depth == 1:
            arguments.append("")
        elif at > begin:
            arguments[-1] += letter
        at += 1


def bodies(text):
    """Where structs, classes, functions and kernels of the device code are, by name: from head to closing brace."""
    found = {}
    for head in re.finditer(
            r"^(?:template <[^;{]*?>\n)?"
            r"(?:(?:struct|class) (\w+)|RECMILL_DEVICE [^;{=]*?\b(\w+)\(|RECMILL_KERNEL\([^)]*\) (\w+)\()[^;]*?\{$",
            text, re.M):
        end = re.compile(r"^\};?", re.M).search(text, head.end())
        found[head[1] or head[2] or head[3]] = (head.start(), end.end())
    return found


def used(text, found):
    """Names of what the kernels use: templates that have got a name, and what the entries name, with what these do."""
    entries = text[text.index("\nRECMILL_KERNEL(") :]
    names, more = set(), set(re.findall(r"^\s*using \w+ = (\w+)<", text, re.M)) | set(re.findall(r"\w+", entries))
    while more := (more & found.keys()) - names:
        names |= more
        more = {word for name in more for word in re.findall(r"\w+", text[slice(*found[name])])}
    return names


def agreements(text):
    """Barriers and atomics of each line that has any, by its number."""
    code = [line.partition("//")[0] for line in text.split("\n")]
    return {number: len(hits) for number, line in enumerate(code, 1) if (hits := AGREES_PLAINLY.findall(line))}


def blank(text, begin, end):
    """The text with blanks in place of [begin, end): all else stays where it is."""
    return text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]


def used_text(text):
    """(text, kept, cut): what the emulator compiles of it, without definitions with barriers or atomics that no kernel
    uses, and the names of those definitions that are kept and that are cut out."""
    for half in re.finditer(r"^#if defined\(__CUDACC__\)$(.*?)^#else$", text, re.M | re.S):
        text = blank(text, *half.span(1))
    found = bodies(text)
    agreeing = {name for name, place in found.items() if agreements(text[slice(*place)])}
    kept = agreeing & used(text, found)
    for name in agreeing - kept:
        text = blank(text, *found[name])
    return text, kept, agreeing - kept


def mutants(text):
    """(line, words, text) of each: only of what the kernels use."""
    found = bodies(text)
    for name in sorted(used(text, found)):
        begin, end = found[name]
        for hit in AGREES.finditer(text, begin, end):
            if "//" in text[text.rindex("\n", 0, hit.start()):hit.start()]:
                continue
            line = text.count("\n", 0, hit.start()) + 1
            if hit[0] not in MUTATIONS:
                sys.exit(f"{name}, line {line}: nothing takes the place of {hit[0]} yet")
            instead, what = MUTATIONS[hit[0]]
            arguments, after = call(text, hit.end())
            changed = text[:hit.start()] + instead.format(*arguments) + text[after:]
            yield line, f"{what} of {name}, line {line}: {text[hit.start():after]}", changed


def verdict(folder, runner, compile_with, job):
    """Exit status of the runner: 0: nothing was seen."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        source, library = pathlib.Path(work, "kernel.cc"), pathlib.Path(work, "kernel.so")
        source.write_text(job.text)
        if subprocess.run([*compile_with, "-shared", "-fPIC", "-o", library, source], check=False).returncode != 0:
            sys.exit(f"{job.sample}: {job.words}: does not compile")
        environment = {**os.environ, "RECMILL_KERNELS": library, "GTEST_FAIL_FAST": "1"}
        return subprocess.run([runner, job.sample, library], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=environment, check=False).returncode


def not_taken_out(text, lines):
    """A message for each line of a text whose barriers and atomics are not what was taken out of `lines`."""
    taken, there = collections.Counter(lines), collections.Counter(agreements(text))
    for line in sorted(there.keys() | taken.keys()):
        if there[line] != taken[line]:
            yield (f"line {line}: {there[line]} barriers or atomics, of which {taken[line]} would be taken out: "
                   f"{text.splitlines()[line - 1].strip()}")


def jobs_of(samples):
    """(jobs, missed): each sample as it is and changed, and a message for each barrier or atomic that would stay."""
    jobs, missed, all_kept, all_cut = [], [], set(), set()
    for sample, whole in samples.items():
        text, kept, cut = used_text(whole)
        all_kept |= kept
        all_cut |= cut
        jobs.append(Job(sample, "as it is" + "".join(f", without {name}" for name in sorted(cut)), text, False))
        found = list(mutants(text))
        jobs.extend(Job(sample, words, changed, True) for _, words, changed in found)
        missed.extend(f"{sample}, {words}" for words in not_taken_out(text, (line for line, _, _ in found)))
    missed.extend(f"{name}: has barriers or atomics, and no sample is found to use it"
                  for name in sorted(all_cut - all_kept))
    return jobs, missed


def main(folder, runner, *compile_with):
    sources = sorted(pathlib.Path(folder).glob("gpu_sample_*.cc"))
    samples = {source.stem.removeprefix("gpu_sample_"): source.read_text() for source in sources}
    samples.pop("list", None)
    jobs, missed = jobs_of(samples)
    if missed:
        sys.exit("\n".join(missed))
    with ThreadPoolExecutor(2) as pool:
        seen = list(pool.map(lambda job: verdict(folder, runner, compile_with, job) != 0, jobs))
    wrong = [job for job, is_seen in zip(jobs, seen) if is_seen != job.is_changed]
    for job in wrong:
        print(f"not as it should be: {job.sample}: {job.words}", file=sys.stderr)
    changed = sum(job.is_changed for job in jobs)
    print(f"{len(samples)} samples, all of whose {changed} barriers and atomics were taken out, one at a time")
    return 1 if wrong or changed == 0 else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
