#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes every barrier and every atomic out of the sample kernels for GPUs, one at a time; the tests must see it.

usage: mutate_gpu_samples.py FOLDER RUNNER COMPILER FLAG...
FOLDER has sources of kernels, gpu_sample_NAME.cc. Each changed source is compiled with the flags into a library and
given to RUNNER with its NAME (run_gpu_sample, run_gpu_update_sample), which must fail; the source as it is must pass.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# What is taken out, and what stands in its place.
MUTATIONS = (
    (r"__syncthreads\(\);", "", "the barrier"),
    (r"__syncthreads_or\(([^()]*)\)", r"(\1)", "the barrier"),
    (r"__syncwarp\(\);", "", "the barrier of a warp"),
    (r"recmill::arrive\(&([^()]*)\)", r"\1++", "the atomic"),
    (r"atomicAdd\(&([^,]*), ([^()]*)\)", r"((\1 += \2) - \2)", "the atomic"),
    (r"atomicInc\((\w+), \w+\)", r"(*\1)++", "the atomic"),
)


def bodies(text):
    """Where structs, classes and functions of the device code stand, by name: from the head to the brace at the end."""
    found = {}
    for head in re.finditer(r"^(?:(?:struct|class) (\w+)|RECMILL_DEVICE [^;{=]*?\b(\w+)\()[^;]*?\{$", text, re.M):
        end = re.compile(r"^\}", re.M).search(text, head.end())
        found[head[1] or head[2]] = (head.start(), end.end())
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
        for pattern, instead, what in MUTATIONS:
            for hit in re.finditer(pattern, text[begin:end]):
                at = begin + hit.start()
                line = text.count("\n", 0, at) + 1
                changed = text[:at] + hit.expand(instead) + text[begin + hit.end():]
                yield f"{what} of {name}, line {line}: {hit.group(0)}", changed


def verdict(folder, runner, compile_with, name, text):
    """Exit status of the runner: 0: nothing was seen."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        source, library = pathlib.Path(work, "kernel.cc"), pathlib.Path(work, "kernel.so")
        source.write_text(text)
        subprocess.run([*compile_with, "-shared", "-fPIC", "-o", library, source], check=True)
        return subprocess.run([runner, name, library], stderr=subprocess.DEVNULL, check=False).returncode


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
