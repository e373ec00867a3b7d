"""Input from outside is data: no step runs it, unpickles it or passes it to a shell."""

import ast
import pickle
import re
from pathlib import Path

import pytest

from pairflow.config import Configuration, check
from pairflow.errors import InputError
from pairflow.kinds.images.data_sets import DATA_SETS as IMAGES

REPOSITORY = Path(__file__).parent.parent
SOURCES = sorted((REPOSITORY / "pairflow").rglob("*.py"))
RULES = sorted([REPOSITORY / "Snakefile", *(REPOSITORY / "rules").glob("*.smk")])
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "tarfile"}
FORBIDDEN_CALLS = {
    *("eval", "exec", "compile", "os.system", "os.popen", "pd.read_pickle", "pandas.read_pickle"),
    *("shutil.unpack_archive", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "torch.jit.load"),
    *("torch.hub.load", "joblib.load"),
}


def calls(path: Path) -> list[tuple[str, ast.Call]]:
    """The calls in a module, each with the dotted name of its function."""
    tree = ast.parse(path.read_text())
    return [(ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def keyword(call: ast.Call, name: str):
    """The literal value of a call's keyword argument; None where it is absent."""
    return next((ast.literal_eval(given.value) for given in call.keywords if given.arg == name), None)


def test_no_module_loads_pickles_or_runs_text_as_code():
    for path in SOURCES:
        lm1b = path.parts[-2:] == ("text", "data_sets.py")
        in_memory = {"tarfile"} if lm1b else set()  # members are read, never unpacked
        assert not imported(path) & FORBIDDEN_MODULES - in_memory, path
        for name, call in calls(path):
            assert name not in FORBIDDEN_CALLS, (path, name)
            assert not name.endswith((".extractall", "archive.extract", ".extract_archive")), (path, name)
            if name == "torch.load":
                assert keyword(call, "weights_only") is True, path
            if name in ("np.load", "numpy.load"):
                assert keyword(call, "allow_pickle") is False, path
            if name.startswith("subprocess."):
                assert not keyword(call, "shell"), path
                assert isinstance(call.args[0], ast.Name | ast.List), path


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_rules_quote_every_file_and_parameter(path):
    """Only numbers and names that the wildcard constraints restrict may stand without quotes."""
    harmless = r"threads|resources\.\w+|wildcards\.(experiment|extractor|seed|shard|shards)"
    plain = rf"\{{(?!({harmless})\}})[a-z_.]+\}}"
    shells = re.findall(r"shell:\n((?:\s+\".*\"\n)+)", path.read_text())
    for shell in shells:
        unquoted = [text for text in re.findall(r"\{[^{}]+\}", shell) if not text.endswith(":q}")]
        assert [text for text in unquoted if re.fullmatch(plain, text)] == []


class Payload:
    """Unpickling this creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.promise("code")
def test_a_pickle_in_place_of_cifar10_is_not_loaded(tmp_path, monkeypatch):
    """torchvision unpickles the batches, but only after it has compared their checksums."""
    folder, proof = tmp_path / "cifar-10-batches-py", tmp_path / "pwned"
    folder.mkdir()
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta"]
    for name in names:
        (folder / name).write_bytes(pickle.dumps(Payload(proof)))
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(tmp_path))
    with pytest.raises(InputError, match="corrupt"):
        IMAGES["cifar10"].load()
    assert not proof.exists()
    pickle.loads((folder / names[0]).read_bytes())
    assert proof.exists()  # the payload works


@pytest.mark.promise("code")
def test_a_pickle_in_an_array_file_is_not_loaded(step, refused, tmp_path):
    import numpy as np

    proof = tmp_path / "pwned"
    np.save(tmp_path / "rows.npy", np.array([Payload(proof)], dtype=object), allow_pickle=True)
    files = {"tokens": tmp_path / "rows.npy", "out": tmp_path / "pairs.parquet"}
    refused(step("pair", **files, vocabulary_size=4), "pair", "rows.npy: not a .npy array")
    assert not proof.exists()


@pytest.mark.promise("code")
@pytest.mark.parametrize("name", ["<script>", "../up", "$(touch pwned)", "a\n", "a{seed}", ""])
def test_names_of_experiments_and_evaluations_are_restricted(name, miniature):
    for experiments in ({name: miniature()}, {"mini": miniature(evaluations={name: {"nfe": [1]}})}):
        with pytest.raises(InputError, match="pattern"):
            check(Configuration, {"experiments": experiments}, "test")
