"""The typed experiment: every setting is defined once, with its unit, its bounds and its help.

The check of workflow_config.yaml, the options of each step (`pairflow train --help`) and the parameters that
a rule passes to its step all come from these classes.
"""

from pairflow.config.check import Settings, check, nearest
from pairflow.config.data import (
    IMAGE_SOURCES,
    LONGEST,
    MOLECULE_SOURCES,
    TEXT_SOURCES,
    VECTOR_SOURCES,
    DataSettings,
    Images,
    Molecules,
    Notation,
    Standardisation,
    Text,
    Tokens,
    Vectors,
)
from pairflow.config.experiment import PAPER_SOURCES, Configuration, Experiment, Modality, PaperSettings
from pairflow.config.methods import BASES, Method, parse_method, tail_revises
from pairflow.config.sampling import Chemistry, ComparisonSettings, ExtractorSettings, Judge, JudgeTransformer
from pairflow.config.steps import (
    AdoptSettings,
    ClassifySettings,
    CorrelateSettings,
    CoverSettings,
    DemandSettings,
    DistillSettings,
    FloorSettings,
    FlowSampleSettings,
    JudgedDraws,
    NewSettings,
    PairSettings,
    RealDraws,
    SampleSettings,
    ScoreSettings,
    SolveSettings,
    TeachSettings,
    TrainSettings,
    parse_range,
)
from pairflow.config.training import DISTILLATIONS, BaseTraining, Dcd, Flow, Optimisation, Redi, Rf, Training
