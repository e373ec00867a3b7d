"""Runs the workflow with Snakemake, and prints a line per finished job instead of Snakemake's log."""

import builtins
import logging
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from snakemake.cli import main as snakemake
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent, logger_plugin_module_prefix
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

from pairflow.artifacts.atomic import disk_of
from pairflow.kinds import KINDS
from pairflow.runtime import signals
from pairflow.runtime.resume import RERUN

_LOCKED = (
    "the folder is locked, because another run works in it. If no other run does, one was killed: "
    "run `pairflow run <experiment> -- --unlock`, then the same command again"
)
FOLDER = Path(".snakemake")  # the folder of Snakemake's records
_STOPPED = "pairflow run: stopped; finished jobs and saved states stay: rerun the same command to resume"
_BY_SLURM = ("CANCELLED", "PREEMPTED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")  # its words for such jobs
_REFUSED = re.compile(r"SLURM sbatch failed\. The error message was '(.*?)'\.?\s+sbatch call:", re.DOTALL)
_UNFINISHED = "At least one job did not complete"  # Snakemake's last error of any run that ends early
_TAIL = 4096  # bytes at the end of a log that hold its last line
_NOTICE = 2.0  # seconds within which this process notices a Ctrl-C that has ended a step
MINUTE = 60.0  # seconds between two lines on a running job, where they are not a terminal's
_CLEAR = "\r\x1b[K"  # back to the start of the terminal's line, which is erased
# Names of the operating system's errors: a full disk, no permission, a read-only folder.
_REFUSALS = {
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, OSError)
}
_OF_EVERY_KIND = ("preprocess", "evaluate", "floor")  # rules whose names end in a kind of data


def run(arguments: Sequence[str]) -> int:
    """Run Snakemake in this process with these arguments; returns its exit code. A line is printed for each
    job that ends (`JobLines`)."""
    # Snakemake looks for loggers among installed packages of a certain name; this module registers itself.
    LoggerPluginRegistry().register_plugin(logger_plugin_module_prefix + "pairflow", sys.modules[__name__])
    # Otherwise a log on a full disk would print a traceback for each of its lines.
    logging.raiseExceptions = False
    with signals.noticed(signal.SIGINT) as JobLines.interrupted:
        try:
            snakemake(["--logger", "pairflow", *arguments])
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def label(rule: str, wildcards: Mapping[str, str]) -> str:
    """Name a job in a few words: `train pairflow`, `sample udlm+dcd main nfe 4`. Seeds other than 0 are in
    the name."""
    forms = {
        "distillation": "+{}",
        "nfe": "nfe {}",
        "comparison": "by {}",
        "seed": "seed {}",
        "shards": "of {}",
    }
    names = {name: value.removeprefix("-") for name, value in wildcards.items() if name != "experiment"}
    seed = names.pop("seed", "0")
    names |= {} if seed == "0" else {"seed": seed}
    verb, _, kind = rule.partition("_")
    words = [verb if kind in KINDS and verb in _OF_EVERY_KIND else rule]
    words += [forms.get(name, "{}").format(value) for name, value in names.items() if value]
    return " ".join(words).replace(" +", "+")


def message(log: Path, cause: str = "") -> str:
    """Return a step's error message from its log, or else the known `cause` of its end, or else the last line
    of the log that is no progress bar or note."""
    lines = [line for line in _last_lines(log) if "%|" not in line and "pairflow: note:" not in line]
    errors = [line for line in lines if line.startswith("pairflow ")]
    return (
        errors
        or [cause] * bool(cause)
        or lines
        or ["it left no message; perhaps it was killed, or ran out of memory"]
    )[-1]


def _last_lines(log: Path) -> list[str]:
    """Return the last lines of a log, without empty lines; an empty list if the file does not exist yet."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line for line in text.splitlines() if line.strip()]


class JobLines(LogHandlerBase):
    """Snakemake's logger: it writes a line on stderr for each job that ends, with any error message.

    In a terminal, a last line shows the progress of the job that has run longest: for a training its loss and
    the time left. Elsewhere such a line is written once a minute. A dry run prints Snakemake's summary.
    """

    writes_to_stream, writes_to_file, needs_rulegraph = True, False, False
    has_filter, has_formatter = False, False  # use Snakemake's, which obey its --quiet
    interrupted = threading.Event()  # whether Ctrl-C has arrived

    def __post_init__(self) -> None:
        self.running: dict[int, tuple[str, Path, float]] = {}  # job number -> label, log, start
        self.ended = ""  # the job that ended last
        self.errors: dict[int, tuple[str, bool]] = {}  # job number -> label, and whether it was only stopped
        self.broken = False  # whether Snakemake has reported an error of its own
        self.counted = False
        self.warned: set[str] = set()  # texts that are not written twice: the SLURM plugin warns per job
        self.closed = threading.Event()
        self.terminal = sys.stderr.isatty()
        self.screen = threading.Lock()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Print what matters to a user in a record of Snakemake's log, whose fields depend on its `event`."""
        facts = vars(record)
        event = facts.get("event")
        if self.common_settings.dryrun:
            # A large experiment has hundreds of jobs, and their numbers come twice.
            jobs = event == LogEvent.JOB_INFO or record.getMessage().startswith("Would remove temporary")
            if not jobs and not (event == LogEvent.RUN_INFO and self.counted):
                self._write(self.format(record))
            self.counted |= event == LogEvent.RUN_INFO
        elif event == LogEvent.JOB_INFO:
            name = label(facts["rule_name"], facts["wildcards"])
            self.running[facts["jobid"]] = name, Path(facts["log"][0]), time.monotonic()
        elif event == LogEvent.JOB_FINISHED:
            if job := self.running.pop(facts["job_id"], None):
                self.ended = f"{job[0]}, {time.monotonic() - job[2]:.0f} s"
        elif event == LogEvent.PROGRESS:
            self._write(f"{facts['done']}/{facts['total']} {self.ended}")
        elif event == LogEvent.JOB_ERROR:
            self._report_error(facts)
        elif again := re.match(r"Trying to restart job (\d+)", record.getMessage()):
            name, _ = self.errors.pop(int(again[1]), ("a job", False))
            self._write(f"trying again: {name}")
        elif _UNFINISHED in record.getMessage():
            if not self.broken and all(stopped for _, stopped in self.errors.values()):
                self._write(_STOPPED)
        elif facts.get("exception") == "LockException":
            self._write(f"pairflow run: error: {_LOCKED}")
        elif facts.get("exception") in _REFUSALS:
            reason = record.getMessage().strip().splitlines()[-1]  # the last line of a traceback
            self._write(f"pairflow run: error: Snakemake stopped: {reason} ({disk_of(FOLDER)})")
        elif (
            record.levelno >= logging.WARNING
            and not self.errors
            and facts.get("exception") != "RuleException"
        ):
            self.broken |= record.levelno >= logging.ERROR
            if (text := self.format(record)) not in self.warned:
                self._write(text)
            self.warned.add(text)

    def _report_error(self, facts: dict[str, Any]) -> None:
        """Print why a job ended without its outputs. `facts` are the fields of Snakemake's log record."""
        name, *_ = self.running.pop(facts["jobid"], [facts["rule_name"]])
        log, said = Path(facts["log"][0]), facts.get("rule_msg") or ""
        if refused := _REFUSED.search(said):  # the step has not started, and any log is of another attempt
            reason = "; ".join(line.removeprefix("sbatch: error: ") for line in refused[1].splitlines())
            self.errors[facts["jobid"]] = name, False
            return self._write(f"failed: {name}: SLURM refused the job: {reason}")
        status = re.search(r"status is: '(\w+)", said)
        # Ctrl-C reaches step and run at once, and the step may end before Python handles the signal here.
        cause = "Ctrl-C ended it" if self.interrupted.wait(_NOTICE) else ""
        if status and status[1] in _BY_SLURM:
            cause = f"SLURM ended it: {status[1]}"
        reason = message(log, cause)
        stopped = cause != "" or RERUN in reason
        self.errors[facts["jobid"]] = name, stopped
        self._write(f"{'stopped' if stopped else 'failed'}: {name}: {reason} ({log})")

    def close(self) -> None:
        self.closed.set()
        self.watcher.join()
        if self.terminal:
            self._write("", end="")
        super().close()

    def _write(self, text: str, end: str = "\n") -> None:
        with self.screen:
            sys.stderr.write(f"{_CLEAR * self.terminal}{text}{end}")
            sys.stderr.flush()

    def _watch(self) -> None:
        """Rewrite the terminal's last line every second; without a terminal, write a line every minute."""
        while not self.closed.wait(1.0 if self.terminal else MINUTE):
            jobs = [*self.running.values()]
            started = ((name, lines[-1].strip()) for name, log, _ in jobs if (lines := _last_lines(log)))
            # A job in the queue of a cluster has no log yet.
            for name, line in [next(started, (jobs[0][0], "waiting to start"))] if jobs else []:
                text = f"{name}: {line}"
                if self.terminal:
                    self._write(text[: shutil.get_terminal_size().columns - 1], end="")
                else:
                    self._write(text)


LogHandler = JobLines  # the name that Snakemake looks for
