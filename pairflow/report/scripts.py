"""The scripts of a page, and how its Content-Security-Policy names them, so that nothing else runs."""

import base64
import hashlib
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markupsafe import Markup

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Scripts:
    """`own` scripts are text, `plotly` is base64 of zlib or empty; `allowed` is the policy for them."""

    own: tuple[Markup, ...]
    plotly: str
    allowed: str


@cache
def scripts(plots: bool) -> Scripts:
    """The script that sorts and copies, and those that draw `plots`, if there are any."""
    names = ("tables.js", "plots.js") if plots else ("tables.js",)
    own = [(_FOLDER / name).read_text(encoding="utf-8") for name in names]
    library = []
    if plots:
        from plotly.offline import get_plotlyjs

        library = [get_plotlyjs()]
    packed = "".join(base64.b64encode(zlib.compress(code.encode(), 9)).decode() for code in library)
    allowed = " ".join(f"'{sha256(code)}'" for code in (*own, *library))
    return Scripts(tuple(map(Markup, own)), packed, allowed)


def sha256(script: str) -> str:
    """How a Content-Security-Policy names a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
