"""mypy over the code and the scripts that pages print: ``python -m tests.types_of_the_code FILE``.

It takes longer than all other single tests, and needs nothing of them. So a run of all tests begins it first, with low
priority: it works while they wait, for browsers and workers, and its test comes last.
"""

from __future__ import annotations

import fcntl
import gc
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BEGUN = "TLSTD_TYPES"
"""The environment variable that names the file with the answer, if it has been asked for already."""

WHAT_PREDICT_RETURNS = """
from fractions import Fraction
import numpy as np
from tlstd import TLSTD, SparseVector, TransitionBuilder

def value(x: SparseVector) -> float:
    return model.predict(x)

build = TransitionBuilder(gamma=0.9)
model.update(build.step(Fraction(1, 2), [1.0], terminated=np.bool_(True)))
TLSTD(2, 1, lambda_=0.0, trace="replacing", reads="exact")
TLSTD(2, 1, lambda_=0.0, trace="replacng")  # type: ignore[arg-type]  # refused: an ignore without use is an error
"""


def begin(folder: str) -> subprocess.Popen[bytes]:
    """Ask for the answer, and tell those who are started from now on where it will be."""
    path = os.environ[BEGUN] = os.path.join(folder, "answer")
    with open(path, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # goes over to the process, which has it until it ends
        return subprocess.Popen([sys.executable, "-m", __name__, "8"], cwd=ROOT, stdout=file, stderr=file)


def answer() -> str:
    """What mypy says; waits for it, or, if nobody has asked, asks."""
    if BEGUN not in os.environ:
        command = [sys.executable, "-m", __name__]
        return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    with open(os.environ[BEGUN], encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        return file.read()


def main(niceness: int = 0) -> None:
    """Print what mypy says of src, lab, tests, and of what the README and the section on Gymnasium print as scripts."""
    os.nice(niceness)
    gc.disable()  # it took a quarter of the time, and found nothing
    gc.enable = lambda: None
    from mypy import api

    with tempfile.TemporaryDirectory() as folder:
        scripts: list[str] = []
        for page in ("README.md", "docs/data.md"):
            section = (ROOT / page).read_text(encoding="utf-8").partition("\n## Learn from your own arrays")[0]
            code = "\n".join(re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL))
            scripts.append(os.path.join(folder, f"printed_{len(scripts)}.py"))
            Path(scripts[-1]).write_text(code + WHAT_PREDICT_RETURNS * (page == "README.md"), encoding="utf-8")
        found, problems, _ = api.run(["src", "lab", "tests", *scripts])
    print(found + problems, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
    os._exit(0)  # to take apart some ten million objects takes a fifth of the time
