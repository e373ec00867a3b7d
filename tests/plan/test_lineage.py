"""Whether the files of an experiment belong to it."""

import pyarrow as pa
import pytest

from pairflow.artifacts import Metadata, write_table
from pairflow.config import Experiment
from pairflow.errors import InputError
from pairflow.kinds.images.kind import references
from pairflow.kinds.images.settings import CLASSIFIERS
from pairflow.plan import lineage
from pairflow.plan.jobs import jobs

OWN = f"classifier-{CLASSIFIERS['digits'][:8]}"


@pytest.mark.parametrize(("extractor", "belongs"), [(OWN, True), ("classifier-0123abcd", False)])
def test_statistics_by_a_classifier_other_than_that_of_pairflow_are_refused(
    tmp_path, miniature, extractor, belongs
):
    """As an experiment on the digits has that was run when it still trained a classifier of its own."""
    experiment = Experiment.model_validate(miniature(data={"source": "digits"}))
    path = references(tmp_path, experiment, "")["train"]
    path.parent.mkdir(parents=True)
    metadata = Metadata(kind="reference", parameters={"extractor": extractor, "count": 4})
    number, numbers = pa.array([0.0]), pa.array([[0.0]], pa.list_(pa.float64(), 1))
    moments = {"mean": number, "covariance": numbers, "held_mean": number, "held_covariance": numbers}
    write_table(path, pa.table(moments), metadata)
    table = jobs(tmp_path, experiment)
    assert lineage.stale(table) == [path] * (not belongs)
    if belongs:
        lineage.require(tmp_path, table)
        return
    message = f"train.parquet: from another configuration, extractor is {extractor} there and {OWN} in the"
    command = f"configuration; to make it again: pairflow run {tmp_path.name} -- --forcerun {path}$"
    with pytest.raises(InputError, match=f"{message} {command}"):
        lineage.require(tmp_path, table)
