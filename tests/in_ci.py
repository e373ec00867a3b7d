"""Whether CI runs the tests: there, what a test needs has to be present."""

import os

IN_CI = bool(os.environ.get("CI"))
