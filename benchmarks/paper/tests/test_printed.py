import math
from collections import Counter

from benchmarks.paper.costs import MINUTES
from benchmarks.paper.printed import DATASETS, METRICS, TITLES, best, parse_name, printed
from pairflow.config import parse_method
from pairflow.kinds.registry import SETTINGS


def one(table: str, name: str, nfe: int | None, metric: str | None = None, dataset: str | None = None):
    [found] = [
        value
        for value in printed()
        if (value.table, value.name, value.nfe) == (table, name, nfe)
        and metric in (None, value.metric)
        and dataset in (None, value.dataset)
    ]
    return found


def test_all_values_are_there_once_and_readable():
    assert len(printed()) == len(set(printed())) == 1284
    assert {value.table for value in printed()} == set(TITLES)
    assert Counter(value.table for value in printed())["cifar10_results"] == 2 * 8 * 11
    keys = Counter((v.table, v.dataset, v.metric, v.name, v.nfe) for v in printed())
    assert max(keys.values()) == 1
    for value in printed():
        assert math.isfinite(value.value), value
        assert value.text == f"{value.value:.{value.digits}f}", value
        assert value.spread == "" or value.std >= 0, value
        assert value.nfe is None or value.nfe in {2**k for k in range(11)} | {256, 1000}, value
        assert value.better in ("higher", "lower", ""), value
        assert value.metric in METRICS or value.metric in ("N", "K"), value


def test_known_values():
    found = one("qm9_results_valid", "MDLM", 1)
    assert (found.value, found.std, found.digits, found.better) == (51.4, 5.7, 1, "higher")
    found = one("cifar10_results", "PairFlow+DCD", 1024, "is")
    assert (found.dataset, found.method) == ("cifar10", "pairflow+dcd")
    found = one("appendix_cifar_fid_check", "PairFlow", 1000, "fid_50k")
    assert (found.value, found.digits) == (28.07, 2)
    assert math.isnan(found.std)
    found = one("computation_cost_table", "", None, "N", "mnist_binary")
    assert (found.value, found.note) == (768, "printed 768; 28x28 is 784")


def test_the_estimate_has_the_papers_minutes():
    names = {"base": "base", "DCD": "dcd", "ReDi": "redi", "PairFlow": "pairflow"}
    minutes = {}
    for value in printed():
        if value.metric == "runtime_minutes":
            minutes.setdefault(value.dataset, {})[names[value.name]] = value.value
    assert minutes == MINUTES


NAMES = {
    **{"MDLM": "mdlm", "Random": "random", "PairFlow (Full)": "pairflow", "forward velocity": "forward"},
    **dict.fromkeys(("base", "DCD", "ReDi", "")),
    **{f"PairFlow ({number}-Sub)": f"pairflow-sub{number}" for number in (2, 4, 8)},
}
for name, method in (("UDLM", "udlm"), ("PairFlow", "pairflow")):
    NAMES |= {f"{name}{part}": method + part.lower() for part in ("", "+DCD", "+ReDi")}
    NAMES |= {f"{name}+ReFlow x{rounds}": method + rounds * "+redi" for rounds in (1, 2, 3)}
NAMES |= {"CondOT": "condot", "CondOT+RF": "condot+rf", "PairFlow+RF": "pairflow+rf"}


def test_every_method_of_the_papers_data_has_its_name_here():
    ours = {value.name: value.method for value in printed() if value.dataset in DATASETS}
    assert ours == NAMES
    for name in filter(None, set(NAMES.values()) - {"forward"}):
        assert parse_method(name).name == name


def test_all_printed_data_have_experiments_here():
    assert {value.dataset for value in printed()} == {*DATASETS}
    assert parse_name("CondOT+DDPM") is None
    sources = dict.fromkeys(name.partition("_n")[0] if name.startswith("lm1b") else name for name in DATASETS)
    # Two moons are a figure without numbers.
    of_paper = {name for settings in SETTINGS for name in settings.paper}
    assert of_paper - {"two_moons"} == {*sources} - {"mnist_continuous"} | {"mnist"}


def test_redi_of_two_data_sets_is_confounded():
    marked = Counter((value.dataset, value.name) for value in printed() if value.confounded)
    assert {dataset for dataset, _ in marked} == {"qm9", "cifar10"}
    assert marked["cifar10", "PairFlow+ReDi"] == marked["cifar10", "UDLM+ReDi"] == 22
    assert marked["qm9", "PairFlow+ReDi"] == marked["qm9", "UDLM+ReFlow x3"] == 21
    assert "from scratch" in one("cifar10_results", "UDLM+ReDi", 1, "fid").confounded
    assert not one("zinc_results_valid", "UDLM+ReDi", 1).confounded
    assert not one("qm9_results_valid", "PairFlow+DCD", 1).confounded


def test_the_best_of_a_column_by_its_direction():
    column = [one("binary_mnist_results", name, 1) for name in ("MDLM", "PairFlow", "PairFlow+ReDi")]
    assert [value.name for value in best(column)] == ["PairFlow+ReDi"]
    column = [one("qm9_results_valid", name, 1) for name in ("MDLM", "PairFlow")]
    assert [value.name for value in best(column)] == ["PairFlow"]
    assert best(column[:1]) == set()
    assert best(value for value in printed() if value.metric == "pairing_minutes") == set()
