# SPDX-License-Identifier: Apache-2.0
"""PyArrow reads a file of Criteo rows and drops them: no id is hashed, no number transformed.

usage: click_log_reading.py pyarrow_csv|pyarrow_parquet FILE THREADS
"""
import sys
import time

import pyarrow
import pyarrow.csv
import pyarrow.parquet

from protocol import serve

which, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
pyarrow.set_cpu_count(threads)
pyarrow.set_io_thread_count(threads)

NAMES = ["label"] + [f"I{i}" for i in range(1, 14)] + [f"C{i}" for i in range(1, 27)]
TYPES = {name: pyarrow.string() if name.startswith("C") else pyarrow.int64() for name in NAMES}


def pyarrow_csv():
    """The whole table at once: faster than in batches. Ids stay text: there is no hexadecimal type."""
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(column_names=NAMES, use_threads=True),
        parse_options=pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=pyarrow.csv.ConvertOptions(column_types=TYPES),
    ).num_rows


def pyarrow_parquet():
    """A row group at a time, its columns on all threads: the fastest of PyArrow's ways to stream."""
    file = pyarrow.parquet.ParquetFile(path)
    return sum(file.read_row_group(i, use_threads=True).num_rows for i in range(file.num_row_groups))


READ = {"pyarrow_csv": pyarrow_csv, "pyarrow_parquet": pyarrow_parquet}[which]


def run(passes):
    start = time.perf_counter()
    rows = {READ() for _ in range(passes)}
    return {"seconds": time.perf_counter() - start, "rows": rows.pop() if len(rows) == 1 else -1}


serve({"run": run})
