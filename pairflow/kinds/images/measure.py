"""Measures samples of images, and for reference real images; the results are metric rows."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from pairflow.artifacts import token_array
from pairflow.errors import InputError
from pairflow.kinds.images import extractors
from pairflow.kinds.images.extractors import Extractor
from pairflow.kinds.images.measures import inception_score, most_similar, nearest
from pairflow.kinds.images.rows import ImageRows, ReferenceStatistics, extract, halves
from pairflow.kinds.images.settings import ComparisonSettings, ExtractorSettings, FloorSettings, RealImages
from pairflow.metrics.continuous import average_paths
from pairflow.metrics.frechet import Moments, frechet_distance
from pairflow.metrics.measured import Machine, Measurement, RealRows, draw_trials
from pairflow.runtime.device import choose

Rows = list[dict[str, object]]


def measure_samples(
    settings: ComparisonSettings, samples: Path, files: RealImages, machine: Machine
) -> Measurement:
    device = choose(machine.device, machine.threads, machine.provenance)
    compared = ImageComparison.read(files, settings, device)
    train, extractor = compared.train, compared.extractor.name
    table, metadata = compared.real.read_samples(samples)
    metadata.require_same_vocabulary(train.metadata.vocabulary, samples, train.path)
    drawn = replace(train, path=samples, tokens=token_array(table["tokens"]))

    def measure(rows: np.ndarray) -> Rows:
        features, measured = compared.describe(drawn, rows, machine.progress)
        if settings.pixels:
            measured += compared.neighbours(drawn.values[rows])
        for name, part in compared.references.items():
            measured.append(compared.distance(features, name, part.whole))
        return measured + compared.likeness(features) + average_paths(table, rows)

    measured = compared.real.measure_table(samples, table, metadata, measure)
    count = metadata.parameters["samples"]
    counts = {name: (count, part.whole.count) for name, part in compared.references.items()}
    ranks = [row | {"samples": count} for row in compared.rank("evaluate", counts)]
    rows = [{**row, "extractor": extractor} for row in (*measured.rows, *ranks)]
    return replace(measured, rows=rows, parameters={"extractor": extractor})


def measure_floor(settings: FloorSettings, files: RealImages, machine: Machine) -> Measurement:
    """Compute the metric rows of real images, as method `data`: distances of one half of the training
    images from the other half and from test images, and of test images from the nearest training images."""
    device = choose(machine.device, machine.threads, machine.provenance)
    compared = ImageComparison.read(files, settings, device)
    train, test, references = compared.train, compared.test, compared.references
    half = halves(train.originals)[0]
    # Draws from one half of the training images are compared with the other half, and with all test images.
    others = {"train": references["train"].held}
    if "test" in references:
        others["test"] = references["test"].whole
    rows: Rows = []
    for trial, drawn in draw_trials(settings, "train", half):
        features, scores = compared.describe(train, drawn, machine.progress)
        measured = [compared.distance(features, name, moments) for name, moments in others.items()]
        rows += [row | {"trial": trial, "samples": len(drawn)} for row in measured + scores]
    # No model has memorised test images: their nearest training images show what distance is usual.
    draws = draw_trials(settings, "test", np.arange(test.originals)) if "test" in references else ()
    for trial, drawn in draws:
        measured = compared.neighbours(test.values[drawn]) if settings.pixels else []
        if compared.extractor.all_rows:
            measured += compared.likeness(references["test"].features[drawn])
        rows += [row | {"trial": trial, "samples": len(drawn)} for row in measured]
    samples = min(settings.samples, len(half))
    counts = {name: (samples, moments.count) for name, moments in others.items()}
    rows += [row | {"samples": samples} for row in compared.rank("floor", counts)]
    named = {"extractor": compared.extractor.name}
    rows = [row | named | {"method": "data"} for row in rows]
    return Measurement(rows, train.metadata.vocabulary, compared.real.inputs, parameters=named)


@dataclass(frozen=True)
class ImageComparison:
    """Compares the images of one trial with real images by an extractor's features; its methods return metric
    rows.

    `references` has the statistics of the features of training images (`train`) and, if there are any, of
    test images (`test`).
    """

    real: RealRows
    train: ImageRows
    test: ImageRows
    extractor: Extractor
    references: Mapping[str, ReferenceStatistics]

    @classmethod
    def read(
        cls, real: RealImages, settings: ExtractorSettings, device: torch.device | str
    ) -> "ImageComparison":
        """Read the files, and load the extractor onto `device`; InputError for files of several data sets."""
        rows = RealRows.read(real.tokens, real.validation, needs_held_out=False)
        train = ImageRows(real.tokens, rows.train, rows.metadata)
        test = ImageRows(real.validation, rows.held_out, rows.metadata)
        extractor = extractors.load(settings, device)
        references = {"train": ReferenceStatistics.read(real.train_reference, train, extractor)}
        if len(test.tokens):
            if real.test_reference is None:
                unexpected = f"{test.path} has {len(test.tokens)} images"
                raise InputError(f"--test-reference: {unexpected}; expected a file")
            references["test"] = ReferenceStatistics.read(real.test_reference, test, extractor)
        return cls(rows, train, test, extractor, references)

    def describe(self, images: ImageRows, rows: np.ndarray, progress: bool) -> tuple[np.ndarray, Rows]:
        """Compute the features (B, D) of the images with numbers `rows` (B,), and a metric row of their
        Inception Score, or none if the extractor gives no probabilities."""
        _, features, probabilities = zip(*extract(self.extractor, images, rows, progress), strict=True)
        scored = probabilities[0] is not None
        score = [_row("is", inception_score(np.concatenate(probabilities)), None)] if scored else []
        return np.concatenate(features), score

    def distance(self, features: np.ndarray, reference: str, moments: Moments) -> dict[str, object]:
        """Return a metric row: the Fréchet distance of `features` (B, D) from the `moments` of the features
        of `reference`, `train` or `test`."""
        return _row(
            self.extractor.distance, frechet_distance(Moments.from_features(features), moments), reference
        )

    def neighbours(self, values: np.ndarray) -> Rows:
        """Compare images with the training images. `values` (B, N) are their pixel values in units of the
        data (see `ImageRows.values`).

        `nn_l2` is the mean L2 distance to the nearest training image, in pixel values of 0..255; `nn_copies`
        is the share of images that are equal to a training image in every pixel.
        """
        distance, _ = nearest(values, self.train.values, device=self.extractor.device)
        return [
            _row("nn_l2", float(distance.mean()) * self.train.unit, "train"),
            _row("nn_copies", float((distance == 0).mean()), "train"),
        ]

    def likeness(self, features: np.ndarray) -> Rows:
        """Compute `nn_cosine`: the mean over images of the largest cosine to features of training images. No
        rows unless the extractor has `all_rows`."""
        if not self.extractor.all_rows:
            return []
        cosine = most_similar(features, self.references["train"].features, device=self.extractor.device)
        return [_row("nn_cosine", float(cosine.mean()), "train")]

    def rank(self, step: str, counts: dict[str, tuple[int, int]]) -> Rows:
        """Compute `rank_deficient` for each reference: 1 if images are too few for a covariance of full rank.

        `counts` maps each reference (train, test) to the numbers of samples and of its images. If either is
        too small, the distance depends on it, so that the command `step` warns on stderr.
        """
        dimension, rows = self.extractor.dimension, []
        for reference, (samples, real) in counts.items():
            few = min(samples, real) <= dimension
            rows.append(_row("rank_deficient", float(few), reference))
            if few:
                print(
                    f"pairflow {step}: warning: {samples} samples and {real} {reference} images for "
                    f"{dimension} features: a covariance is singular, compare {self.extractor.distance} at "
                    "equal numbers only",
                    file=sys.stderr,
                )
        return rows


def _row(metric: str, value: float, reference: str | None) -> dict[str, object]:
    return {"metric": metric, "value": value, "reference": reference}
