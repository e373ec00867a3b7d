"""Models on the Hugging Face Hub: downloads of `hf:owner/name`, and uploads of a model with a card."""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pairflow._version import __version__
from pairflow.config.networks import SHIPPED
from pairflow.errors import InputError
from pairflow.extras import named_extras
from pairflow.generate.choice import kind_in, measured_at
from pairflow.published import CARD
from pairflow.training.model import Model

PREFIX = "hf:"
_ADDRESS = re.compile(r"hf:([\w.-]+/[\w.-]+)(?:@([^\s@]+))?")
_LOG_IN = "log in by `hf auth login`, or set HF_TOKEN"


def download(address: str, patterns: tuple[str, ...]) -> Path:
    """Download the files of a model that match one of `patterns`; return their folder in the hub's cache.

    `address` is hf:owner/name or hf:owner/name@revision. Raises InputError if there is no such model, or if
    the hub cannot be reached or refuses it.
    """
    if not (match := _ADDRESS.fullmatch(address)):
        raise InputError(f"{address}: expected hf:owner/name or hf:owner/name@revision")
    with _one_line_errors(address):
        from huggingface_hub import snapshot_download

        only: dict[str, Any] = {"allow_patterns": [*patterns], "ignore_patterns": ["*/*"]}
        return Path(snapshot_download(match[1], revision=match[2], endpoint=_endpoint(), **only))


def upload(folder: Path, model: Model, name: str, private: bool, token: str | None) -> str:
    """Upload the files in `folder`, with a card of `model` if there is none, to the repository `name`.

    Returns the address of its page. Raises InputError unless `name` is owner/name and the hub takes the
    files.
    """
    if not _ADDRESS.fullmatch(f"{PREFIX}{name}") or "@" in name:
        raise InputError(f"name: expected owner/name, found {name!r:.200}")
    if not (folder / CARD).exists():
        (folder / CARD).write_text(card(model, name), encoding="utf-8")
    with _one_line_errors(PREFIX + name), warnings.catch_warnings():
        from huggingface_hub import HfApi

        warnings.filterwarnings("ignore", ".*data file")  # of log.parquet and known.parquet
        api = HfApi(endpoint=_endpoint(), token=token, library_name="pairflow", library_version=__version__)
        page = api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=folder, commit_message="Upload a model of pairflow")
        return str(page)


def card(model: Model, name: str) -> str:
    """Return the README.md of a model: what it makes, how it was measured, how to load it as `name`."""
    rows, network = kind_in(model.folder).rows, model.network_settings["name"]
    symbols = "" if model.vocabulary_size is None else f", K = {model.vocabulary_size:,} symbols"
    measured = measured_at(model.folder)
    sampling = f", measured with `{measured.words}`" if measured else ""
    conditions = model.condition.properties if model.condition else ()
    named = "; ".join(f"{one.property}={' or '.join(one.names)}" for one in conditions)
    asked = f" Conditions: {named}." if named else ""
    own = "" if network in SHIPPED else f", network={type(model.network).__name__}"
    needs = f"The class `{type(model.network).__name__}` of its network is not part of it.\n\n" if own else ""
    return f"""---
library_name: pairflow
tags: [{model.flow}-flow-matching, {rows.replace(" ", "-")}]
---

# {name.partition("/")[2]}

A model of {rows} by pairflow {__version__}: `{model.method}`, N = {model.length:,}{symbols}{sampling}.{asked}

## Use

    pip install "pairflow[all]"

{needs}```python
import pairflow

model = pairflow.load("{PREFIX}{name}"{own})
rows = model.sample(16, nfe={measured.nfe if measured else 4})
```

`model.json` has its settings. Please add what the data are, how good the samples are, and the licence.
"""


def _endpoint() -> str | None:
    """Return HF_ENDPOINT, the hub's address, or None.

    huggingface_hub itself reads it only when it is imported.
    """
    return os.environ.get("HF_ENDPOINT")


@contextmanager
def _one_line_errors(address: str) -> Iterator[None]:
    """Turn errors of the hub or the connection in the block into an InputError of one line on `address`."""
    with named_extras():
        from huggingface_hub import errors
    reasons = {
        errors.RevisionNotFoundError: "the hub has no such revision of it",
        errors.GatedRepoError: f"its owner has to give you access: ask for it on its page, and {_LOG_IN}",
        errors.RepositoryNotFoundError: f"the hub has no such model; if it is private, {_LOG_IN}",
    }
    try:
        yield
    except Exception as error:
        for kind, reason in reasons.items():
            if isinstance(error, kind):
                raise InputError(f"{address}: {reason}") from None
        answer = getattr(error, "response", None)
        if getattr(answer, "status_code", None) in (401, 403):
            raise InputError(f"{address}: the hub refused it; {_LOG_IN}") from None
        cause = error.__cause__ or error
        first = (str(cause).splitlines() or [""])[0]
        raise InputError(f"{address}: {type(cause).__name__}: {first}") from None
