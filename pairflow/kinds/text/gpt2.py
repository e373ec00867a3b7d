"""The generative perplexity: the perplexity of decoded samples under GPT-2 large (Radford et al. 2019).

The network and its tokeniser come from the folder gpt2-large in `PAIRFLOW_DATA_DIR`, or are downloaded in a
fixed revision. They need the optional package `transformers`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from pairflow.artifacts import digest
from pairflow.data.download import DATA_DIR, local_copy
from pairflow.errors import InputError

FOLDER, WEIGHTS = "gpt2-large", "model.safetensors"
PUBLISHED = ("openai-community/gpt2-large", "32b71b12589c2f8d625668d2335a01cac3249519")  # git commit
FILES = ("config.json", WEIGHTS, "tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt")
LARGE = {"n_layer": 36, "n_embd": 1280, "n_head": 20, "n_positions": 1024, "vocab_size": 50257}
_LOGITS = 2**26  # logits in memory at a time: 256 MB
_NONE = -100  # a target that `cross_entropy` ignores


@dataclass(frozen=True, eq=False)
class GPT2:
    """GPT-2 large: the network, its function from a text to tokens, and the SHA-256 of its weights."""

    network: Any
    encode: Callable[[str], list[int]]
    sha256: str

    @property
    def name(self) -> str:
        """The judge's name in metric rows."""
        return f"gpt2-large-{self.sha256[:8]}"

    @classmethod
    def load(cls, device: torch.device | str = "cpu") -> Self:
        """Load GPT-2 large. Raises InputError if it cannot be found or downloaded, or is another network."""
        try:
            import transformers
        except ImportError:
            raise InputError('judge.gen_ppl: needs transformers: pip install "pairflow[text]"') from None
        folder = local_copy([FOLDER]) or _download()
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        try:
            config = transformers.GPT2Config.from_pretrained(folder, local_files_only=True)
            for key, expected in LARGE.items():
                if (actual := getattr(config, key)) != expected:
                    raise InputError(f"{folder}: not GPT-2 large: {key} is {actual}, expected {expected}")
            network = transformers.GPT2LMHeadModel.from_pretrained(
                folder, config=config, local_files_only=True, use_safetensors=True, dtype=torch.float32
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(f"{folder}: not GPT-2 large: {str(error).splitlines()[0]}") from None
        network = network.to(device).eval()
        return cls(network, lambda text: list(tokenizer(text)["input_ids"]), digest(folder / WEIGHTS))

    @torch.inference_mode()
    def perplexity(self, texts: Sequence[str], length: int) -> float:
        """Return exp of the mean negative log-probability of every token but the first of each text.

        Only the first `length` tokens of a text count. NaN if no text has two tokens. Raises InputError if
        `length` is more than GPT-2 reads.
        """
        config = self.network.config
        if length > config.n_positions:
            raise InputError(f"judge.gen_ppl: GPT-2 reads {config.n_positions} tokens, rows have {length}")
        rows = [torch.tensor(self.encode(text)[:length]) for text in texts]
        rows = [row for row in rows if len(row) > 1]
        at_once = max(1, _LOGITS // (length * config.vocab_size))
        batches = [rows[first : first + at_once] for first in range(0, len(rows), at_once)]
        total = sum(self._sum_nll(batch) for batch in batches)
        count = sum(len(row) - 1 for row in rows)
        return float(torch.tensor(total / count).exp()) if count else float("nan")

    def _sum_nll(self, rows: list[Tensor]) -> float:
        """Sum -log p over all tokens but the first of each row. Rows are padded at their end, where the
        network, which is causal, does not look."""
        tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=_NONE)
        tokens = tokens.to(self.network.device)
        logits = self.network(tokens.clamp(min=0)).logits[:, :-1].float()
        losses = F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], ignore_index=_NONE, reduction="none")
        return float(losses.sum(dtype=torch.float64))


def _download() -> Path:
    """Download GPT-2 large to Hugging Face's cache, where a large file's name is its published SHA-256."""
    import huggingface_hub

    name, revision = PUBLISHED
    try:
        folder = huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=list(FILES))
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot download {name} ({type(error).__name__}); try again, or put its files into a folder "
            f"{FOLDER} and set {DATA_DIR} to the folder that holds it"
        ) from None
    weights = Path(folder, WEIGHTS)
    if (published := weights.resolve().name) != digest(weights):
        raise InputError(f"{weights}: wrong checksum, expected SHA-256 {published}")
    return Path(folder)
