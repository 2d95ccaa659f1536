# SPDX-License-Identifier: Apache-2.0
"""Loads a compiled operator by torch.ops.load_library and calls it as a user would.

usage: call_op.py LIBRARY NAME [FOLDER [DEVICE]]
Rows of whole numbers, whose sums are exact in any order, are compared with PyTorch's own functions;
FOLDER has a call that the reference answered, every bit of which is compared. Where DEVICE is cuda, both
are done on a GPU as well. Ends with the number of features that were compared, and the kinds of devices
that the operator has kernels for.
"""
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def import_torch():
    """Imports PyTorch where the libraries of CUDA that it links are not installed.

    The wheel has a CUDA part that is loaded and, without a GPU, never called. Empty libraries stand in
    for what is missing, and functions are looked up when they are called.
    """
    site = next(pathlib.Path(p) for p in sys.path if (pathlib.Path(p) / "torch").is_dir())
    needed = subprocess.run(["ldd", site / "torch/lib/libtorch_python.so"], capture_output=True, text=True)
    missing = {line.split()[0] for line in needed.stdout.splitlines() if "not found" in line}
    if missing and "cuda" not in sys.argv[4:]:
        folder = tempfile.mkdtemp()
        for name in missing:
            subprocess.run(["c++", "-shared", "-x", "c++", "/dev/null", "-o", f"{folder}/{name}",
                            f"-Wl,-soname,{name}"], check=True)
        # The loader reads it when a program starts.
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"LD_LIBRARY_PATH": folder})
    sys.setdlopenflags(os.RTLD_LAZY)
    import warnings
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    import torch
    return torch


torch = import_torch()


def whole_numbers(model, generator):
    """Arguments of a call: bags of 0, 1, 2 or 4 lookups, so that dividing is exact too."""
    tables = [torch.randint(-8, 9, (37, t["dim"]), generator=generator).to(getattr(torch, t["dtype"]))
              for t in model["tables"]]
    offsets, rows, weights = [], [], []
    for feature in model["features"]:
        lengths = torch.tensor([0, 1, 2, 4])[torch.randint(0, 4, (29,), generator=generator)]
        offsets.append(torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]))
        lookups = int(offsets[-1][-1])
        rows.append(torch.randint(0, 37, (lookups,), generator=generator))
        weights.append(torch.randint(1, 4, (lookups,), generator=generator).float() if feature["weighted"] else None)
    return tables, offsets, rows, weights


def by_pytorch(feature, table, offsets, rows, weights):
    table = table.float()
    if feature["pooling"] == "none":
        found = torch.nn.functional.embedding(rows, table)
        return found if weights is None else found * weights[:, None]
    weights = torch.ones(len(rows)) if weights is None else weights
    total = torch.nn.functional.embedding_bag(rows, table, offsets, mode="sum", include_last_offset=True,
                                              per_sample_weights=weights)
    lengths = offsets[1:] - offsets[:-1]
    return total / lengths.clamp(min=1)[:, None] if feature["pooling"] == "mean" else total


def on_device(arguments, device):
    """Arguments of a call there: all but offsets, which stay on the host."""
    tables, offsets, rows, weights = arguments
    return ([t.to(device) for t in tables], offsets, [r.to(device) for r in rows],
            [w if w is None else w.to(device) for w in weights])


def error_of(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    raise AssertionError("no error")


def replaced(tensors, place, tensor):
    return [tensor if i == place else t for i, t in enumerate(tensors)]


def check_said(op, name, expected):
    for message, call in expected.items():
        said = error_of(lambda: op(*call))
        assert said == f"recmill::{name}: {message}", (said, message)


def check_errors(op, name, model, arguments):
    """Each wrong argument is one clear line, and nothing is read."""
    tables, offsets, rows, weights = arguments
    dim, dtype = model["tables"][0]["dim"], model["tables"][0]["dtype"]
    table, feature = model["tables"][0]["name"], model["features"][0]["name"]
    pooled = next(f for f, of in enumerate(model["features"]) if len(rows[f]) > 0)
    wrong = rows[pooled].clone()
    wrong[-1] = 37
    expected = {
        f"tables must be {len(tables)} tensors, not 0": ([], offsets, rows, weights),
        f"offsets must be {len(rows)} tensors, not {len(rows) + 1}": (tables, offsets + offsets[:1], rows, weights),
        f"table '{table}' must be {dtype} [n, {dim}], contiguous, on cpu; it is float64 [37, {dim}], on cpu":
            (replaced(tables, 0, tables[0].double()), offsets, rows, weights),
        f"table '{table}' must be {dtype} [n, {dim}], contiguous, on cpu; it is {dtype} [37, {dim + 1}], on cpu":
            (replaced(tables, 0, torch.ones(37, dim + 1).to(tables[0].dtype)), offsets, rows, weights),
        f"table '{table}' must be {dtype} [n, {dim}], contiguous, on cpu; it is {dtype} [37, {dim}], not contiguous, "
        "on cpu": (replaced(tables, 0, tables[0].t().contiguous().t()), offsets, rows, weights),
        f"rows of feature '{feature}' must be int64 [n], contiguous, on cpu; it is int32 [{len(rows[0])}], on cpu":
            (tables, offsets, replaced(rows, 0, rows[0].int()), weights),
        f"feature '{feature}': offsets must ascend from 0 to the number of rows that are looked up, {len(rows[0])}":
            (tables, replaced(offsets, 0, offsets[0] + 1), rows, weights),
        f"offsets of feature '{feature}' must have one element at least":
            (tables, replaced(offsets, 0, offsets[0][:0]), rows, weights),
        f"feature '{model['features'][pooled]['name']}': lookup {len(wrong) - 1} names row 37, but table "
        f"'{model['features'][pooled]['table']}' has 37": (tables, offsets, replaced(rows, pooled, wrong), weights),
    }
    for f, of in enumerate(model["features"]):
        if of["weighted"]:
            expected[f"weights of feature '{of['name']}' are missing"] = (
                tables, offsets, rows, replaced(weights, f, None))
            expected[f"weights of feature '{of['name']}' must be as many as rows, {len(rows[f])}, not 1"] = (
                tables, offsets, rows, replaced(weights, f, torch.ones(1)))
        else:
            expected[f"weights of feature '{of['name']}' must be None"] = (
                tables, offsets, rows, replaced(weights, f, torch.ones(len(rows[f]))))
    check_said(op, name, expected)


def check_errors_on_cuda(op, name, model, arguments):
    """Those of tensors that are not where they must be."""
    tables, offsets, rows, weights = arguments
    feature, table = model["features"][0]["name"], model["tables"][1]
    device = f"cuda:{tables[0].get_device()}"
    expected = {
        f"rows of feature '{feature}' must be int64 [n], contiguous, on {device}; it is int64 [{len(rows[0])}], on cpu":
            (tables, offsets, replaced(rows, 0, rows[0].cpu()), weights),
        f"offsets of feature '{feature}' must be int64 [n], contiguous, on cpu; it is int64 [{len(offsets[0])}], "
        f"on {device}": (tables, replaced(offsets, 0, offsets[0].to(device)), rows, weights),
        f"table '{table['name']}' must be {table['dtype']} [n, {table['dim']}], contiguous, on {device}; it is "
        f"{table['dtype']} [37, {table['dim']}], on cpu":
            (replaced(tables, 1, tables[1].cpu()), offsets, rows, weights),
    }
    check_said(op, name, expected)


def check_shapes(op, arguments, found):
    """Of tensors without data, as torch.compile and torch.export ask."""
    meta = [[t if t is None else t.to("meta") for t in tensors] for tensors in arguments]
    for of, shape in zip(found, op(*meta)):
        assert shape.device.type == "meta" and shape.shape == of.shape and shape.dtype == of.dtype


def check_files(op, model, folder, device):
    """The call in the folder gives every bit that the reference gave."""
    def tensors(letter, count, dtype, shape=lambda i: (-1,)):
        def read(i):
            path = folder / f"{letter}{i}"
            data = bytearray(path.read_bytes()) if path.exists() else None
            if data is None:
                return None
            tensor = torch.frombuffer(data, dtype=dtype(i)) if data else torch.empty(0, dtype=dtype(i))
            return tensor.reshape(shape(i))
        return [read(i) for i in range(count)]
    dims = [t["dim"] for t in model["tables"]]
    count = len(model["features"])
    tables = tensors("table", len(dims), lambda i: getattr(torch, model["tables"][i]["dtype"]), lambda i: (-1, dims[i]))
    arguments = (tables, tensors("offsets", count, lambda i: torch.int64),
                 tensors("rows", count, lambda i: torch.int64), tensors("weights", count, lambda i: torch.float32))
    for f, of in enumerate(op(*on_device(arguments, device))):
        expected = bytearray((folder / f"expected{f}").read_bytes())
        assert torch.equal(of.cpu().flatten().view(torch.uint8), torch.frombuffer(expected, dtype=torch.uint8)), f


def main():
    library, name = sys.argv[1:3]
    torch.ops.load_library(library)
    op = getattr(torch.ops.recmill, name)
    model = json.loads(getattr(torch.ops.recmill, name + "_description")())
    generator = torch.Generator().manual_seed(7)
    devices = ["cpu", *sys.argv[4:]]
    for threads, device in itertools.product((1, 2), devices):
        torch.set_num_threads(threads)
        arguments = whole_numbers(model, generator)
        found = op(*on_device(arguments, device))
        tables = {t["name"]: table for t, table in zip(model["tables"], arguments[0])}
        for feature, output, *bags in zip(model["features"], found, *arguments[1:]):
            assert output.device.type == device
            assert torch.equal(output.cpu(), by_pytorch(feature, tables[feature["table"]], *bags)), feature
    check_errors(op, name, model, arguments)
    if "cuda" in devices:
        check_errors_on_cuda(op, name, model, on_device(arguments, "cuda"))
    check_shapes(op, arguments, found)
    for device in devices if len(sys.argv) > 3 else []:
        check_files(op, model, pathlib.Path(sys.argv[3]), device)
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    print(len(found), *(key for key in ("CPU", "CUDA", "Meta") if has_kernel(f"recmill::{name}", key)))


main()
