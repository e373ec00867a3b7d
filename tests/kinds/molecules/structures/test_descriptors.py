"""Properties of known drugs against the literature, scaffolds by hand."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pairflow.kinds.molecules.structures.descriptors import PROPERTIES, STRUCTURES, tabulate

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
IBUPROFEN = "CC(C)Cc1ccc(C(C)C(=O)O)cc1"
CAFFEINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
MORPHINE = "CN1CCC23C4C1Cc1ccc(O)c(c12)OC3C(O)C=C4"

# QED: Bickerton et al. 2012 and RDKit's tables; SA: easy for aspirin, hard for morphine (Ertl and
# Schuffenhauer 2009); logP: Wildman and Crippen's model; weight: IUPAC.
KNOWN = {
    ASPIRIN: {"qed": (0.55, 0.01), "sa": (1.6, 0.3), "logp": (1.31, 0.01), "weight": (180.16, 0.01)},
    IBUPROFEN: {"qed": (0.82, 0.01), "sa": (2.2, 0.3), "logp": (3.07, 0.01), "weight": (206.28, 0.01)},
    CAFFEINE: {"qed": (0.54, 0.01), "sa": (2.3, 0.4), "logp": (-1.03, 0.01), "weight": (194.19, 0.01)},
    MORPHINE: {"sa": (4.8, 0.6), "weight": (285.34, 0.01)},
}


@pytest.mark.parametrize("drug", KNOWN)
def test_drugs_have_their_published_values(drug):
    [values] = tabulate(PROPERTIES, [drug]).to_dict("records")
    for name, (expected, tolerance) in KNOWN[drug].items():
        assert values[name] == pytest.approx(expected, abs=tolerance), name


def test_scaffolds_are_rings_and_what_links_them():
    smiles = [ASPIRIN, "CCO", "C1CC1CCC1CC1", "Cc1ccc(Oc2ccccc2)cc1", "O=C1CCCCC1", "C[C@H]1CC[C@@H](O)C1"]
    scaffolds = tabulate(["scaffold"], smiles)["scaffold"]
    expected = ["c1ccccc1", "", "C1CC1CCC1CC1", "c1ccc(Oc2ccccc2)cc1", "O=C1CCCCC1", "C1CCCC1"]
    assert scaffolds.tolist() == expected


def test_odd_molecules_have_values_unreadable_ones_none_and_none_no_rows(capfd):
    odd = ["[H][H]", "*", "[Na+].[Cl-]", "[He]"]
    assert np.isfinite(tabulate(PROPERTIES, odd)).all(axis=None)
    assert np.isnan(tabulate(PROPERTIES, ["C1CC"])).all(axis=None)
    unreadable, readable = tabulate(STRUCTURES, ["C1CC", "C"]).to_dict("records")
    assert unreadable == {"fingerprint": bytes(256), "scaffold": ""}
    assert (any(readable["fingerprint"]), readable["scaffold"]) == (True, "")
    assert capfd.readouterr() == ("", "")
    assert tabulate(STRUCTURES, []).shape == (0, 2)


def processes_of(parent: int) -> set[int]:
    """All processes below one, by /proc."""
    below = {int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()}
    return below.union(*map(processes_of, below))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_its_step(number):
    """One huge molecule keeps a worker busy for longer than the test may take."""
    code = "from pairflow.kinds.molecules.structures.descriptors import tabulate\n"
    code += "if __name__ == '__main__':\n    tabulate(['scaffold'], ['C1CC1' * 900] * 10**5, 2)"
    step = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 60
    while len(workers := processes_of(step.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(3)  # until the workers have asked to end with their parent
    step.send_signal(number)
    assert step.wait() == -number
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]


def test_processes_change_nothing():
    smiles = [ASPIRIN, IBUPROFEN, CAFFEINE] * 200
    assert tabulate(STRUCTURES, smiles, 1).equals(tabulate(STRUCTURES, smiles, 2))
