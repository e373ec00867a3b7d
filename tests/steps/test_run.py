"""`pairflow run` with a real Snakemake: lines for jobs, messages of failed steps, exit codes, the end."""

import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from snakemake.exceptions import LockException
from snakemake_interface_logger_plugins.common import LogEvent

from pairflow.artifacts import read_metadata
from pairflow.config import Experiment, check
from pairflow.config.file import read
from pairflow.config.scaled import scaled
from pairflow.errors import InputError
from pairflow.estimate.forecast import forecast
from pairflow.plan import execution
from pairflow.plan.jobs import jobs
from pairflow.plan.own_files import require_own_files
from pairflow.plan.sizes import about
from pairflow.report.outlook import outset, sums
from pairflow.steps.run import advice, expect, forcing

REPOSITORY = Path(__file__).parent.parent.parent
SNAKEFILE = ("--snakefile", str(REPOSITORY / "Snakefile"))
JOBS = {"preprocess", "describe_molecules", "train udlm", "report"}
JOBS |= {"sample udlm main nfe 1", "evaluate udlm main nfe 1"}


@pytest.fixture
def workflow(miniature):
    """Write the configuration with one small experiment; it is in the working directory."""

    def write(**changes):
        text = yaml.safe_dump({"experiments": {"mini": miniature(**changes)}})
        Path("workflow_config.yaml").write_text(text)

    return write


COMMAND = ("-m", "pairflow.steps.run", "mini", "--cores", "2", "--", *SNAKEFILE)
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


@pytest.fixture
def run(quick_python):
    """Start `pairflow run mini`."""

    def start(*arguments: str) -> subprocess.Popen:
        return subprocess.Popen(["python", *COMMAND, *arguments], **PIPES, env=quick_python)

    return start


def may_run(user: str) -> bool:
    """Whether another user may run this Python with this package; only root can find out."""
    command = [sys.executable, "-c", "import pairflow"]
    try:
        return subprocess.run(command, user=user, cwd="/", capture_output=True, check=False).returncode == 0
    except PermissionError:
        return False


@pytest.fixture
def odd_project(workflow, monkeypatch):
    """A folder with an odd name, which every user may enter, with the configuration; how to run steps there.

    As `nobody` if root runs the tests and `nobody` can read the package, without a home, in an old locale.
    """
    with tempfile.TemporaryDirectory() as name:
        project, temporary = Path(name, "mein Büro & mehr"), Path(name, "tmp")
        Path(name).chmod(0o755)
        other = os.getuid() == 0 and may_run("nobody")
        for path in (project, temporary):
            path.mkdir()
            if other:
                shutil.chown(path, "nobody")
        monkeypatch.chdir(project)
        workflow()
        paths = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "TMPDIR": str(temporary)}
        paths["XDG_CACHE_HOME"] = str(temporary / "cache")  # Snakemake needs one, or a home
        yield {"env": {**paths, "LANG": "C"}, "umask": 0o077, "user": "nobody" if other else None}


@pytest.mark.workflow
def test_a_run_prints_its_jobs_its_result_and_the_next_command(odd_project, run):
    process = subprocess.Popen([sys.executable, *COMMAND], **PIPES, **odd_project)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    made = [path for path in Path("results").rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in made} == {0o600}
    lines = re.findall(r"^(\d+)/6 (.+), \d+ s$", errors, re.MULTILINE)
    assert [int(number) for number, _ in lines] == [1, 2, 3, 4, 5, 6]
    assert {name for _, name in lines} == JOBS
    assert "rule " not in errors
    best, report, last = output.splitlines()
    method = "the samples of udlm at 1 sampling step are valid molecules. All"
    assert re.match(rf"\d+(\.\d+)? % of {method}", best)
    assert report == "report: results/mini/report.html"
    command = "pairflow sample --model results/mini --count 1000 --unique --novel --out mini_samples.smi"
    usable = float(re.search(r"[\d.]+(?= %)", best)[0]) >= 5
    assert last.startswith(f"new molecules: {command}" if usable else "these molecules are not usable yet: ")
    process = run()  # there is nothing to do
    again, errors = process.communicate()
    assert (process.returncode, again) == (0, output)
    assert "/6" not in errors
    process = run("--dry-run", "--forcerun", "evaluate_molecules")
    output, errors = process.communicate()
    assert (process.returncode, output) == (0, "")
    assert re.search(r"^total +2$", errors, re.MULTILINE)


@pytest.mark.workflow
def test_a_smaller_version_is_written_and_run_under_a_name_of_its_own(workflow, quick_python):
    workflow()
    command = ["python", "-m", "pairflow.steps.run", "mini", "--scale", "0.5", "--cores", "2"]
    for said in ("wrote {}", "{} exists already, and is used as it is"):
        run = subprocess.run([*command, "--", *SNAKEFILE], **PIPES, env=quick_python, check=False)
        assert run.returncode == 0, run.stderr
        assert run.stderr.startswith(said.format("experiments/mini_50percent.yaml"))
    report = Path("results/mini_50percent/report.html").read_text()
    assert "a quick try at 50 % of its sizes" in report
    assert not Path("results/mini").exists()


@pytest.mark.workflow
def test_what_was_made_with_other_settings_is_made_again_and_the_last_report_stays(workflow, run):
    """Snakemake has no record of who made the files, as after a kill. The report then fails once."""
    workflow()
    process = run()
    process.communicate()
    assert process.returncode == 0
    root, samples = Path("results/mini"), Path("results/mini/seed0/samples/udlm/main/nfe1.parquet")
    report = [root / name for name in ("report.html", "metrics.parquet", "timings.parquet")]
    before = {path: path.read_bytes() for path in report}
    shutil.rmtree(".snakemake/metadata")
    workflow(evaluations={"main": {"nfe": [1], "samples": 8, "trials": 2}})
    log = root / "seed0/models/udlm/log.parquet"
    intact = log.read_bytes()
    log.write_bytes(intact[:4] + bytes(40) + intact[44:])  # its metadata, at the end, stay
    process = run()
    output, errors = process.communicate()
    assert (process.returncode, output) == (1, "")
    assert read_metadata(samples).parameters["samples"] == 8, errors
    assert {path: path.read_bytes() for path in before} == before
    assert f"failed: report: pairflow report: error: {log}: " in errors.splitlines()[-1]
    assert not re.search("Traceback|RuleException", errors)
    log.write_bytes(intact)
    process = run()
    assert re.findall(r"^1/1 (\w+)", process.communicate()[1], re.MULTILINE) == ["report"]
    assert report[0].read_bytes() != before[report[0]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", "--forcerun a b"),
        ("--keep-going", "--keep-going --forcerun a b"),
        ("--forcerun report -n", "--forcerun a b report -n"),
        ("-n --forcerun=report", "-n --forcerun report a b"),
    ],
)
def test_files_to_make_again_join_those_that_the_user_names(given, expected):
    assert forcing([Path("a"), Path("b")], tuple(given.split())) == tuple(expected.split())
    assert forcing([], tuple(given.split())) == tuple(given.split())


@pytest.fixture
def full(tmp_path):
    """Snakemake's own folder on a disk that is full."""
    folder = tmp_path / ".snakemake"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a disk to fill")
    with contextlib.suppress(OSError):
        (folder / "filler").write_bytes(bytes(2**17))
    yield
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.workflow
@pytest.mark.promise("disk")
@pytest.mark.usefixtures("full")
def test_a_disk_that_refuses_snakemakes_own_files_is_a_line(workflow, run):
    workflow()
    process = run()
    output, errors = process.communicate()
    assert (process.returncode, output) == (1, "")
    *_, last = errors.splitlines()
    assert re.match(r"pairflow run: error: Snakemake stopped: OSError: \[Errno .* No space left on", last)
    assert re.search(r"/\.snakemake has 0\.\d MB free\)$", last)
    assert "Traceback" not in errors


STOPPED = "pairflow run: stopped; finished jobs and saved states stay: rerun the same command to resume"


@pytest.mark.workflow
@pytest.mark.parametrize("short", [True, False])
def test_ctrl_c_reaches_the_running_step_which_saves_its_state(workflow, snakemake, short):
    """The signal goes to the process group, as from a terminal. A short step may end without a word."""
    long = {"batch_size": 8, "iterations": 10**5, "learning_rate": 1e-3, "validate_every": 10**5}
    workflow(training=long)
    log, begun = Path("results/mini/logs/preprocess.log"), ""
    if not short:
        snakemake(Path(), "--until", "preprocess_molecules", "--", "results/mini/report.html")
        log, begun = Path("results/mini/logs/seed0/train-udlm.log"), "loss="
    process = subprocess.Popen([sys.executable, *COMMAND], **PIPES, start_new_session=True)
    until = time.monotonic() + 300
    while not (log.is_file() and begun in log.read_text()):
        assert time.monotonic() < until
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate()
    assert (process.returncode, output) == (1, "")
    assert errors.splitlines()[-1] == STOPPED
    assert "failed: " not in errors
    stopped = r"^stopped: train udlm: pairflow train: stopped after \d.* of 100,000 iter"
    assert short or re.search(stopped, errors, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ("", "snakemake --cores all -- {}"),
        ("--cores 4 --gpus 2 -- --keep-going", "snakemake --cores 4 --resources gpu=2 --keep-going -- {}"),
        ("-- --profile profiles/slurm", "snakemake --profile profiles/slurm -- {}"),
        ("--cores 4 -- --executor=slurm", "snakemake --cores 4 --executor=slurm -- {}"),
        ("--gpus 2 -- --executor slurm", "snakemake --resources gpu=2 --executor slurm -- {}"),
    ],
)
def test_print_shows_the_command_and_runs_nothing(workflow, step, arguments, command):
    workflow()
    output = step("run", "mini", "--print", *arguments.split()).output
    assert output == command.format("results/mini/report.html") + "\n"
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            "--gpus 2 --print -- --profile=a",
            "--gpus: would replace the limits in the profile; write `gpu: 2`",
        ),
        ("--dry-run", "'--dry-run'. Snakemake's options follow `--`: pairflow run qm9 -- --dry-run"),
        ("--profile a", "'--profile'. Snakemake's options follow `--`: pairflow run qm9 -- --profile"),
    ],
)
def test_options_in_the_wrong_place_are_refused_with_the_right_one(workflow, step, refused, arguments, text):
    workflow()
    refused(step("run", "mini", *arguments.split()), "run", text)
    assert not Path("results").exists()


def test_a_run_says_first_what_it_takes(project):
    shipped = read(project / "workflow_config.yaml").experiments
    expected = {name: expect(project / name, shipped[name], 2) for name in ("qm9", "demo")}
    told, warned = outset(expected["qm9"], 8 * 1024)
    line = r"600 jobs to do: about [\d,]+ days on 2 cores, by recorded times; .* 3\d\.\d GB of memory"
    assert re.fullmatch(line, told)
    assert re.match(r"warning: train needs about 3\d\.\d GB of memory, and this machine has 8\.0 GB", warned)
    if expected["qm9"].device == "cpu":
        [line] = advice("qm9", shipped, expected["qm9"])
        assert line.startswith("there is no GPU here: ")
        assert line.endswith(" try `pairflow run qm9_small` or `pairflow run qm9 --scale 0.005`")
    assert advice("demo", shipped, expected["demo"]) == []


def test_the_memory_of_a_gpu_is_not_added_to_that_of_the_machine(tmp_path):
    qm9 = read(REPOSITORY / "workflow_config.yaml").experiments["qm9"]
    sizes, root = about(tmp_path, qm9), tmp_path / "qm9"
    expected = forecast(root, qm9, sizes, 2, "cuda", shards=1, recorded=True, progress=False)
    largest = r"3\d\.\d GB of the GPU and 0\.\d GB"
    [told] = outset(expected, 8 * 1024)
    assert re.search(f"; the largest takes {largest} of memory$", told)
    assert re.search(f"^memory +{largest} for the largest job$", sums(expected), re.MULTILINE)


def test_the_smallest_version_of_the_papers_qm9_is_for_a_laptop(project):
    qm9 = read(project / "workflow_config.yaml").experiments["qm9"]
    small = check(Experiment, scaled(qm9, 0.005, 127_190), "qm9")
    expected = expect(project, small, 2)
    assert expected.wall_seconds < 2 * 3600
    assert max(cost.memory_mb or 0.0 for cost in expected.costs.values()) < 2000


def test_a_mistake_is_one_line(workflow, step, refused):
    refused(step("run", "mini"), "run", "workflow_config.yaml: no such file; run the command in a folder")
    workflow()
    refused(step("run", "mimi"), "run", "no experiment 'mimi' (did you mean 'mini'?): it has mini")
    text = "expected one experiment, then `--` and Snakemake's arguments; found 'digits'"
    refused(step("run", "mini", "digits"), "run", text)
    for scale in ("nan", "1"):
        refused(step("run", "mini", "--scale", scale, "--print"), "run", "Invalid value for '--scale'")
    assert not Path("experiments").exists()
    workflow(trainings={})
    refused(step("run", "mini"), "run", "unknown key 'experiments.mini.trainings' (did you mean 'training'?)")


TOKENS = {"source": "tokens", "file": "mine.npy", "vocabulary_size": 5}
HELD_OUT = {"source": "workflow_config.yaml", "length": 16, "held_out": "no.smi"}
FOLDER = {"source": "image_folder", "folder": "mine", "size": 8, "mode": "L"}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"data": TOKENS}, "data.file: mine.npy: no such file; relative paths start at {}"),
        ({"data": HELD_OUT}, "data.held_out: no.smi: no such file; relative paths start at {}"),
        ({"data": FOLDER, "features": {"extractor": "inception"}}, "data.folder: mine: no such folder; "),
        ({"pairs": {"mine": "mine.parquet"}, "methods": ["pairs-mine"]}, "pairs.mine: mine.parquet: no such"),
        ({"from": "zinc25k"}, "from: zinc25k: no such folder (did you mean 'zinc250k'?); relative paths"),
    ],
)
def test_a_missing_file_of_ones_own_is_one_line(workflow, step, refused, changes, text):
    workflow(**changes)
    refused(step("run", "mini"), "run", f"error: experiments.mini.{text.format(Path.cwd())}")
    assert not Path("results").exists()


def test_a_file_is_missed_only_by_jobs_whose_outputs_are_not_there(miniature):
    pairs = {"pairs": {"mine": "mine.parquet"}, "methods": ["udlm", "pairs-mine"]}
    root, experiment = Path("results/mini"), check(Experiment, miniature(data=TOKENS, **pairs), "test")
    for job in jobs(root, experiment):
        if job.rule in ("preprocess", "adopt"):
            with pytest.raises(InputError, match=": no such file; relative paths start at "):
                require_own_files(root, experiment)
            for path in job.outputs.values():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
    require_own_files(root, experiment)


SILENT = "it left no message; perhaps it was killed, or ran out of memory"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  0%| 0/9 [00:00<?]\npairflow train: error: no room\nKilled\n", "pairflow train: error: no room"),
        ("Traceback\n  line\nMemoryError\n\n", "MemoryError"),
        ("  0%| 0/9 [00:00<?]\n 45%| 4/9 [00:45<00:55]\n", SILENT),
        ("pairflow: note: threads: 2 in place of 4\n", SILENT),
        ("", SILENT),
        (None, SILENT),
    ],
)
def test_the_message_of_a_failed_step(tmp_path, text, expected):
    log = tmp_path / "step.log"
    if text is not None:
        log.write_text(text)
    assert execution.message(log) == expected


def test_a_terminal_follows_the_log_of_the_job_that_has_run_longest(monkeypatch, capsys):
    Path("a.log").write_text("  1%| 1/100\n 45%| 45/100 [00:45<00:55, loss=0.75]\n")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    lines = execution.JobLines(SimpleNamespace(dryrun=False), None)
    for number, (name, file) in enumerate({"queued": "none", "udlm": "a", "mdlm": "a"}.items(), -1):
        facts = {"rule_name": "train", "wildcards": {"base": name}, "log": [f"{file}.log"]}
        log(lines, LogEvent.JOB_INFO, jobid=number, **facts)
    time.sleep(1.5)
    log(lines, LogEvent.JOB_FINISHED, job_id=0)
    log(lines, LogEvent.PROGRESS, done=7, total=60)
    lines.close()
    _, followed, finished, last = capsys.readouterr().err.split("\r\x1b[K")
    assert followed == "train udlm: 45%| 45/100 [00:45<00:55, loss=0.75]"
    assert re.fullmatch(r"7/60 train udlm, \d s\n", finished)
    assert last == ""


def test_a_job_that_waits_in_a_queue_is_named(monkeypatch, capsys):
    monkeypatch.setattr(execution, "MINUTE", 0.1)
    lines = execution.JobLines(SimpleNamespace(dryrun=False), None)
    wildcards = {"base": "pairflow", "shard": "3", "shards": "8"}
    log(lines, LogEvent.JOB_INFO, jobid=1, rule_name="pair_shard", wildcards=wildcards, log=["a.log"])
    time.sleep(0.3)
    lines.close()
    assert capsys.readouterr().err.startswith("pair_shard pairflow 3 of 8: waiting to start\n")


def test_a_warning_is_written_once_and_temporary_files_of_a_dry_run_never(capsys):
    for dry, text, times in ((False, "no account", 1), (True, "Would remove temporary output a", 0)):
        lines = execution.JobLines(SimpleNamespace(dryrun=dry), None)
        lines.setFormatter(logging.Formatter("%(message)s"))
        for _ in range(2):
            log(lines, None, msg=text, levelno=logging.WARNING)
        lines.close()
        assert capsys.readouterr().err == f"{text}\n" * times


TRAIN = {"jobid": 7, "rule_name": "train", "wildcards": {"base": "udlm"}, "log": ["a.log"]}
# The message of Snakemake's plugin when sbatch fails.
REFUSED = """SLURM sbatch failed. The error message was 'sbatch: error: invalid partition specified: cpus
sbatch: error: Batch job submission failed: Invalid partition name specified'.
    sbatch call:
        sbatch --parsable -p cpus"""


def test_a_job_that_slurm_refuses_says_why(capsys):
    Path("a.log").write_text("pairflow train: error: of an earlier attempt\n")
    lines = execution.JobLines(SimpleNamespace(dryrun=False), None)
    log(lines, LogEvent.JOB_INFO, **TRAIN)
    log(lines, LogEvent.JOB_ERROR, **TRAIN, rule_msg=REFUSED)
    log(lines, None, msg="At least one job did not complete successfully.")
    lines.close()
    assert capsys.readouterr().err == (
        "failed: train udlm: SLURM refused the job: invalid partition specified: cpus; "
        "Batch job submission failed: Invalid partition name specified\n"
    )


def test_a_locked_folder_is_one_line(capsys):
    """Snakemake's own log of a real lock, as `snakemake.exceptions.print_exception` writes it."""
    lines = execution.JobLines(SimpleNamespace(dryrun=False), None)
    log(lines, LogEvent.ERROR, exception=LockException.__name__, levelno=logging.ERROR)
    said = capsys.readouterr().err
    assert said.startswith("pairflow run: error: the folder is locked, because another run works in it. ")
    assert said.count("\n") == 1


STATUS = "SLURM-job '12' failed, SLURM status is: '{}'. Detailed failure reason unavailable"


@pytest.mark.parametrize(
    ("text", "status", "line"),
    [
        (" 45%| 45/100 [00:45<00:55]\n", "CANCELLED", "stopped: train udlm: SLURM ended it: CANCELLED"),
        ("Some warning\n", "OUT_OF_MEMORY", "stopped: train udlm: SLURM ended it: OUT_OF_MEMORY"),
        ("pairflow train: error: no\n", "FAILED", "failed: train udlm: pairflow train: error: no"),
        ("", "FAILED", f"failed: train udlm: {SILENT}"),
    ],
)
def test_a_job_of_slurm_that_is_tried_again(capsys, text, status, line):
    Path("a.log").write_text(text)
    lines = execution.JobLines(SimpleNamespace(dryrun=False), None)
    for _ in range(2):
        log(lines, LogEvent.JOB_INFO, **TRAIN)
        log(lines, LogEvent.JOB_ERROR, **TRAIN, rule_msg=STATUS.format(status))
        log(lines, None, msg="Trying to restart job 7.")
    log(lines, LogEvent.JOB_INFO, **TRAIN)
    log(lines, LogEvent.JOB_FINISHED, job_id=7)
    log(lines, LogEvent.PROGRESS, done=1, total=1)
    lines.close()
    said = capsys.readouterr().err.splitlines()
    assert said[:-1] == [f"{line} (a.log)", "trying again: train udlm"] * 2
    assert said[-1].startswith("1/1 train udlm, ")


def test_ctrl_c_that_ends_a_step_before_python_handles_it_here(monkeypatch, capsys):
    monkeypatch.setattr(execution.JobLines, "interrupted", threading.Event())
    lines = execution.JobLines(SimpleNamespace(dryrun=False), None)
    threading.Timer(0.2, execution.JobLines.interrupted.set).start()
    log(lines, LogEvent.JOB_ERROR, **TRAIN)
    log(lines, None, msg="Exiting because a job execution failed. At least one job did not complete")
    lines.close()
    assert capsys.readouterr().err == f"stopped: train: Ctrl-C ended it (a.log)\n{STOPPED}\n"


def log(handler, event, **facts):
    """Give the handler a record as Snakemake makes it."""
    record = logging.LogRecord("snakemake", logging.INFO, "", 0, None, (), None)
    vars(record).update(event=event, **facts)
    handler.handle(record)
