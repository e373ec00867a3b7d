"""How often each promise of docs/reliability.md is tried, and by which tests: it counts the marker `promise`.

`python tests/promises.py` writes the table into the page, and tests/docs/test_promises.py compares the two.
"""

import contextlib
import io
from collections import Counter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "docs" / "reliability.md"
START, END = "<!-- promises -->\n", "<!-- end of promises -->"
PROMISES = {
    "kill": "A step that is killed (kill -9) and restarted gives the same bytes as an undisturbed one.",
    "signal": "A step gives the same bytes after a signal to stop and a restart, or after a signal to save. "
    "A second Ctrl-C ends it at once.",
    "state": "A saved state is not used if it was altered, cut or swapped, or belongs to another run.",
    "disk": "A full or read-only disk gives a one-line error and leaves no partial file.",
    "damage": "A damaged file is refused; the error names it.",
    "contents": "A table with intact metadata and the wrong contents is refused with a one-line error.",
    "exchange": "A file of another data set, split, run or kind is refused; the error names it.",
    "download": "A download that fails, or is not the expected file, is never used.",
    "options": "Nonsense in an option gives a one-line error and exit code 2.",
    "locks": "No step fails if a GPU's lock file is another user's, a link or a pipe. No link is followed.",
    "json": "JSON that is huge or nested deeply is refused before it takes memory.",
    "code": "Pickles, file names and other outside text are never executed.",
}


class Collected:
    """A plugin that counts trials: (promise, file) -> parameter sets times `times`."""

    def __init__(self) -> None:
        self.trials: Counter[tuple[str, str]] = Counter()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("promise"):
                self.trials[mark.args[0], item.location[0]] += mark.kwargs.get("times", 1)


def make_table() -> str:
    """The table in Markdown; AssertionError where a promise has no test or a marker no promise."""
    paths = (REPOSITORY / "tests").rglob("test_*.py")
    files = [str(path) for path in paths if "mark.promise" in path.read_text()]
    collected = Collected()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        options = ["--collect-only", "-q", "-p", "no:cacheprovider", "--rootdir", str(REPOSITORY)]
        status = pytest.main([*options, *files], plugins=[collected])
    assert status == 0, printed.getvalue()
    assert {promise for promise, _ in collected.trials} == set(PROMISES)
    lines = ["| promise | trials | tests |", "|---|---|---|"]
    for promise, text in PROMISES.items():
        of_file = {file: count for (name, file), count in sorted(collected.trials.items()) if name == promise}
        tests = ", ".join(f"[{Path(file).name}](../{file}) ({count:,})" for file, count in of_file.items())
        lines.append(f"| {text} | {sum(of_file.values()):,} | {tests} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the table into the page."""
    before, _, rest = PAGE.read_text().partition(START)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{START}{make_table()}{END}{after}")


if __name__ == "__main__":
    main()
