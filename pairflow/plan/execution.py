"""Runs the workflow by Snakemake, with a line per finished job in the place of Snakemake's own log."""

import builtins
import logging
import shutil
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from snakemake.cli import main as snakemake
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent, logger_plugin_module_prefix
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

from pairflow.artifacts.atomic import disk_of
from pairflow.kinds import KINDS
from pairflow.runtime.resume import RERUN

_NAME = "pairflow"  # of the plugin, for Snakemake
_KNOWN = ("RuleException",)  # what Snakemake says of a failed job, before the record from which it is shown
_LOCKED = (
    "the folder is locked, because another run works in it; if none does, one was killed: "
    "run the same command once with `-- --unlock`, then again without"
)
_FOLDER = Path(".snakemake")  # for Snakemake's own records
_TAIL = 4096  # bytes at the end of a log that hold its last line
_CLEAR = "\r\x1b[K"  # back to the start of the terminal's line, which is erased


def run(arguments: Sequence[str]) -> int:
    """Run Snakemake in this process with these arguments, under `JobLines`; returns its exit code."""
    LoggerPluginRegistry().register_plugin(logger_plugin_module_prefix + _NAME, sys.modules[__name__])
    # A log that cannot be written is not worth a traceback for each of its lines.
    logging.raiseExceptions = False
    try:
        snakemake(["--logger", _NAME, *arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


_OF_EVERY_KIND = ("preprocess", "evaluate", "floor")  # rules whose names end in that of a kind


def label(rule: str, wildcards: Mapping[str, str]) -> str:
    """A job in words: `train pairflow`, `sample udlm+dcd main nfe 4`. Seeds other than 0 are named."""
    names = {name: value for name, value in wildcards.items() if value and name not in ("experiment", "seed")}
    if "distillation" in names:
        names["parent"] += f"+{names.pop('distillation')}"
    if "nfe" in names:
        names["nfe"] = f"nfe {names['nfe']}"
    if "comparison" in names:
        names["comparison"] = f"by {names['comparison'].removeprefix('-')}"
    verb, _, kind = rule.partition("_")
    if kind in KINDS and verb in _OF_EVERY_KIND:
        rule = verb
    seed = wildcards.get("seed", "0")
    return " ".join([rule, *names.values(), *([] if seed == "0" else [f"seed {seed}"])])


def message(log: Path) -> str:
    """What a failed step said: its own line if there is one, else its last line that is no progress bar."""
    lines = [line for line in _last_lines(log) if "%|" not in line]
    own = [line for line in lines if line.startswith("pairflow ")]
    return (own or lines or ["it left no message; perhaps it was killed, or ran out of memory"])[-1]


def _last_lines(log: Path) -> list[str]:
    """The last lines of a log that are not empty; none if there is no such file yet."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line for line in text.splitlines() if line.strip()]


def _log(facts: Mapping[str, Any]) -> Path:
    """The log of the job that a record is about; each rule has one."""
    return Path(facts["log"][0])


def _is_refusal(facts: Mapping[str, Any]) -> bool:
    """Whether a record is of an error of the system: no room, no permission, a folder that is read-only."""
    kind = getattr(builtins, str(facts.get("exception")), None)
    return isinstance(kind, type) and issubclass(kind, OSError)


class _Running(NamedTuple):
    """A job that has started: what it is, where it writes its log, when it began."""

    label: str
    log: Path
    began: float


class JobLines(LogHandlerBase):
    """A line on stderr for each job that ends, and for each that fails with its own message.

    In a terminal, a last line follows the log of the job that has run longest: for a training its loss and
    the time left. A dry run is shown as Snakemake shows it.
    """

    writes_to_stream, writes_to_file, needs_rulegraph = True, False, False
    has_filter, has_formatter = False, False  # Snakemake's own, which follow its --quiet

    def __post_init__(self) -> None:
        self.running: dict[int, _Running] = {}
        self.ended = ""  # the job that has ended last
        self.failed = False
        self.closed = threading.Event()
        self.terminal = sys.stderr.isatty()
        self.screen = threading.Lock()
        self.follower = threading.Thread(target=self._follow, daemon=True) if self.terminal else None
        if self.follower:
            self.follower.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Show what a record of Snakemake's log tells a user; its other fields depend on its `event`."""
        facts = vars(record)
        event = facts.get("event")
        if self.common_settings.dryrun:
            self._write(self.format(record))
        elif event == LogEvent.JOB_INFO:
            name = label(facts["rule_name"], facts["wildcards"])
            self.running[facts["jobid"]] = _Running(name, _log(facts), time.monotonic())
        elif event == LogEvent.JOB_FINISHED:
            if job := self.running.pop(facts["job_id"], None):
                self.ended = f"{job.label}, {time.monotonic() - job.began:.0f} s"
        elif event == LogEvent.PROGRESS:
            self._write(f"{facts['done']}/{facts['total']} {self.ended}")
        elif event == LogEvent.JOB_ERROR:
            job, log, self.failed = self.running.pop(facts["jobid"], None), _log(facts), True
            said = message(log)
            how = "stopped" if RERUN in said else "failed"
            self._write(f"{how}: {job.label if job else facts['rule_name']}: {said} ({log})")
        elif facts.get("exception") == "LockException":
            self._write(f"pairflow run: error: {_LOCKED}")
        elif _is_refusal(facts):
            reason = record.getMessage().strip().splitlines()[-1]  # of a traceback
            self._write(f"pairflow run: error: Snakemake stopped: {reason} ({disk_of(_FOLDER)})")
        elif record.levelno >= logging.WARNING and not self.failed and facts.get("exception") not in _KNOWN:
            self._write(self.format(record))

    def close(self) -> None:
        self.closed.set()
        if self.follower:
            self.follower.join()
            self._write("", end="")
        super().close()

    def _write(self, text: str, end: str = "\n") -> None:
        with self.screen:
            sys.stderr.write(f"{_CLEAR * self.terminal}{text}{end}")
            sys.stderr.flush()

    def _follow(self) -> None:
        """Rewrite the terminal's last line every second."""
        while not self.closed.wait(1.0):
            for job in [*self.running.values()][:1]:
                for line in _last_lines(job.log)[-1:]:
                    text = f"{job.label}: {line.strip()}"
                    self._write(text[: shutil.get_terminal_size().columns - 1], end="")


LogHandler = JobLines  # by this name Snakemake finds it
