"""Each kind of data loads its own packages only, and says to the workflow what it is asked for."""

import subprocess
import sys

import pytest

from pairflow.config import DemandSettings
from pairflow.kinds import KINDS, load_kind, on_demand_kinds
from pairflow.kinds.kind import Kind
from pairflow.kinds.registry import SETTINGS

HEAVY = {  # packages -> the kind that they are for
    "rdkit": "molecules",
    "selfies": "molecules",
    "torchvision": "images",
    "pytorch_fid": "images",
    "tokenizers": "text",
    "transformers": "text",
}


PLAIN = tuple(kind for kind in KINDS if kind not in HEAVY.values())  # these need none of the packages


@pytest.mark.parametrize("kinds", [PLAIN, *((kind,) for kind in KINDS if kind not in PLAIN)], ids="+".join)
def test_a_kind_imports_without_the_packages_of_others(kinds):
    """All of its modules, in a fresh interpreter that cannot import the packages of the others."""
    others = [package for package, owner in HEAVY.items() if owner not in kinds]
    code = (
        "import importlib, pkgutil, sys\n"
        f"for name in {others}: sys.modules[name] = None\n"
        f"for name in {kinds}:\n"
        "    kind = importlib.import_module('pairflow.kinds.' + name)\n"
        "    for module in pkgutil.walk_packages(kind.__path__, kind.__name__ + '.'):\n"
        "        importlib.import_module(module.name)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_the_contract_is_small_and_every_member_is_for_several_kinds():
    kinds = [type(load_kind(name)) for name in KINDS]
    members = [name for name in {**vars(Kind), **Kind.__annotations__} if not name.startswith("_")]
    assert len(members) <= 26
    for name in members:
        assert sum(name in vars(kind) for kind in kinds) > 1, name


def test_samples_on_demand_have_the_settings_of_all_kinds():
    fields = {name for settings in SETTINGS for name in settings.demand.model_fields}
    assert {*DemandSettings.model_fields} == fields
    for kind in on_demand_kinds():
        assert kind.delivery.supports <= {*kind.settings.demand.model_fields}
