"""A trained model in Python: its network, samples and scores."""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from pairflow.arguments import checked_integer, checked_number
from pairflow.arrays import as_array, checked_tokens
from pairflow.config import DemandSettings, FlowSampleSettings, SampleSettings, ScoreSettings, check
from pairflow.errors import InputError
from pairflow.extras import named_extras
from pairflow.files import checked_path
from pairflow.flow.arguments import as_tokens, each_row, require_below, require_shape
from pairflow.flow.samplers import FREE
from pairflow.generate.choice import kind_in, measured_at
from pairflow.generate.sample import trials
from pairflow.generate.score import score_row
from pairflow.limits import MOST_DRAWS, MOST_NFE, MOST_SAMPLES
from pairflow.networks.own import settings_of
from pairflow.runtime.device import choose
from pairflow.runtime.resume import split_rows
from pairflow.settings.sampling import SamplerName
from pairflow.training.model import DiscreteModel, Model

Device = Literal["auto", "cuda", "cpu"]


def load(
    model: str | Path, *, network: type[nn.Module] | None = None, device: Device = "auto"
) -> "LoadedModel":
    """Load a trained model, to sample from it, to score rows, or to use its network.

    Args:
        model: the folder of a model, such as results/demo/seed0/models/pairflow; the name of one that comes
            with pairflow (`pairflow models` lists them); a ZIP archive of a folder; the address of such an
            archive, which is downloaded once; or hf:owner/name or hf:owner/name@revision on the Hugging Face
            Hub. Models of others are checked, and no code of theirs runs.
        network: the class of its network, if that is one of your own (docs/python.md).
        device: "auto" uses the GPU if there is one.

    Returns:
        The model.

    Raises:
        InputError: if the folder holds no model, or the device is unknown.

    Example:
        >>> model = pairflow.load("digits")
        >>> rows = model.sample(16)  # token rows (16, 64)
    """
    settings_of(network)  # makes a class known
    with named_extras():
        from pairflow.generate import archives

        folder, temporary = archives.locate(model)
    try:
        loaded = LoadedModel(Model.load(archives.find_only(folder), device=choose(device, None)))
    except BaseException:
        shutil.rmtree(temporary or "", ignore_errors=True)
        raise
    if temporary:
        weakref.finalize(loaded, shutil.rmtree, temporary, ignore_errors=True)
    return loaded


class LoadedModel:
    """A trained model; `pairflow.load` makes it.

    Attributes:
        model: its settings, sizes and metadata, such as `model.length` and `model.vocabulary_size`.
        network: its network, with averaged weights, in evaluation mode.
        nfe: the number of steps at which it was measured, and at which it samples by default; None if its
            folder does not say.
        temperature: the temperature at which it was measured, by default 1.
        sampler: the update rule with which it was measured, by default "ancestral".
        greedy_tail: whether it was measured with a greedy tail, by default true.
        grammar: whether it was measured on rows that fit together, by default false.
    """

    def __init__(self, model: Model):
        self.model = model
        self.network: nn.Module = model.network
        measured = measured_at(model.folder)
        self.nfe = measured.nfe if measured else None
        self.temperature = measured.temperature if measured else 1.0
        self.sampler: SamplerName = measured.sampler if measured else "ancestral"
        self.greedy_tail = measured.greedy_tail if measured else True
        self.grammar = measured.grammar if measured else False

    def __repr__(self) -> str:
        model, size = self.model, sum(tensor.numel() for tensor in self.network.parameters())
        symbols = "" if model.vocabulary_size is None else f"K = {model.vocabulary_size:,}, "
        facts = f"{model.method}, N = {model.length}, {symbols}{size:,} parameters, {model.device}"
        return f"<LoadedModel {model.folder.name}: {facts}>"

    @property
    def denoiser(self) -> Callable[[Tensor, Tensor], Tensor]:
        """A function from tokens x_t (B, N) and kappa (B,) to log-probabilities (B, N, K) of x1.

        It raises InputError for tokens that the model does not have, other shapes, and kappa outside (0, 1].
        kappa(t) is the share of data kept. `model.prediction` is the kind of these probabilities, "posterior"
        or "leave_one_out" (docs/method.md, "Two kinds of denoiser").
        """
        model = self._discrete("denoiser")
        return partial(_predict, model)

    def sample(
        self,
        count: int | None = None,
        *,
        nfe: int | None = None,
        seed: int = 0,
        sampler: SamplerName | None = None,
        temperature: float | None = None,
        greedy_tail: bool | None = None,
        grammar: bool | None = None,
        condition: str | Sequence[str] = (),
        guidance: float = 1.0,
        x0: ArrayLike | None = None,
        given: ArrayLike | None = None,
    ) -> np.ndarray:
        """Draw samples: the first trial of `pairflow sample` with the same settings.

        A model of a continuous flow takes only `count`, `nfe` and `seed`.

        Args:
            count: the number of samples; not needed with `x0`.
            nfe: the number of sampling steps; by default that at which the model was measured.
            seed: every random number follows from it.
            sampler: the update rule; by default that with which the model was measured.
            temperature: tau, by which logits are divided; by default that at which the model was measured.
            greedy_tail: end with the most likely symbols, in one more call; by default as measured.
            grammar: make only rows of groups that fit together; by default as measured.
            condition: what a conditional model is asked for, such as "qed=high".
            guidance: the weight of classifier-free guidance.
            x0: source tokens (count, N); by default they are drawn.
            given: symbols (N,) or (count, N) that all samples keep, -1 where a position is sampled.

        Returns:
            (count, N) token rows, int64, which `decode` turns into molecules, texts or pixels, or (count, d)
            numbers of vectors.

        Raises:
            InputError: if an argument is out of range, or the model does not take it.

        Example:
            >>> upper_half = [0] * 32 + [-1] * 32
            >>> rows = pairflow.load("digits").sample(4, nfe=2, given=upper_half)
        """
        sources = None if x0 is None else self._states("x0", x0)
        if sources is not None and count is None:
            count = len(sources)
        count = checked_integer("count", count, 1, MOST_SAMPLES)
        fixed = None if given is None else self._states("given", given)
        for name, states in (("x0", sources), ("given", fixed)):
            if states is not None and len(states) not in (count, 1 if name == "given" else count):
                raise InputError(f"{name}: expected {count:,} rows, found {len(states):,}")
        values = {"samples": count, "trials": 1, "seed": checked_integer("seed", seed, 0, 2**32 - 1)}
        values["nfe"] = checked_integer("nfe", self.nfe if nfe is None else nfe, 1, MOST_NFE)
        tau = self.temperature if temperature is None else temperature
        tau = checked_number("temperature", tau, 0.01, 100)
        sampler = self.sampler if sampler is None else sampler
        tail = self.greedy_tail if greedy_tail is None else greedy_tail
        uses = self.grammar if grammar is None else grammar
        guidance = checked_number("guidance", guidance, 0, 100)
        update = {"sampler": sampler, "temperature": tau, "greedy_tail": tail, "grammar": uses}
        update |= {"condition": condition, "guidance": guidance}
        settings = check(SampleSettings, values | update, "sample")
        if isinstance(self.model, DiscreteModel):
            given_rows = None if fixed is None else fixed.expand(count, -1)
            drawing = trials(self.model, settings, sources=sources, given=given_rows)
        elif sources is None and fixed is None and settings == check(SampleSettings, values, "sample"):
            drawing = trials(self.model, check(FlowSampleSettings, values, "sample"))
        else:
            raise InputError("sample: a model of a continuous flow takes only count, nfe and seed")
        size, batches = self.model.vocabulary_size, split_rows(count, self.model.batch_rows)
        drawn = np.concatenate([drawing.draw((0, *batch)) for batch in batches])[:, : self.model.length]
        return drawn if size is None else drawn.astype(np.int64)

    def save(self, folder: str | Path) -> None:
        """Save the model: its weights, its description, and what its data set adds.

        Args:
            folder: a new folder, or the name of a new ZIP archive, which ends in .zip. `load` and the
                commands (`pairflow sample --model`, of a folder) read it.

        Raises:
            InputError: if it is there and not empty.

        Example:
            >>> pairflow.load("digits").save("my_digits")  # doctest: +SKIP
        """
        from pairflow.generate import archives

        archives.copy(self.model.folder, checked_path("folder", folder))

    def push_to_hub(self, name: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the model to the Hugging Face Hub: the files of `save`, and a card made from model.json.

        A card that the model has, README.md, stays as it is.

        Args:
            name: owner/name on the hub; the repository is made if it is not there.
            private: whether a new repository is private.
            token: your token. Default: that of `hf auth login` or HF_TOKEN.

        Returns:
            The address of its page. `pairflow.load("hf:owner/name")` loads it.

        Raises:
            InputError: if the hub cannot be reached or refuses it.

        Example:
            >>> pairflow.load("my_model").push_to_hub("me/my_model")  # doctest: +SKIP
        """
        from pairflow.generate import archives, hub

        with tempfile.TemporaryDirectory(prefix="pairflow-") as folder:
            archives.copy(self.model.folder, Path(folder))
            return hub.upload(Path(folder), self.model, name, private, token)

    def decode(self, rows: ArrayLike) -> list[str] | np.ndarray:
        """Turn token rows into what they stand for.

        Args:
            rows: token rows (M, N) of the model's vocabulary.

        Returns:
            M strings: texts, or SMILES, which need not be valid. Of images an array (M, H, W, C) of uint8.

        Raises:
            InputError: if the model's tokens stand for nothing else, or `rows` are not rows of its tokens.

        Example:
            >>> model = pairflow.load("qm9")
            >>> smiles = model.decode(model.sample(4))
        """
        model, tokens = self._discrete("decode"), self._states("rows", rows).numpy()
        with named_extras():
            kind = kind_in(model.folder)
            if not kind.delivery:
                raise InputError(f"decode: {kind.rows} stand for nothing else")
            settings = DemandSettings(count=max(1, len(tokens)), raw=True)
            return kind.delivery.deliver(model, settings).decode_all(tokens)

    def score(self, rows: ArrayLike, *, draws: int = 128, seed: int = 0) -> pd.DataFrame:
        """Score token rows: an upper bound on -log p of each, in nats, by Monte Carlo.

        Args:
            rows: token rows (M, N) of the model's vocabulary.
            draws: noised copies of each row, an even number.
            seed: the seed of the noise.

        Returns:
            A table with a line for each row: `nll_bound`, its `standard_error`, the 95 % interval `low` to
            `high`, and `nll_per_token`, the bound divided by the number of tokens that are not padding.

        Raises:
            InputError: if an argument is out of range, or the model is one of a continuous flow.

        Example:
            >>> model = pairflow.load("digits")
            >>> table = model.score(model.sample(4))
        """
        model = self._discrete("score")
        values = {
            "draws": checked_integer("draws", draws, 2, MOST_DRAWS),
            "seed": checked_integer("seed", seed, 0, 2**32 - 1),
        }
        settings = check(ScoreSettings, values, "score")
        tokens, scoring = self._states("rows", rows).numpy(), kind_in(model.folder).scoring
        padding = scoring.reader(model).padding if scoring else None
        if padding is not None and (empty := (tokens == padding).all(axis=1)).any():
            raise InputError(f"rows: row {empty.argmax()}: expected at least one token, found only padding")
        scores = [score_row(model, row, settings, padding) for row in tokens]
        return pd.DataFrame(scores).drop(columns="tokens")

    def _discrete(self, name: str) -> DiscreteModel:
        if not isinstance(self.model, DiscreteModel):
            raise InputError(f"{name}: only a model of tokens has one, and this is one of a continuous flow")
        return self.model

    def _states(self, name: str, states: ArrayLike) -> Tensor:
        """Check the token rows `states`, (B, N) or one row (N,), and return them as int64 (B, N) on the CPU.

        `name` is the argument that has them; only in `given` may they contain FREE (-1). Raises InputError if
        they are not rows of the model's symbols.
        """
        model, rows = self._discrete(name), np.atleast_2d(as_array(states, name))
        free = np.zeros(rows.shape, bool)
        if name == "given" and rows.dtype.kind in "iu":  # others are refused below
            free = rows == FREE
            rows = np.where(free, 0, rows)
        tokens = checked_tokens(rows, model.corruption.symbols, name)
        if tokens.shape[1] != model.length:
            raise InputError(f"{name}: expected {model.length} positions per row, found {tokens.shape[1]}")
        return torch.from_numpy(np.where(free, FREE, tokens.astype(np.int64)))


def _predict(model: DiscreteModel, x_t: Tensor, kappa: Tensor) -> Tensor:
    """Return the model's log-probabilities (B, N, K) of x1 at x_t (B, N) and kappa, checking these two."""
    x_t = as_tokens("x_t", x_t)
    require_shape("x_t", x_t, (len(x_t), model.length))
    require_below("x_t", x_t, model.corruption.symbols)
    level = torch.as_tensor(each_row("kappa", kappa, len(x_t)))
    if not ((level > 0) & (level <= 1)).all():
        wrong = level[~((level > 0) & (level <= 1))][0]
        raise InputError(f"kappa: expected numbers above 0 and at most 1, found {float(wrong):g}")
    return model.corruption.log_probabilities(model.network, x_t, kappa)
