"""Nonsense in the options of the commands ends in a line, and exit code 2 (or 0 where it is none).

More cases: PAIRFLOW_OPTION_CASES=5000 python -m pytest tests/robustness/test_options.py
"""

import json
import os
import random

import nonsense
import pytest

CASES = int(os.getenv("PAIRFLOW_OPTION_CASES", "80"))


@pytest.mark.promise("options", times=CASES)
def test_nonsense_in_any_option_is_refused_in_one_line(tmp_path, forkserver):
    """Each type of option at least once, with another value each time."""
    chance, options = random.Random(0), nonsense.options()
    assert len(options) <= CASES
    cases = [(*options[k % len(options)], chance.choice(nonsense.VALUES)) for k in range(CASES)]
    (tmp_path / "empty").mkdir()
    found = tmp_path / "found.json"
    tried = forkserver.Process(target=nonsense.try_all, args=(cases, str(tmp_path / "empty"), str(found)))
    tried.start()
    tried.join()
    assert json.loads(found.read_text()) == {}
    assert [path.name for path in (tmp_path / "empty").iterdir()] == []
