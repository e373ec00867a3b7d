"""The generative perplexity, on a tiny made GPT-2 with random weights and a tokeniser of its own."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from in_ci import IN_CI

from pairflow.artifacts import digest
from pairflow.errors import InputError
from pairflow.kinds.text import gpt2

TINY = {"n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": 24, "vocab_size": 280}
TEXTS = ["the cat sat on the mat", "", "a", "the mat, the mat, the mat and the cat that sat on it", "cat cat"]
LENGTH = 9

installed = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None and not IN_CI,
    reason="the package transformers is not installed",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder as that of GPT-2 large: sizes, weights in safetensors, a byte-level tokeniser."""
    import tokenizers
    import transformers

    folder = tmp_path_factory.mktemp("data") / "gpt2-large"
    torch.manual_seed(0)
    config = transformers.GPT2Config(**TINY, initializer_range=0.5)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer, size = tokenizers.ByteLevelBPETokenizer(), TINY["vocab_size"]
    tokenizer.train_from_iterator(TEXTS * 9, vocab_size=size, min_frequency=1, show_progress=False)
    tokenizer.save_model(str(folder))
    return folder


@pytest.fixture
def tiny(folder, monkeypatch):
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(folder.parent))
    monkeypatch.setattr(gpt2, "LARGE", TINY)
    return gpt2.GPT2.load()


def naive_perplexity(model: gpt2.GPT2, texts: list[str], length: int) -> float:
    """Text by text and token by token in float64: a forward pass for the tokens before each one."""
    network, total, count = model.network.double(), 0.0, 0
    for text in texts:
        tokens = model.encode(text)[:length]
        for place in range(1, len(tokens)):
            with torch.no_grad():
                logits = network(torch.tensor([tokens[:place]])).logits[0, -1]
            total -= float(torch.log_softmax(logits, 0)[tokens[place]])
            count += 1
    return float(np.exp(total / count))


@installed
@pytest.mark.parametrize("held", [2**26, 2 * LENGTH * TINY["vocab_size"], 1])
def test_a_tiny_made_gpt2_gives_the_perplexity_of_a_naive_computation(tiny, monkeypatch, held):
    """For any size of batches; texts without a second token do not count, and long ones are truncated."""
    monkeypatch.setattr(gpt2, "_LOGITS", held)
    assert max(len(tiny.encode(text)) for text in TEXTS) > LENGTH
    found = tiny.perplexity(TEXTS, LENGTH)
    assert found == pytest.approx(naive_perplexity(tiny, TEXTS, LENGTH), rel=1e-5)
    assert found != pytest.approx(tiny.perplexity(TEXTS, LENGTH + 3), rel=1e-5)
    assert np.isnan(tiny.perplexity(["", "a"], LENGTH))


@installed
def test_it_is_named_by_the_hash_of_its_weights(tiny, folder):
    assert tiny.name == f"gpt2-large-{digest(folder / 'model.safetensors')[:8]}"
    with pytest.raises(InputError, match="GPT-2 reads 24 tokens, rows have 25"):
        tiny.perplexity(TEXTS, 25)


@installed
def test_another_network_and_an_incomplete_folder_are_refused(folder, tmp_path, monkeypatch):
    """Only under GPT-2 large the metric may be called gen_ppl."""
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(folder.parent))
    with pytest.raises(InputError, match="not GPT-2 large: n_layer is 2, expected 36"):
        gpt2.GPT2.load()
    monkeypatch.setattr(gpt2, "LARGE", TINY)
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(tmp_path))
    (tmp_path / "gpt2-large").mkdir()
    with pytest.raises(InputError, match=f"{tmp_path}/gpt2-large: not GPT-2 large: "):
        gpt2.GPT2.load()


@installed
def test_a_download_is_checked_by_its_published_checksum(folder, tmp_path, monkeypatch):
    """The cache has a link to each file, which is named by the SHA-256 that the publisher gives."""
    import huggingface_hub

    monkeypatch.delenv("PAIRFLOW_DATA_DIR", raising=False)
    monkeypatch.setattr(gpt2, "LARGE", TINY)
    asked = {}

    def fetch(name: str, revision: str, **_) -> str:
        asked.update(name=name, revision=revision)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    for name in ("config.json", "vocab.json", "merges.txt"):
        (tmp_path / name).symlink_to(folder / name)
    weights, blobs = folder / "model.safetensors", tmp_path / "blobs"
    blobs.mkdir()
    (blobs / digest(weights)).write_bytes(weights.read_bytes())
    (tmp_path / "model.safetensors").symlink_to(blobs / digest(weights))
    assert gpt2.GPT2.load().sha256 == digest(weights)
    assert asked == {"name": "openai-community/gpt2-large", "revision": gpt2.PUBLISHED[1]}
    (blobs / digest(weights)).write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(InputError, match=f"wrong checksum, expected SHA-256 {digest(weights)}"):
        gpt2.GPT2.load()

    def fail(*_, **__):
        raise OSError("offline")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(InputError, match="put its files into a folder gpt2-large and set PAIRFLOW_DATA_DIR"):
        gpt2.GPT2.load()


def test_without_the_package_the_command_to_install_it_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(InputError, match=r'gen_ppl: needs transformers: pip install "pairflow\[text\]"'):
        gpt2.GPT2.load()
