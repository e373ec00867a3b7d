"""Build hook: the wheel and the source distribution carry the workflow's files.

pyproject.toml names them, [tool.pairflow]. They stay at the root of the repository; a wheel has a copy in
pairflow/workflow, which `pairflow init` copies into a project.
"""

import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

NAMES = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["pairflow"]["workflow"]
FILES = [path for name in NAMES for path in (Path(name), *Path(name).rglob("*")) if path.is_file()]


class BuildWithWorkflow(build_py):
    """Copies the workflow's files beside the modules, except in an editable installation."""

    def run(self) -> None:
        super().run()
        for path in () if self.editable_mode else FILES:
            copy = Path(self.build_lib, "pairflow/workflow", path)
            self.mkpath(str(copy.parent))
            self.copy_file(str(path), str(copy))

    def get_source_files(self) -> list[str]:
        """The files that a source distribution needs for this command."""
        return [*super().get_source_files(), *map(str, FILES)]


setup(cmdclass={"build_py": BuildWithWorkflow})
