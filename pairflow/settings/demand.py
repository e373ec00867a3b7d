"""Settings of samples on demand (`pairflow sample --count`) that kinds of data share."""

from pydantic import Field, model_validator

from pairflow.settings.check import Seed
from pairflow.settings.sampling import GuidedUpdate, Update

# The settings of samples on demand that apply to every kind of data.
DEMANDED = frozenset({"count", "nfe", "unique", "seed", *Update.model_fields})


class CommonDemand(GuidedUpdate):
    """Settings of samples on demand: everything that the file of samples depends on besides the model."""

    count: int = Field(
        ge=1, le=10**8, description="Molecules, texts or images to generate. Switches to on-demand mode."
    )
    nfe: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="Number of sampling steps (number of function evaluations, NFE). Optional if --model is "
        "the folder of an experiment, whose metrics then decide.",
    )
    prefix: str | None = Field(None, min_length=1, description="Start of every sample, as SMILES or text.")
    template: str | None = Field(
        None, min_length=1, description="Like --prefix; each `*` leaves one token open."
    )
    raw: bool = Field(False, description="Write all samples as the model made them, valid or not.")
    unique: bool = Field(False, description="Drop duplicates.")
    seed: Seed = Field(0, description="Seed of the source states, of the sampler and of --3d.")

    @model_validator(mode="after")
    def _one_start(self) -> "CommonDemand":
        if self.prefix is not None and self.template is not None:
            raise ValueError("template: does not go with prefix; write the start into the template")
        return self
