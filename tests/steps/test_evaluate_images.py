"""Image metrics from token rows to metric rows: the steps, their refusals, and what the rules pass on."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from pairflow.artifacts import Metadata, digest, read_table, token_column, write_table
from pairflow.config import Experiment
from pairflow.errors import InputError
from pairflow.kinds.images import extractors
from pairflow.kinds.images import rows as image_rows
from pairflow.kinds.images.extractors import DinoV2
from pairflow.kinds.images.kind import KIND
from pairflow.kinds.images.measures import nearest
from pairflow.kinds.images.prepare import to_images
from pairflow.kinds.images.settings import CLASSIFIERS, ExtractorSettings, extractor_settings
from pairflow.metrics.frechet import Moments, frechet_distance
from pairflow.metrics.measured import draw_trials
from pairflow.plan.jobs import jobs

SHAPE = [1, 8, 8]
DRAW = np.random.default_rng(0)
TEMPLATES = DRAW.integers(0, 2, (3, 64), dtype=np.uint8)


def drawn(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of three templates, with 10 % of the pixels flipped; and which one."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 3, rows)
    return TEMPLATES[labels] ^ (draw.random((rows, 64)) < 0.1).astype(np.uint8), labels


def write(path: Path, tokens, labels=None, kind="tokens", levels=2, trials=None, **facts) -> Path:
    made = {"vocabulary": "v", "shape": SHAPE if kind == "tokens" else None, "length": tokens.shape[1]}
    columns = {"tokens": token_column(tokens, levels)}
    if kind == "samples":
        columns["trial"] = pa.array(trials, pa.int32())
    else:
        columns["label"] = pa.array([None] * len(tokens) if labels is None else labels, pa.int32())
    write_table(path, pa.table(columns), Metadata(kind=kind, vocabulary_size=levels, **made | facts))
    return path


def samples(path: Path, tokens, trials, **facts) -> Path:
    of_trial = int((np.asarray(trials) == 0).sum())
    facts = {"parameters": {"method": "udlm", "nfe": 4, "seed": 0, "samples": of_trial}, **facts}
    return write(path, tokens, kind="samples", trials=trials, **facts)


@pytest.fixture(scope="module")
def call(step):
    """Run a step on the images of a folder, some of its options changed; returns the run and its output."""

    def run(name: str, folder: Path, **changes: object):
        files = {"tokens": folder / "train.parquet", "validation": folder / "validation.parquet"}
        files |= {f"{of}_reference": folder / f"{of}-reference.parquet" for of in ("train", "test")}
        given = {
            "reference": {"tokens": files["tokens"], "out": files["train_reference"]},
            "floor": {**files, "out": folder / "floor.parquet", "samples": 70, "trials": 2},
            "evaluate": {**files, "out": folder / "metrics.parquet", "samples": folder / "samples.parquet"},
        }[name]
        given |= {} if "extractor" in changes else {"weights": "digits"}
        kind = [] if name == "reference" else ["images"]
        options = given | {"quiet": True, "threads": 1} | changes
        return step(name, *kind, **options), options["out"]

    return run


@pytest.fixture(scope="module")
def run(call):
    """Run a step to its end; returns its output."""

    def finish(*given: object, **changes: object) -> Path:
        done, out = call(*given, **changes)
        assert done.exit_code == 0, done.output
        return out

    return finish


@pytest.fixture(scope="module")
def data(tmp_path_factory, run) -> Path:
    """A folder with train.parquet (301 images) and validation.parquet (99), and their statistics."""
    folder = tmp_path_factory.mktemp("data")
    write(folder / "train.parquet", *drawn(301, 1))
    write(folder / "validation.parquet", *drawn(99, 2))
    run("reference", folder)
    held_out = {"tokens": folder / "validation.parquet", "out": folder / "test-reference.parquet"}
    run("reference", folder, **held_out)
    draw = np.random.default_rng(3)
    tokens = np.concatenate([drawn(70, 4)[0], draw.integers(0, 2, (70, 64), dtype=np.uint8)])
    samples(folder / "samples.parquet", tokens, [0] * 70 + [1] * 70)
    return folder


def metric(path: Path, name: str, **where) -> list[float]:
    rows = pd.read_parquet(path)
    for key, value in {"metric": name, **where}.items():
        rows = rows[rows[key] == value]
    return rows["value"].tolist()


def test_the_rows_of_samples_are_the_arithmetic_on_their_features(data, run):
    out = run("evaluate", data)
    before = digest(out)
    assert digest(run("evaluate", data)) == before
    rows = pd.read_parquet(out)
    name = f"classifier-{CLASSIFIERS['digits'][:8]}"
    shared = {"method": "udlm", "nfe": 4, "seed": 0, "evaluation": "main", "samples": 70, "extractor": name}
    assert all((rows[key] == value).all() for key, value in shared.items())
    counted = rows.fillna({"trial": -1}).groupby(["metric", "trial"])["reference"].apply(list).to_dict()
    of_trial = {"fd": ["train", "test"], "nn_l2": ["train"], "nn_copies": ["train"]}
    expected = {(key, trial): value for key, value in of_trial.items() for trial in (0, 1)}
    assert counted == expected | {("rank_deficient", -1): ["train", "test"]}
    extractor = extractors.load(ExtractorSettings(weights="digits"))
    images = [image_rows.read_images(data / f"{name}.parquet") for name in ("train", "validation")]
    train, test = (extractor(each[:])[0] for each in images)
    tokens = np.stack(pd.read_parquet(data / "samples.parquet")["tokens"])
    for trial, part in enumerate((tokens[:70], tokens[70:])):
        found = extractor(to_images(part, SHAPE, 2))[0]
        for of, real in {"train": train, "test": test}.items():
            [distance] = metric(out, "fd", trial=trial, reference=of)
            ours, theirs = Moments.from_features(found), Moments.from_features(real)
            assert distance == pytest.approx(frechet_distance(ours, theirs), rel=1e-5)
        [distance] = metric(out, "nn_l2", trial=trial)
        assert distance == pytest.approx(255 * nearest(part, images[0].tokens)[0].mean())
    likely, noise = metric(out, "fd", reference="train")
    assert 5 * likely < noise
    assert read_table(out, "metrics")[1].inputs["samples"] == digest(data / "samples.parquet")


def test_copies_of_training_images_are_counted(data, run, tmp_path):
    tokens = np.concatenate([drawn(301, 1)[0][:50], 1 - drawn(301, 1)[0][:30]])
    path = samples(tmp_path / "copies.parquet", tokens, [0] * 80)
    out = run("evaluate", data, samples=path, out=tmp_path / "metrics.parquet")
    assert metric(out, "nn_copies") == [50 / 80]


def test_real_against_real_is_near_and_has_no_steps(data, run):
    out = run("floor", data, evaluation="check")
    before = digest(out)
    assert digest(run("floor", data, evaluation="check")) == before
    rows = pd.read_parquet(out)
    assert all((rows[key] == value).all() for key, value in {"method": "data", "evaluation": "check"}.items())
    assert rows["nfe"].isna().all()
    noise = metric(run("evaluate", data), "fd", reference="train")[1]
    found = metric(out, "fd")
    assert len(found) == 4
    assert max(found) < noise / 5
    assert len(metric(out, "nn_l2", reference="train")) == 2


def test_the_floor_of_the_digits_is_the_same_on_every_machine(run, done, tmp_path):
    """By the classifier that comes with pairflow, in float64: two machines differ in the 11th digit."""
    files = {name: tmp_path / f"{name}.parquet" for name in ("train", "validation")}
    done("preprocess", "images", source="digits", **files, vocabulary=tmp_path / "v.json", quiet=True)
    for name, of in (("train", "train"), ("test", "validation")):
        run("reference", tmp_path, tokens=files[of], out=tmp_path / f"{name}-reference.parquet")
    out = run("floor", tmp_path, samples=1000)
    found = [metric(out, "fd", reference=reference) for reference in ("train", "test")]
    assert np.ravel(found) == pytest.approx((0.0744040765, 0.3732289156), rel=1e-6)


def test_the_halves_have_nothing_in_common(experiment):
    """The draws are of one, the distance is from the other."""
    ours, theirs = image_rows.halves(301)
    assert sorted([*ours, *theirs]) == list(range(301))
    assert len(theirs) == 151
    settings = KIND.floor.settings_of(Experiment.model_validate(experiment()), "main")
    for _, rows in draw_trials(settings, "train", ours):
        assert len(np.unique(rows)) == 70
        assert not set(rows) & set(theirs)


def test_fewer_real_images_than_samples_are_one_trial_of_all(data, run, tmp_path):
    out = run("floor", data, samples=1000, trials=5, out=tmp_path / "floor.parquet")
    rows = pd.read_parquet(out)
    assert rows[rows["metric"] == "fd"]["samples"].tolist() == [150, 150]
    assert rows[rows["metric"] == "nn_l2"]["samples"].tolist() == [99]


def test_too_few_samples_are_warned_of_in_a_row_and_on_stderr(data, call, run, tmp_path):
    path = samples(tmp_path / "few.parquet", drawn(64, 5)[0], [0] * 64)
    found, out = call("evaluate", data, samples=path, out=tmp_path / "metrics.parquet")
    assert found.exit_code == 0, found.output
    warning = "warning: 64 samples and 301 train images for 64 features: a covariance is singular, "
    assert found.output.startswith(f"pairflow evaluate: {warning}")
    assert metric(out, "rank_deficient") == [1, 1]
    assert metric(run("evaluate", data), "rank_deficient") == [0, 0]


def test_mirror_images_are_neighbours_but_no_reference(tmp_path, data):
    """Of 40 rows the last 20 mirror the first: statistics are of 20, the nearest are of all."""
    tokens = drawn(20, 6)[0]
    both = np.concatenate([tokens, tokens.reshape(-1, 8, 8)[:, :, ::-1].reshape(-1, 64)])
    path = write(tmp_path / "flipped.parquet", both, parameters={"flips": True}, split="train")
    extractor = extractors.load(ExtractorSettings(weights="digits"))
    found = image_rows.measure_statistics(extractor, image_rows.read_images(path), progress=False)
    assert found.whole.count == 20
    mean = extractor(image_rows.read_images(path)[:20])[0].mean(0)
    np.testing.assert_allclose(found.whole.mean, mean, rtol=1e-5, atol=1e-6)
    test = write(tmp_path / "test.parquet", both, parameters={"flips": True}, split="validation")
    assert image_rows.read_images(test).originals == 40  # test images have no mirror images


@pytest.mark.parametrize(("levels", "unit"), [(2, 255), (4, 85), (16, 17), (256, 1), (8, 1)])
def test_neighbours_are_measured_in_pixel_values(levels, unit, tmp_path):
    tokens = np.random.default_rng(0).integers(0, levels, (30, 64), dtype=np.uint8)
    images = image_rows.read_images(write(tmp_path / "x.parquet", tokens, levels=levels))
    assert images.unit == unit
    pixels = images[:].reshape(30, -1)
    assert images[:].shape == (30, 8, 8, 1)
    np.testing.assert_array_equal(images.values * np.int64(images.unit), pixels)


@pytest.fixture
def with_references(data, run, tmp_path):
    """The options of an extractor, and its statistics of the real images, made in a folder."""

    def made(**extractor) -> dict:
        files = {"train": data / "train.parquet", "test": data / "validation.parquet"}
        return extractor | {
            f"{name}_reference": run("reference", data, **extractor, tokens=file, out=tmp_path / name)
            for name, file in files.items()
        }

    return made


def test_inception_with_the_published_checksum_gives_fid_and_is(
    data, run, with_references, monkeypatch, tmp_path
):
    """A stand-in network, so that rows and not weights are tested."""
    directions = torch.from_numpy(np.random.default_rng(0).normal(size=(192, 5)).astype(np.float32))

    def network(images):
        features = images.flatten(1) @ directions
        return features, torch.softmax(features, dim=1)

    def stand_in(settings, device):
        return extractors.Extractor("inception", 5, network, distance="fid")

    monkeypatch.setitem(extractors.EXTRACTORS, "inception", stand_in)
    options = with_references(extractor="inception")
    out = run("evaluate", data, **options, out=tmp_path / "metrics.parquet")
    rows = pd.read_parquet(out)
    assert set(rows["metric"]) == {"fid", "is", "nn_l2", "nn_copies", "rank_deficient"}
    assert (rows["extractor"] == "inception").all()
    assert all(1 < value < 5 for value in metric(out, "is"))
    assert rows[rows["metric"] == "is"]["reference"].isna().all()
    assert metric(run("floor", data, **options, out=tmp_path / "floor.parquet"), "is")


def test_dinov2_compares_by_cosine_with_every_training_image(data, run, with_references, tmp_path):
    torch.manual_seed(0)
    network = DinoV2(width=16, depth=1, hidden=16, patch=112, positions=5)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    path = tmp_path / "tiny.pth"
    torch.save(network.state_dict(), path)
    options = with_references(extractor="dinov2", weights=path, sha256=digest(path))
    copies = samples(tmp_path / "copies.parquet", drawn(301, 1)[0][:40], [0] * 40)
    # a further extractor of an experiment leaves the pixels to the first one
    options["settings"] = {"pixels": False}
    out = run("evaluate", data, **options, samples=copies, out=tmp_path / "m.parquet")
    assert metric(out, "nn_cosine", reference="train") == [pytest.approx(1, abs=1e-5)]
    floors = run("floor", data, **options, out=tmp_path / "floor.parquet")
    assert len(metric(floors, "nn_cosine")) == 2
    assert 0.5 < max(metric(floors, "nn_cosine")) < 1
    for path in (out, floors):
        assert set(pd.read_parquet(path)["metric"]) == {"fd", "nn_cosine", "rank_deficient"}
        assert read_table(path, "metrics")[1].parameters["pixels"] is False


def test_what_does_not_fit_is_refused_by_name(data, call, refused, tmp_path):
    tokens = drawn(20, 7)[0]
    plain = write(tmp_path / "plain.parquet", tokens, shape=None)
    other = write(tmp_path / "other.parquet", tokens, vocabulary="w")
    wide = write(tmp_path / "wide.parquet", tokens, shape=[1, 4, 16])
    short = samples(tmp_path / "short.parquet", tokens[:, :60], [0] * 20)
    swapped, out = {"train_reference": data / "test-reference.parquet"}, tmp_path / "never.parquet"
    for step, text, changes in (
        ("reference", "plain.parquet: holds no images; its metadata have no shape", {"tokens": plain}),
        ("floor", "do not belong together: vocabulary w against v", {"tokens": other}),
        ("reference", "made for images of 8 x 8 x 1, found 4 x 16 x 1", {"tokens": wide}),
        ("evaluate", "short.parquet: expected (N, K) = (64, 2) as in ", {"samples": short}),
        ("evaluate", "made from a file other", swapped),
        ("evaluate", "train-reference.parquet: made by the extractor classifier-", {"weights": "mnist"}),
    ):
        refused(call(step, data, **changes, out=out)[0], step, text)
        assert not out.exists()


@pytest.fixture
def experiment(miniature):
    evaluations = {"main": {"nfe": [1], "samples": 70, "trials": 2}, "check": {"nfe": [2]}}
    images = {"data": {"source": "digits"}, "features": None, "evaluations": evaluations}
    return lambda **changes: miniature(**(images | changes))


def test_each_extractor_has_jobs_and_files_of_its_own(experiment):
    """The first has the same files as if it were the only one, and compares pixels: it need not run again."""
    several = Experiment.model_validate(experiment(features=["inception", "dinov2", "classifier"]))
    alone = Experiment.model_validate(experiment(features="inception"))
    table, table_alone = (
        {job.record: job for job in jobs(Path("r"), plan) if job.rule in ("reference", "floor", "evaluate")}
        for plan in (several, alone)
    )
    assert all(table[path].settings == job.settings for path, job in table_alone.items())
    assert len(table) == 3 * len(table_alone)
    floor = table[Path("r/reference/floor-check-dinov2.parquet")]
    assert (floor.settings.extractor, floor.settings.pixels) == ("dinov2", False)
    assert floor.inputs["train_reference"] == Path("r/reference/train-dinov2.parquet")
    assert table[Path("r/seed0/metrics/udlm/main/nfe1-classifier.parquet")].settings.weights == "digits"
    samples = [job for job in jobs(Path("r"), several) if job.rule == "sample"]
    assert len(samples) == sum(job.rule == "sample" for job in jobs(Path("r"), alone))
    with pytest.raises(InputError, match="features: no extractor 'dinov2'"):
        extractor_settings(alone, "dinov2")
