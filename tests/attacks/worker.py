"""`weft ARGUMENTS`, many in succession, in a process with little memory.

Each line of stdin is a JSON list of arguments; the answer is a JSON line [exit code, stdout, stderr].
Read next: jail.py, which starts it.
"""

import io
import json
import resource
import sys
from pathlib import Path

MORE = 512 * 2**20
"""Bytes of address space beyond what all of weft takes once it is imported."""


def main() -> None:
    """Serve until stdin ends."""
    import matplotlib.figure
    import PIL.Image
    import safetensors.torch
    import torch
    import torch._dynamo  # a training imports it; cut off by the limit, it would stay half imported

    from weft import cli, tasks
    from weft.inspect import inspection
    from weft.rooms import parts
    from weft.tasks.task import Task

    assert matplotlib.figure and PIL.Image and safetensors.torch and inspection
    parts(tasks, Task)
    torch.set_num_threads(1)
    torch.ones(300, 300) @ torch.ones(300, 300)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MORE, hard))
    asked, answers = sys.stdin, sys.stdout
    for line in asked:
        out, err = io.BytesIO(), io.BytesIO()
        sys.stdin = io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8")
        sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
        sys.stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
        try:
            cli.main(json.loads(line))
            code: object = None
        except SystemExit as leave:
            code = leave.code
        except BaseException as error:  # noqa: BLE001
            code = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps([code, out.getvalue().decode(), err.getvalue().decode()]), file=answers, flush=True)


if __name__ == "__main__":
    main()
