"""The experiment, typed: every setting once, with its unit, its bounds and one line of help.

The check of workflow_config.yaml, the options of each step (`pairflow train --help`) and the parameters that
a rule passes on all come from these classes.
"""

import difflib
import functools
import operator
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)

from pairflow.errors import InputError


class Base(NamedTuple):
    """A base method: its noise (see `flow.noise`), and whether each data point keeps one source."""

    noise: str
    coupled: bool


BASES = {
    "mdlm": Base("absorbing", coupled=False),
    "udlm": Base("uniform", coupled=False),
    "random": Base("uniform", coupled=True),
    "pairflow": Base("uniform", coupled=True),
}
OTHER_EVALUATIONS = ("coupling", "coverage", "correlation")  # names of other metric rows
_METHOD = re.compile(r"(?P<base>[a-z]+)(-sub(?P<subsets>[1-9][0-9]*))?(?P<distillations>(\+[a-z]+)*)")

_CONVERSION = "of a denoiser into the kind that the update needs; none: taken as it is"

Seed = Annotated[int, Field(ge=0, lt=2**32)]
Share = Annotated[float, Field(ge=0, lt=1)]


class Settings(BaseModel):
    """Closed and immutable: an unknown key is an error, not an ignored wish."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Molecules(Settings):
    """Raw molecules to token rows."""

    source: str = Field(description="qm9, zinc250k, small_molecules (embedded), or the path of a CSV file")
    column: str = Field("smiles", description="column that holds the SMILES")
    length: int = Field(ge=4, le=4096, description="N, tokens per row, with <bos>, <eos> and padding")
    drop_duplicates: bool = Field(False, description="keep one row per canonical SMILES")
    validation_fraction: Share = Field(0.05, description="share of the rows kept for validation")
    split_seed: Seed = Field(42, description="seed of the random split")
    training_rows: int | None = Field(None, ge=1, description="train on a random subset of so many rows")
    max_heavy_atoms: int | None = Field(None, ge=1, description="leave out larger molecules")
    max_too_long_share: Share = Field(0.001, description="largest share of rows that may exceed the length")

    @field_validator("source")
    @classmethod
    def _no_images(cls, source: str) -> str:
        near = nearest(source, IMAGE_SOURCES)
        if source in IMAGE_SOURCES:
            raise ValueError(f"'{source}' are images: see `pairflow preprocess_images`")
        if near and not set("/.") & set(source):
            raise ValueError(f"unknown name '{source}'{near}")
        return source


class Images(Settings):
    """Raw images to token rows: N = channels x height x width, K grey levels."""

    source: Literal["digits", "mnist_binary", "cifar10", "image_folder"] = Field(
        description="digits (embedded, 8 x 8), mnist_binary, cifar10, or image_folder"
    )
    folder: str | None = Field(None, description="folder of PNG and JPEG files (image_folder)")
    size: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="side to which the central square is resized (image_folder)",
    )
    mode: Literal["L", "RGB"] | None = Field(None, description="convert to grey or colour (image_folder)")
    levels: int | None = Field(None, ge=2, le=256, description="K, must divide 256; none: 256 (image_folder)")
    flips: bool = Field(False, description="append the mirror image of every training image")
    training_rows: int | None = Field(None, ge=1, description="train on a random subset of so many images")
    validation_fraction: float = Field(
        0.1, gt=0, lt=1, description="share held out where no test set is published (digits, image_folder)"
    )
    split_seed: Seed = Field(42, description="seed of the random split and subset")

    @field_validator("levels")
    @classmethod
    def _levels_divide(cls, levels: int | None) -> int | None:
        if levels and 256 % levels:
            raise ValueError(f"{levels} does not divide 256; 2, 4, 8, ... 256 do")
        return levels

    @model_validator(mode="after")
    def _fits_the_source(self) -> "Images":
        if self.source == "image_folder":
            if self.folder is None:
                raise ValueError("folder: the source image_folder needs one")
            return self
        for key in ("folder", "size", "mode", "levels"):
            if getattr(self, key) is not None:
                raise ValueError(f"{key}: is for the source image_folder, {self.source} has its own")
        if self.source != "digits" and self.validation_fraction != 0.1:
            raise ValueError(f"validation_fraction: {self.source} has a published test set")
        return self


IMAGE_SOURCES = get_args(Images.model_fields["source"].annotation)


def _modality(data: Any) -> str:
    """The tag of a data section, by its source; in brackets, as no key of the configuration is."""
    source = data.get("source") if isinstance(data, Mapping) else getattr(data, "source", None)
    return "<images>" if source in IMAGE_SOURCES else "<molecules>"


Data = Annotated[
    Annotated[Molecules, Tag("<molecules>")] | Annotated[Images, Tag("<images>")], Discriminator(_modality)
]


class Transformer(Settings):
    """Diffusion transformer with rotary positions and adaptive layer norm."""

    name: Literal["transformer"]
    width: int = Field(768, ge=8, le=8192, description="width of the residual stream")
    blocks: int = Field(12, ge=1, le=128, description="transformer blocks")
    heads: int = Field(12, ge=1, le=128, description="attention heads; must divide the width")
    time_width: int = Field(128, ge=8, le=4096, description="width of the time embedding")
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout probability")

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "Transformer":
        if self.width % (2 * self.heads):
            raise ValueError(
                f"heads: 2 x {self.heads} does not divide the width {self.width} (rotary needs pairs)"
            )
        return self


class Mlp(Settings):
    """Residual multilayer perceptron with adaptive layer norm: for short rows and laptops."""

    name: Literal["mlp"]
    width: int = Field(384, ge=8, le=8192, description="width of the residual stream")
    blocks: int = Field(2, ge=1, le=128, description="residual blocks")
    time_width: int = Field(128, ge=8, le=4096, description="width of the time embedding")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout probability")


class Unet(Settings):
    """U-Net of D3PM and UDLM for images, in float32: 28 x 28 pixels in three scales, 32 x 32 in four."""

    name: Literal["unet"]
    channels: int = Field(128, ge=8, le=2048, multiple_of=4, description="width at the first scale")
    multipliers: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(
        (1, 2, 2), min_length=1, description="width of each scale, in channels; each halves height and width"
    )
    blocks: int = Field(2, ge=1, le=16, description="residual blocks per scale, one more on the way up")
    attention: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        (1,), description="scales with attention, from 0; the middle always has it"
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout probability")
    head: Literal["logistic", "categorical"] = Field(
        "logistic", description="a truncated logistic distribution per pixel and colour, or K free logits"
    )

    @model_validator(mode="after")
    def _attention_at_scales(self) -> "Unet":
        for scale in self.attention:
            if scale >= len(self.multipliers):
                raise ValueError(
                    f"attention: there is no scale {scale}, multipliers name 0 to {len(self.multipliers) - 1}"
                )
        return self


Network = Annotated[Transformer | Mlp | Unet, Field(discriminator="name")]


class Pairing(Settings):
    """Algorithm 1."""

    steps: int = Field(20, ge=1, le=10_000, description="T, backward steps from data to source")
    coverage: bool = Field(False, description="measure which share of the data the forward velocity reaches")


class Optimisation(Settings):
    """One optimisation run."""

    batch_size: int = Field(ge=1, le=2**20, description="rows per iteration")
    iterations: int = Field(ge=1, description="optimiser updates")
    learning_rate: float = Field(gt=0, le=1, description="peak learning rate of AdamW")
    warmup_iterations: int = Field(0, ge=0, description="iterations of linear warm-up")
    decay: Literal["cosine", "constant"] = Field("constant", description="learning rate after the warm-up")
    final_learning_rate: float = Field(
        0.0, ge=0, le=1, description="learning rate at the end of a cosine decay"
    )
    ema_decay: float = Field(0.9999, ge=0, lt=1, description="d of the weights' moving average")
    gradient_clip: float = Field(1.0, gt=0, description="largest norm of the gradient")
    validate_every: int = Field(1000, ge=1, description="iterations between two validations")

    @model_validator(mode="after")
    def _schedule_fits(self) -> "Optimisation":
        if self.warmup_iterations >= self.iterations:
            raise ValueError(
                f"warmup_iterations: {self.warmup_iterations} is not below {self.iterations} iterations"
            )
        if self.final_learning_rate > self.learning_rate:
            raise ValueError(f"final_learning_rate: {self.final_learning_rate} is above {self.learning_rate}")
        return self


class Training(Optimisation):
    """The training of a base model."""

    loss: Literal["nelbo", "cross_entropy"] = Field("nelbo", description="training loss")


class Distillation(Optimisation):
    """A further optimisation run that starts from a finished model, the parent."""

    on_pairs: ClassVar[bool]  # it trains on pairs that the parent made, else on the data

    ema_decay: float = Field(0.999, ge=0, lt=1, description="d of the weights' moving average")
    start_from: Literal["ema", "raw"] = Field("ema", description="the parent's weights to start from")
    ema: Literal["fresh", "inherit"] = Field(
        "fresh", description="moving average: begun anew, or the parent's carried on"
    )


class Dcd(Distillation):
    """Discrete Consistency Distillation (Duo, Sahoo et al. 2025)."""

    on_pairs: ClassVar[bool] = False

    name: Literal["dcd"] = "dcd"
    teacher_every: int = Field(ge=1, description="iterations after which the teacher becomes the student")
    noise_min: float = Field(-4.0, ge=-12, le=12, description="g_min, negative log-SNR at noise time 0")
    noise_max: float = Field(-1.0, ge=-12, le=12, description="g_max, negative log-SNR at noise time 1")

    @model_validator(mode="after")
    def _noise_grows(self) -> "Dcd":
        if self.noise_min >= self.noise_max:
            raise ValueError(f"noise_min: {self.noise_min} is not below noise_max, {self.noise_max}")
        return self


class TeacherPairs(Settings):
    """How ReDi's pairs are drawn from the parent: a uniform source, and the sample that it makes of it."""

    count: int = Field(20_000, ge=1, le=10**8, description="pairs")
    steps: int = Field(256, ge=1, le=10_000, description="sampling steps, before the greedy tail")
    sampler: Literal["ancestral", "euler"] = Field("euler", description="update rule")
    conversion: Literal["exact", "none"] = Field("exact", description=_CONVERSION)


class Redi(Distillation):
    """Rectified discrete flow (ReDi, Yoo et al. 2025): the base loss, on pairs that the parent made."""

    on_pairs: ClassVar[bool] = True

    name: Literal["redi"] = "redi"
    pairs: TeacherPairs = Field(TeacherPairs(), description="how they are drawn: `pairflow teach --help`")


# What `+<name>` in a method does: `objective` of the module pairflow.training.<name>, with these settings.
DISTILLATIONS: dict[str, type[Distillation]] = {"dcd": Dcd, "redi": Redi}

AnyDistillation = Annotated[
    functools.reduce(operator.or_, DISTILLATIONS.values()), Field(discriminator="name")
]

Distillations = create_model(
    "Distillations",
    __base__=Settings,
    __doc__="Settings of each distillation, under the name that methods use: `udlm+dcd`.",
    **{name: (each | None, None) for name, each in DISTILLATIONS.items()},
)


class Sampling(Settings):
    """How samples are drawn from a model."""

    samples: int = Field(1024, ge=1, le=10**7, description="samples per trial")
    trials: int = Field(10, ge=1, le=1000, description="independent repetitions, for mean and deviation")
    sampler: Literal["ancestral", "euler"] = Field("ancestral", description="update rule")
    conversion: Literal["exact", "none"] = Field("exact", description=_CONVERSION)
    greedy_tail: bool = Field(True, description="end on the denoiser's most likely symbols")


class Evaluation(Sampling):
    """A named protocol: at which numbers of steps, how many samples."""

    nfe: tuple[Annotated[int, Field(ge=1, le=10_000)], ...] = Field(
        min_length=1, description="sampling steps"
    )

    @model_validator(mode="after")
    def _distinct_nfe(self) -> "Evaluation":
        if len(set(self.nfe)) < len(self.nfe):
            raise ValueError(f"nfe: {list(self.nfe)} names a number twice")
        return self


class Correlation(Settings):
    """Conditional total correlation of each method with uniform noise.

    Not of mdlm: its source is one state, all masks, so that there is nothing to condition on.
    """

    sources: int = Field(20_000, ge=2, le=10**6, description="source states x0")
    samples: int = Field(10, ge=2, le=1000, description="samples of x1 per source state")
    steps: int = Field(256, ge=1, le=10_000, description="sampling steps, before the greedy tail")
    sampler: Literal["ancestral", "euler"] = Field("ancestral", description="update rule")
    conversion: Literal["exact", "none"] = Field("exact", description=_CONVERSION)


class ExtractorSettings(Settings):
    """The network whose features images are compared by."""

    extractor: Literal["classifier", "inception", "dinov2"] = Field(
        "classifier", description="trained here on the labels; FID's own; a self-supervised transformer"
    )
    weights: str | None = Field(
        None, description="file of its weights (inception, dinov2); without one, inception's are fetched"
    )
    sha256: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description="checksum of that file; without one, it must be inception's published file",
    )

    @model_validator(mode="after")
    def _weights_fit(self) -> "ExtractorSettings":
        if self.extractor == "classifier" and self.weights is not None:
            raise ValueError("weights: the classifier is trained here, it takes none")
        if self.sha256 is not None and self.weights is None:
            raise ValueError("sha256: there are no weights that it could be the checksum of")
        if self.extractor == "dinov2" and (self.weights is None or self.sha256 is None):
            raise ValueError("weights, sha256: dinov2 needs both, a file and its checksum")
        return self


class Features(ExtractorSettings):
    """What images are compared by."""

    iterations: int = Field(400, ge=1, le=10**6, description="updates of the classifier's training")


class ClassifySettings(Settings):
    """What the classifier depends on, beside the images and their labels."""

    iterations: int = Field(400, ge=1, le=10**6, description="updates of the classifier's training")
    seed: Seed = Field(0, description="seed of its weights and of the order of the images")


class FloorSettings(ExtractorSettings):
    """What the distance of real images from real images depends on, beside the images."""

    samples: int = Field(1024, ge=1, le=10**7, description="images per trial, as many as there are at most")
    trials: int = Field(10, ge=1, le=1000, description="independent draws of images")
    seed: Seed = Field(0, description="seed of the draws")


class PairSettings(Settings):
    """What a file of pairs depends on, beside the token rows."""

    coupling: Literal["pairflow", "random"] = Field(
        "pairflow", description="closed-form or independent sources"
    )
    steps: int | None = Field(20, ge=1, le=10_000, description="T, backward steps (pairflow)")
    subsets: int = Field(1, ge=1, description="P, random parts that are paired apart (pairflow)")
    seed: Seed = Field(0, description="seed of the random numbers")

    @model_validator(mode="after")
    def _steps_for_pairflow(self) -> "PairSettings":
        if self.coupling == "pairflow" and self.steps is None:
            raise ValueError("steps: the coupling pairflow needs a number of steps")
        return self


class CoverSettings(Settings):
    """What the coverage of the forward velocity depends on, beside the token rows."""

    steps: int = Field(20, ge=1, le=10_000, description="T, forward steps from source to data")
    seed: Seed = Field(0, description="seed of the random numbers")


class TrainSettings(Settings):
    """What a model depends on, beside the token rows or pairs."""

    method: str = Field(description="mdlm, udlm, random, pairflow or pairflow-sub<P>")
    seed: Seed = Field(0, description="seed of weights, data order, noise and dropout")
    network: Network = Field(description='network as JSON, e.g. \'{"name": "mlp", "width": 384}\'')
    training: Training


class TeachSettings(TeacherPairs):
    """What a file of a teacher's pairs depends on, beside the teacher."""

    method: str = Field(description="the method that will train on them: <parent>+redi")
    seed: Seed = Field(0, description="seed of the source states and of the sampler")


class DistillSettings(Settings):
    """What a distilled model depends on, beside its parent and the data or pairs."""

    method: str = Field(description="<parent>+dcd or <parent>+redi")
    seed: Seed = Field(0, description="seed of data order, noise and dropout")
    distillation: AnyDistillation = Field(
        description='distillation as JSON, e.g. \'{"name": "dcd", "teacher_every": 2000, ...}\''
    )


class SampleSettings(Sampling):
    """What a file of samples depends on, beside the model."""

    nfe: int = Field(ge=1, le=10_000, description="sampling steps")
    seed: Seed = Field(0, description="seed of the source states and of the sampler")


class CorrelateSettings(Correlation):
    """What a model's total correlation depends on, beside the model and the training rows."""

    seed: Seed = Field(0, description="seed of the source states, of the sampler and of the ceiling")


class Method(Settings):
    """A parsed method name: `base[-sub<P>][+distillation]*`."""

    name: str
    base: str
    subsets: int = 1
    distillations: tuple[str, ...] = ()

    @property
    def coupling(self) -> str | None:
        """Name of the base's file of pairs; None where the source is drawn afresh."""
        if not BASES[self.base].coupled:
            return None
        return self.base if self.subsets == 1 else f"{self.base}-sub{self.subsets}"

    @property
    def noise(self) -> str:
        return BASES[self.base].noise

    @property
    def parent(self) -> str | None:
        """The method that the last distillation starts from; None for a base."""
        return self.name.rpartition("+")[0] or None

    @property
    def lineage(self) -> list[str]:
        """From the base to the method itself: udlm, udlm+redi, udlm+redi+redi."""
        return [*parse_method(self.parent).lineage, self.name] if self.parent else [self.name]


def parse_method(name: str) -> Method:
    """Read a method name; InputError names the part that is not known."""
    match = _METHOD.fullmatch(name)
    if match is None or match["base"] not in BASES:
        near = nearest(match["base"] if match else name, BASES)
        raise InputError(f"unknown method '{name}'{near}: known are {', '.join(BASES)} and pairflow-sub<P>")
    if match["subsets"] and match["base"] != "pairflow":
        raise InputError(f"unknown method '{name}': only pairflow has subsets")
    if match["subsets"] == "1":
        raise InputError(f"method '{name}': one subset is the full pairing, write 'pairflow'")
    distillations = tuple(match["distillations"].split("+")[1:])
    for each in distillations:
        if each not in DISTILLATIONS:
            near = nearest(each, DISTILLATIONS)
            raise InputError(f"unknown method '{name}'{near}: distillations are {', '.join(DISTILLATIONS)}")
    if distillations and BASES[match["base"]].noise != "uniform":
        raise InputError(f"method '{name}': {match['base']} has masks for a source, which nothing distils")
    return Method(
        name=name,
        base=match["base"],
        subsets=int(match["subsets"] or 1),
        distillations=distillations,
    )


class Experiment(Settings):
    """One named entry of workflow_config.yaml."""

    description: str = Field(description="one line for the report")
    scale: Literal["paper", "reduced"] = Field(
        description="paper: the protocol's own numbers; reduced: anything less"
    )
    seeds: tuple[Seed, ...] = Field((0,), min_length=1, description="seeds of everything after the split")
    data: Data
    network: Network
    pairing: Pairing = Pairing()
    training: Training
    distillation: Distillations = Distillations()
    methods: tuple[str, ...] = Field(min_length=1, description="methods to train and compare")
    evaluations: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")], Evaluation] = Field(min_length=1)
    correlation: Correlation | None = None
    features: Features | None = Field(None, description="what images are compared by")

    @model_validator(mode="after")
    def _known_methods(self) -> "Experiment":
        for name in self.methods:
            for each in parse_method(name).distillations:
                if getattr(self.distillation, each) is None:
                    raise ValueError(f"methods: '{name}' needs the settings distillation.{each}")
        for key in ("methods", "seeds"):
            values = getattr(self, key)
            if len(set(values)) < len(values):
                raise ValueError(f"{key}: {list(values)} names one twice")
        return self

    @property
    def modality(self) -> Literal["molecules", "images"]:
        return "images" if isinstance(self.data, Images) else "molecules"

    @model_validator(mode="after")
    def _features_of_images(self) -> "Experiment":
        if self.features is not None and self.modality != "images":
            raise ValueError("features: for images, and these are molecules")
        return self

    @model_validator(mode="after")
    def _free_names(self) -> "Experiment":
        for name in self.evaluations:
            if name in OTHER_EVALUATIONS:
                raise ValueError(f"evaluations: '{name}' is the name of other metric rows")
        return self

    def trained(self) -> list[str]:
        """Every model that the methods need, parents first."""
        return list(dict.fromkeys(each for name in self.methods for each in parse_method(name).lineage))

    def couplings(self) -> list[str]:
        """Names of the files of pairs that the methods need."""
        names = (parse_method(name).coupling for name in self.methods)
        return sorted({name for name in names if name})

    def taught(self) -> list[str]:
        """The methods that train on pairs of their parent's."""
        return [name for name in self.trained() if _trains_on_pairs(name)]

    def correlated(self) -> list[str]:
        """The methods whose total correlation is measured."""
        if self.correlation is None:
            return []
        return [name for name in self.methods if parse_method(name).noise == "uniform"]

    def pair_settings(self, coupling: str, seed: int) -> PairSettings:
        method = parse_method(coupling)
        steps = self.pairing.steps if method.base == "pairflow" else None
        return PairSettings(coupling=method.base, steps=steps, subsets=method.subsets, seed=seed)

    def cover_settings(self, seed: int) -> CoverSettings:
        return CoverSettings(steps=self.pairing.steps, seed=seed)

    def train_settings(self, method: str, seed: int) -> TrainSettings:
        return TrainSettings(method=method, seed=seed, network=self.network, training=self.training)

    def teach_settings(self, method: str, seed: int) -> TeachSettings:
        return TeachSettings(method=method, seed=seed, **self.distillation.redi.pairs.model_dump())

    def distill_settings(self, method: str, seed: int) -> DistillSettings:
        last = parse_method(method).distillations[-1]
        return DistillSettings(method=method, seed=seed, distillation=getattr(self.distillation, last))

    def sample_settings(self, evaluation: str, nfe: int, seed: int) -> SampleSettings:
        shared = self.evaluations[evaluation].model_dump(exclude={"nfe"})
        return SampleSettings(**shared, nfe=nfe, seed=seed)

    def correlate_settings(self, seed: int) -> CorrelateSettings:
        if self.correlation is None:
            raise InputError("the experiment has no settings 'correlation'")
        return CorrelateSettings(**self.correlation.model_dump(), seed=seed)

    def classify_settings(self) -> ClassifySettings:
        return ClassifySettings(iterations=self._features().iterations)

    def extractor_settings(self) -> ExtractorSettings:
        return ExtractorSettings(**self._features().model_dump(exclude={"iterations"}))

    def floor_settings(self, evaluation: str) -> FloorSettings:
        """Of the first seed: real images are the same for all."""
        protocol, extractor = self.evaluations[evaluation], self.extractor_settings().model_dump()
        return FloorSettings(
            **extractor, samples=protocol.samples, trials=protocol.trials, seed=self.seeds[0]
        )

    def _features(self) -> Features:
        if self.modality != "images":
            raise InputError("the experiment has no images, which alone are compared by features")
        return self.features or Features()


def _trains_on_pairs(name: str) -> bool:
    distillations = parse_method(name).distillations
    return bool(distillations) and DISTILLATIONS[distillations[-1]].on_pairs


class Configuration(Settings):
    """All of workflow_config.yaml, and what a profile adds to it in its `config`."""

    experiments: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")], Experiment] = Field(min_length=1)
    pair_shards: int = Field(1, ge=1, le=10_000, description="jobs that one pairing is split into (profile)")


Model = TypeVar("Model", bound=BaseModel)


def check(model: type[Model], values: Mapping[str, Any], origin: str | Path) -> Model:
    """`values` as a checked `model`; InputError with one line about the first mistake."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InputError(f"{origin}: {_one_line(model, error)}") from error


def nearest(name: str, known: Any) -> str:
    """` (did you mean 'x'?)`, or nothing where no known name is near."""
    near = difflib.get_close_matches(str(name), [str(item) for item in known], n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""


def _one_line(model: type[BaseModel], error: ValidationError) -> str:
    errors = error.errors(include_url=False)
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    where = ".".join(part for part in map(str, first["loc"]) if not part.startswith("<"))
    if first["type"] == "extra_forbidden":
        return f"unknown key '{where}'{nearest(first['loc'][-1], _known_keys(model))}"
    if first["type"] == "missing":
        return f"missing key '{where}'"
    if first["type"] == "union_tag_invalid":
        known, found = first["ctx"]["expected_tags"].replace("'", ""), first["ctx"]["tag"]
        return f"{where}: unknown name '{found}'{nearest(found, known.split(', '))}: known are {known}"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        return f"{where}: {message}" if where else message
    return f"{where}: {message[0].lower()}{message[1:]}, found {first['input']!r}"


def _known_keys(model: type[BaseModel]) -> set[str]:
    """All key names of a model and the models inside it."""
    keys, todo = set(), [model]
    while todo:
        for name, info in todo.pop().model_fields.items():
            keys.add(name)
            todo += [part for part in _parts(info.annotation) if part not in todo]
    return keys


def _parts(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [part for inner in getattr(annotation, "__args__", ()) for part in _parts(inner)]
