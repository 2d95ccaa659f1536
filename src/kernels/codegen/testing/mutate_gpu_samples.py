#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes every barrier and every atomic out of the sample kernels for GPUs, one at a time; the tests must see it.

usage: mutate_gpu_samples.py FOLDER RUNNER COMPILER FLAG...
FOLDER has sources of kernels, gpu_sample_NAME.cc. Each changed source is compiled with the flags into a library and
given to RUNNER with its NAME (run_gpu_sample, run_gpu_update_sample), or as RECMILL_KERNELS to one that is a test;
it must fail, and pass with the source as it is.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# What is taken out, and what stands in its place; {0}, {1}: the call's arguments.
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


def call(text, begin):
    """(arguments, end) of the call whose opening bracket stands at `begin`."""
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
    """Where structs, classes, functions and kernels of the device code stand, by name: from head to closing brace."""
    found = {}
    for head in re.finditer(
            r"^(?:(?:struct|class) (\w+)|RECMILL_DEVICE [^;{=]*?\b(\w+)\(|RECMILL_KERNEL\([^)]*\) (\w+)\()[^;]*?\{$",
            text, re.M):
        end = re.compile(r"^\}", re.M).search(text, head.end())
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


def mutants(text):
    """(words, text) of each: only of what the kernels use."""
    found = bodies(text)
    for name in sorted(used(text, found)):
        begin, end = found[name]
        for hit in AGREES.finditer(text, begin, end):
            if "//" in text[text.rindex("\n", 0, hit.start()):hit.start()]:
                continue
            line = text.count("\n", 0, hit.start()) + 1
            if hit[0] not in MUTATIONS:
                sys.exit(f"{name}, line {line}: nothing stands in the place of {hit[0]} yet")
            instead, what = MUTATIONS[hit[0]]
            arguments, after = call(text, hit.end())
            changed = text[:hit.start()] + instead.format(*arguments) + text[after:]
            yield f"{what} of {name}, line {line}: {text[hit.start():after]}", changed


def verdict(folder, runner, compile_with, name, text):
    """Exit status of the runner: 0: nothing was seen."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        source, library = pathlib.Path(work, "kernel.cc"), pathlib.Path(work, "kernel.so")
        source.write_text(text)
        subprocess.run([*compile_with, "-shared", "-fPIC", "-o", library, source], check=True)
        environment = {**os.environ, "RECMILL_KERNELS": library, "GTEST_FAIL_FAST": "1"}
        return subprocess.run([runner, name, library], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=environment, check=False).returncode


def main(folder, runner, *compile_with):
    jobs = []
    for source in sorted(pathlib.Path(folder).glob("gpu_sample_*.cc")):
        name = source.stem.removeprefix("gpu_sample_")
        if name == "list":
            continue
        text = source.read_text()
        jobs.append((name, "as it is", text))
        jobs.extend((name, words, changed) for words, changed in mutants(text))
    with ThreadPoolExecutor(2) as pool:
        seen = pool.map(lambda job: verdict(folder, runner, compile_with, job[0], job[2]) != 0, jobs)
    wrong = [f"{name}: {words}" for (name, words, _), is_seen in zip(jobs, seen)
             if is_seen != (words != "as it is")]
    for words in wrong:
        print(f"not as it should be: {words}", file=sys.stderr)
    print(f"{len(jobs)} kernels, {sum(words != 'as it is' for _, words, _ in jobs)} of them changed")
    return 1 if wrong or not any(words != "as it is" for _, words, _ in jobs) else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
