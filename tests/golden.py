"""Digests of what the workflow makes, to see that a change of the code changes no byte.

    python tests/golden.py before.json        (in a worktree of the commit before)
    python tests/golden.py after.json && diff before.json after.json

It makes `demo`, `digits` and the small experiment on each kind of data (tests/miniatures.py), on one thread,
and writes a SHA-256 of the content of each file: of the columns of a table, without what its metadata say of
time and machine. Models, samples and metrics depend on the processor; data and pairs of tokens do
not, and tests/test_golden.py compares them with tests/golden.json.
"""

import argparse
import contextlib
import hashlib
import json
import sys
import tempfile
from pathlib import Path

import miniatures
import pyarrow.parquet as pq

REPOSITORY = Path(__file__).parent.parent
SHIPPED = ("demo", "digits")
STORED = Path(__file__).with_name("golden.json")


def digest(path: Path) -> str:
    """The SHA-256 of a file's content."""
    content = hashlib.sha256()
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        for name in table.column_names:
            column = table.column(name).combine_chunks()
            content.update(f"{name} {column.type}".encode() + repr(column.to_pylist()).encode())
    else:
        content.update(path.read_bytes())
    return content.hexdigest()


def digests(root: Path, *folders: str) -> dict[str, str]:
    """The digests of the tables, vocabularies and weights in some folders of an experiment's results."""
    kept = (".parquet", ".safetensors", ".json")
    paths = sorted(path for path in root.rglob("*") if path.suffix in kept and not _is_record(path))
    found = {path.relative_to(root).as_posix(): path for path in paths}
    return {
        name: digest(path)
        for name, path in found.items()
        if not folders or any(part in folders for part in name.split("/"))
    }


def portable_digests(root: Path) -> dict[str, str]:
    """The digests of data and pairs that no processor changes: not of pairs of numbers, or by a network."""
    found = digests(root, "data", "pairs")
    of_numbers = root.name in ("vectors", "images")
    return {
        name: value
        for name, value in found.items()
        if "pairs" not in name.split("/") or not (of_numbers or "+" in name or "sdot" in name)
    }


def _is_record(path: Path) -> bool:
    """Whether a file says how long something took, or which bytes, metadata included, it was made from."""
    return path.name in ("timings.parquet", "log.parquet", "model.json") or path.name.endswith(
        ".provenance.json"
    )


def make_shipped(name: str) -> Path:
    """Run all jobs of a shipped experiment in the working directory."""
    from pairflow.config.file import read
    from pairflow.plan.jobs import jobs

    root, experiment = Path("results", name), read(REPOSITORY / "workflow_config.yaml").experiments[name]
    for job in jobs(root, experiment):
        run(miniatures.call_of(root, job, experiment.data.kind))
    return root


def run(call: miniatures.Call) -> None:
    """Run a command in this process."""
    import torch
    from click.testing import CliRunner

    from pairflow.cli import main

    torch.set_num_threads(1)
    for path in call.outputs:
        path.parent.mkdir(parents=True, exist_ok=True)
    threads = {"threads": 1} if call.name in ("pair", "potentials", "cover") else {}
    finished = CliRunner().invoke(main, call.words(**threads))
    if finished.exit_code:
        raise SystemExit(f"{call.name}: {finished.output[-2000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out.resolve()
    found = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        miniatures.make_sources()
        for kind in miniatures.EXPERIMENTS:
            for call in miniatures.calls_of(kind):
                run(call)
            found[kind] = digests(miniatures.root_of(kind))
        for name in SHIPPED:
            found[name] = digests(make_shipped(name))
            print(name, file=sys.stderr)
    out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
