"""mypy over the code, and over the scripts that the README and the section on Gymnasium print.

uv run python .ci/check_types.py
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

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
"""Added to the README's script: the types that its readers rely on."""


def printed_script(page: str) -> str:
    """The Python blocks of a page, up to the section on arrays of one's own, as one script."""
    section = (ROOT / page).read_text(encoding="utf-8").partition("\n## Learn from your own arrays")[0]
    return "\n".join(re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL))


def main() -> int:
    """Run mypy; its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        readme, data = Path(folder, "printed_readme.py"), Path(folder, "printed_data.py")
        readme.write_text(printed_script("README.md") + WHAT_PREDICT_RETURNS, encoding="utf-8")
        data.write_text(printed_script("docs/data.md"), encoding="utf-8")
        return subprocess.call([sys.executable, "-m", "mypy", "src", "lab", "tests", readme, data], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
