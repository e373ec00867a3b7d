"""The table of promises in docs/reliability.md is the one that the tests' markers make."""

import subprocess
import sys

from promises import END, PAGE, REPOSITORY, START


def test_the_page_says_how_often_each_promise_is_tried():
    command = [sys.executable, "-c", "from promises import make_table; print(make_table(), end='')"]
    made = subprocess.run(command, cwd=REPOSITORY / "tests", capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    page = PAGE.read_text()
    assert page.partition(START)[2].partition(END)[0] == made.stdout, "run: python tests/promises.py"
