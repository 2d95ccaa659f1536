# SPDX-License-Identifier: Apache-2.0
"""A rival of `recmill bench`: reads one JSON object a line, answers each with one."""
import json
import sys


def serve(handlers):
    """handlers: {"run": function(value) -> dict}; a request is {"run": value}."""
    out = sys.stdout
    sys.stdout = sys.stderr  # what libraries print is not an answer
    for line in sys.stdin:
        (verb, value), = json.loads(line).items()
        try:
            answer = handlers[verb](value)
        except Exception as error:  # the benchmark must end with a line that says why
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)
