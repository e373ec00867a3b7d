"""Long work in blocks: it resumes to the same bytes, and a damaged block is computed again."""

import os
import signal

import numpy as np
import pytest
from click.testing import CliRunner

from pairflow.artifacts import Provenance, read_provenance
from pairflow.errors import Interrupted
from pairflow.runtime import resume
from pairflow.runtime.resume import BlockwiseWork, StateFiles
from pairflow.steps.command import step

EVERY = [(0, 4), (4, 4), (8, 2)]
STOPS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def squares(block):
    first, count = block
    return np.arange(first, first + count) ** 2


def blocks(folder, seconds=300.0, provenance=None):
    return BlockwiseWork(EVERY, folder / "run-0", seconds, provenance or Provenance())


def stopped_at(block, number=signal.SIGTERM):
    """Squares, during which the process gets a signal at one block."""

    def at(each):
        if each == block:
            os.kill(os.getpid(), number)
        return squares(each)

    return at


def test_work_that_is_quickly_done_leaves_no_file(tmp_path):
    assert np.concatenate(blocks(tmp_path).run(squares)).tolist() == [i * i for i in range(10)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("signal")
@pytest.mark.parametrize("number", STOPS)
@pytest.mark.parametrize("stop", [0, 1, 2])
def test_stopped_work_is_saved_and_not_done_twice(tmp_path, stop, number):
    with pytest.raises(Interrupted, match=f"stopped after {stop} of 3 blocks, which are saved") as raised:
        blocks(tmp_path).run(stopped_at(EVERY[stop], number))
    assert raised.value.signal == number
    again = blocks(tmp_path)
    assert again.pending == EVERY[stop:]
    done = []
    made = again.run(lambda block: done.append(block) or squares(block))
    assert done == EVERY[stop:]
    assert np.concatenate(made).tolist() == [i * i for i in range(10)]


@pytest.mark.promise("signal")
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_warning_saves_what_is_made_and_the_work_goes_on(tmp_path, at):
    work, found = blocks(tmp_path), []

    def warned(block):
        done = stopped_at(EVERY[at], signal.SIGUSR1)(block)
        found.append(len(list(tmp_path.rglob("*.block"))))
        return done

    assert np.concatenate(work.run(warned)).tolist() == [i * i for i in range(10)]
    assert found == [0] * at + [at] * (3 - at)
    assert blocks(tmp_path).pending == EVERY[at:]


@pytest.mark.promise("signal")
@pytest.mark.parametrize("seconds", [0.0, 300.0])
def test_signals_during_a_save_leave_it_whole(tmp_path, monkeypatch, seconds):
    """A warning changes nothing there; SIGTERM twice, as SLURM's srun sends it, stops once."""
    save = StateFiles.save

    def knocked(finished, name, write):
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGTERM, signal.SIGUSR1):
            os.kill(os.getpid(), number)
        save(finished, name, write)

    monkeypatch.setattr(StateFiles, "save", knocked)
    with pytest.raises(Interrupted, match="stopped after") as raised:
        blocks(tmp_path, seconds).run(stopped_at(EVERY[1]))
    assert raised.value.signal == signal.SIGTERM
    assert blocks(tmp_path).pending == EVERY[1:]
    assert not list(tmp_path.rglob("*.partial"))


def test_an_error_loses_no_finished_block(tmp_path):
    def fails(block):
        if block == EVERY[2]:
            raise ZeroDivisionError
        return squares(block)

    with pytest.raises(ZeroDivisionError):
        blocks(tmp_path).run(fails)
    assert blocks(tmp_path).pending == EVERY[2:]


def test_blocks_are_saved_at_intervals_with_what_they_have_cost(tmp_path):
    """seconds = 0: each block on its own, so that a kill loses the one that is at work."""
    found = []

    def work(block):
        found.append(len(list(tmp_path.rglob("*.block"))))
        return squares(block)

    provenance = Provenance()
    provenance.add({"seconds": 5000.0, "device_seconds": 7000.0})
    blocks(tmp_path, 0.0, provenance).run(work)
    assert found == [0, 1, 2]
    later = Provenance()
    blocks(tmp_path, provenance=later)
    later.write(tmp_path / "out")
    facts = read_provenance(tmp_path / "out")
    assert 5000 < facts["seconds"] < 5100
    assert 7000 < facts["device_seconds"] < 7100


def saved(tmp_path):
    """The files of a finished work in blocks, the last of which was never saved."""
    blocks(tmp_path, 0.0).run(squares)
    return [tmp_path / "run-0" / f"{first}-{count}.block" for first, count in EVERY[:2]]


@pytest.mark.promise("state")
@pytest.mark.parametrize("place", [0, 40, -1])
@pytest.mark.parametrize("harm", ["flip", "cut"])
def test_a_block_with_one_flipped_bit_or_cut_short_is_made_again(tmp_path, harm, place):
    first, _ = saved(tmp_path)
    content = bytearray(first.read_bytes())
    content[place] ^= 4
    first.write_bytes(content if harm == "flip" else content[:place])
    assert blocks(tmp_path).pending == [EVERY[0], EVERY[2]]


@pytest.mark.promise("state")
def test_swapped_blocks_are_made_again(tmp_path):
    first, second = saved(tmp_path)
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    assert blocks(tmp_path).pending == EVERY


@pytest.mark.promise("state")
def test_states_of_other_code_are_not_used(tmp_path, monkeypatch):
    options, out = resume.ResumeOptions(), tmp_path / "out.parquet"
    before = options.state_folder(out, "pair", {"seed": 0})
    assert before == options.state_folder(out, "pair", {"seed": 0})
    monkeypatch.setattr(resume, "code_digest", lambda: "of other files")
    assert options.state_folder(out, "pair", {"seed": 0}) != before


def test_the_code_of_states_is_that_of_all_files(tmp_path, monkeypatch):
    package = tmp_path / "pairflow"
    (package / "runtime").mkdir(parents=True)
    monkeypatch.setattr(resume, "__file__", str(package / "runtime/resume.py"))
    found = set()
    for name, text in (("a.py", "x = 1"), ("a.py", "x = 2"), ("b.py", ""), ("gpu.cu", "//"), ("gpu.txt", "")):
        (package / name).write_text(text)
        resume.code_digest.cache_clear()
        found.add(resume.code_digest())
    resume.code_digest.cache_clear()
    assert len(found) == 4  # a text file is no code


def test_a_damaged_record_of_costs_makes_them_unknown_and_stops_nothing(tmp_path):
    saved(tmp_path)
    (tmp_path / "run-0" / "spent.provenance.json").write_text('{"seconds": 1')
    provenance = Provenance()
    assert blocks(tmp_path, provenance=provenance).pending == EVERY[2:]
    provenance.write(tmp_path / "out")
    assert read_provenance(tmp_path / "out")["seconds"] is None


@pytest.mark.promise("signal")
def test_a_second_interrupt_is_not_held_back(tmp_path, monkeypatch):
    monkeypatch.setattr(BlockwiseWork, "_save", lambda self: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        blocks(tmp_path).run(stopped_at(EVERY[1], signal.SIGINT))


@pytest.mark.promise("signal")
def test_signals_are_handed_back(tmp_path):
    every = [*STOPS, signal.SIGUSR1]
    before = [signal.getsignal(number) for number in every]
    blocks(tmp_path).run(stopped_at(EVERY[1], signal.SIGUSR1))
    with pytest.raises(Interrupted):
        blocks(tmp_path / "stopped").run(stopped_at(EVERY[0]))
    assert [signal.getsignal(number) for number in every] == before


@pytest.mark.promise("signal")
def test_nohup_keeps_work_from_stopping_when_the_terminal_closes(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        made = blocks(tmp_path).run(stopped_at(EVERY[1], signal.SIGHUP))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert np.concatenate(made).tolist() == [i * i for i in range(10)]


@pytest.mark.promise("signal")
def test_ctrl_c_outside_the_work_is_one_line_with_its_exit_code():
    @step()
    def main():
        raise KeyboardInterrupt

    run = CliRunner().invoke(main)
    assert (run.exit_code, run.output) == (128 + signal.SIGINT, "pairflow test_resume: stopped\n")


@pytest.mark.promise("signal")
def test_a_warning_ends_no_step_that_has_nothing_to_save():
    before, done = signal.getsignal(signal.SIGUSR1), []

    @step()
    def main():
        os.kill(os.getpid(), signal.SIGUSR1)
        done.append(True)

    main.main([], standalone_mode=False)
    assert done == [True]
    assert signal.getsignal(signal.SIGUSR1) == before
