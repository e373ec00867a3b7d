"""Extractors: the classifiers, Inception and DINOv2 with random weights on disk, checksums."""

import json
from dataclasses import replace

import numpy as np
import pytest
import requests
import torch

from pairflow.artifacts import digest
from pairflow.data import download
from pairflow.errors import InputError
from pairflow.kinds.images import extractors
from pairflow.kinds.images.extractors import DEVIATION, MEAN, DinoV2
from pairflow.kinds.images.settings import CLASSIFIERS, ExtractorSettings

[FILE] = extractors.INCEPTION.names


def images(rows: int, height: int = 8, width: int = 8, channels: int = 1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (rows, height, width, channels), dtype=np.uint8)


@pytest.fixture(scope="module")
def inception_file(tmp_path_factory):
    """Random weights of FID's Inception, without its constructor's download."""
    from pytorch_fid import inception

    torch.manual_seed(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inception, "load_state_dict_from_url", lambda *_, **__: None)
        patch.setattr(torch.nn.Module, "load_state_dict", lambda *_: None)
        network = inception.fid_inception_v3()
    path = tmp_path_factory.mktemp("weights") / "inception.pth"
    torch.save(network.state_dict(), path)
    return path


@pytest.mark.parametrize(
    ("name", "size", "accuracy", "feature"),
    [
        ("digits", 8, 0.95, 1.1263365514),
        ("mnist_binary", 28, 0.9764, 0.3185449507),
        ("mnist", 32, 0.9728, 0.4454903125),
    ],
)
def test_a_classifier_that_comes_with_pairflow_is_the_same_on_every_machine(name, size, accuracy, feature):
    """Features of a diagonal line are known numbers: sums in float64, rounded to float32 at the end."""
    path = extractors.SHIPPED / f"{name}.safetensors"
    assert path.stat().st_size < 600_000
    assert digest(path) == CLASSIFIERS[name]
    extractor = extractors.load(ExtractorSettings(extractor="classifier", weights=name))
    assert extractor.name == f"classifier-{CLASSIFIERS[name][:8]}"
    assert extractor.distance == "fd"
    assert json.loads(path.with_suffix(".json").read_text())["accuracy"] == accuracy
    line = 255 * np.eye(size, dtype=np.uint8)[None, :, :, None]
    features, probabilities = extractor(line)
    assert probabilities is None
    assert np.square(features, dtype=np.float64).mean() == pytest.approx(feature, rel=1e-6)


def test_a_classifier_that_is_damaged_or_does_not_fit_is_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"extractor classifier: expected --weights, .*; found none"):
        extractors.load(ExtractorSettings())
    with pytest.raises(InputError, match="made for images of 8 x 8 x 1, found 4 x 8 x 3"):
        extractors.load(ExtractorSettings(weights="digits"))(images(2, height=4, channels=3))
    whole = (extractors.SHIPPED / "digits.safetensors").read_bytes()
    (tmp_path / "digits.safetensors").write_bytes(whole[:-1] + b"x")
    monkeypatch.setattr(extractors, "SHIPPED", tmp_path)
    with pytest.raises(InputError, match=rf"expected SHA-256 {CLASSIFIERS['digits']} \(the classifier that"):
        extractors.load(ExtractorSettings(weights="digits"))


def test_inception_is_pytorch_fids(inception_file, monkeypatch, float32_error):
    """Its features, of one channel thrice; without the published weights nothing is called FID."""
    from pytorch_fid import inception

    weights = {"weights": str(inception_file), "sha256": digest(inception_file)}
    extractor = extractors.load(ExtractorSettings(extractor="inception", **weights))
    assert extractor.name == f"inception-{digest(inception_file)[:8]}"
    assert (extractor.distance, extractor.dimension) == ("fd", 2048)
    features, probabilities = extractor(images(3))
    assert features.shape == (3, 2048)
    assert probabilities is None
    weights = torch.load(inception_file, weights_only=True)
    monkeypatch.setattr(inception, "load_state_dict_from_url", lambda *_, **__: weights)
    network = inception.InceptionV3([3]).eval()
    grey = torch.from_numpy(images(3)).permute(0, 3, 1, 2).float() / 255
    with torch.inference_mode():
        expected = network(torch.cat([grey, grey, grey], dim=1))[0][:, :, 0, 0]
    # Up to 3 x 3 x 448 terms in a convolution, and about 20 of these one after the other.
    allowed = float32_error(4032, layers=20) * expected.abs().max().item()
    np.testing.assert_allclose(features, expected.numpy(), rtol=0, atol=allowed)


def test_the_published_weights_make_it_fid_and_is(inception_file, monkeypatch, tmp_path, float32_error):
    """From a path, or from the data directory under the published name; the logits go without a bias."""
    monkeypatch.setattr(extractors, "INCEPTION", replace(extractors.INCEPTION, sha256=digest(inception_file)))
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(tmp_path))
    (tmp_path / FILE).symlink_to(inception_file)
    for weights in (str(inception_file), None):
        extractor = extractors.load(ExtractorSettings(extractor="inception", weights=weights))
        assert extractor.name == "inception"
        assert extractor.distance == "fid"
    features, probabilities = extractor(images(2, channels=3))
    head = torch.load(inception_file, weights_only=True)["fc.weight"].numpy()
    logits = features.astype(np.float64) @ head.T
    expected = np.exp(logits - logits.max(1, keepdims=True))
    allowed = float32_error(2048) * max(1.0, np.abs(logits).max())  # a logit adds 2,048 terms
    np.testing.assert_allclose(probabilities, expected / expected.sum(1, keepdims=True), rtol=allowed)
    assert probabilities.shape == (2, 1008)


def test_weights_of_another_checksum_or_content_are_refused(tmp_path):
    path = tmp_path / "weights.pth"
    torch.save({"a": torch.zeros(2)}, path)
    for name, sha256, message in (
        ("inception", None, rf"{path}: expected .* \(the published weights\), found {digest(path)}; to use"),
        ("dinov2", "0" * 64, r"expected SHA-256 0{64} \(features.sha256\), found \w{64}$"),
        ("inception", digest(path), "weights.pth: not the weights of pytorch-fid's Inception$"),
        ("dinov2", digest(path), "weights.pth: not the weights of a DINOv2 ViT-S, B or L without registers$"),
    ):
        with pytest.raises(InputError, match=message):
            extractors.load(ExtractorSettings(extractor=name, weights=str(path), sha256=sha256))


@pytest.mark.parametrize("name", ["inception", "dinov2"])
def test_a_failed_download_is_one_line_that_says_what_to_do(cache, monkeypatch, name):
    published = getattr(extractors, name.upper())

    def fail(url, **_):
        assert url == published.url
        raise requests.ConnectionError()

    monkeypatch.setattr(download.pooch, "retrieve", fail)
    message = r"cannot download http.*\.pth \(ConnectionError: \); try again, or put the file, named .*\.pth"
    with pytest.raises(InputError, match=message):
        extractors.load(ExtractorSettings(extractor=name))
    cache.mkdir()
    published.cached_copy.write_bytes(b"other weights")
    monkeypatch.setattr(download.pooch, "retrieve", lambda *_, **__: None)
    with pytest.raises(InputError, match=rf"\.pth: wrong checksum, expected SHA-256 {published.sha256}"):
        extractors.load(ExtractorSettings(extractor=name))


def random_dinov2(grid: int) -> DinoV2:
    """A tiny one, of 4 x 4 patches of 56 pixels, with positions for grid x grid of them."""
    torch.manual_seed(0)
    network = DinoV2(width=128, depth=2, hidden=64, patch=56, positions=1 + grid**2)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return network.eval()


def test_dinov2_is_torchvisions_transformer_with_a_scale_per_channel(float32_error):
    """With the scales at 1 the two are one network, under other names."""
    from torchvision.models import VisionTransformer

    ours = random_dinov2(grid=4)
    for block in ours.blocks:
        block.ls1["gamma"].data.fill_(1)
        block.ls2["gamma"].data.fill_(1)
    theirs = VisionTransformer(224, 56, num_layers=2, num_heads=2, hidden_dim=128, mlp_dim=64).eval()
    theirs.heads = torch.nn.Identity()
    names = {
        **{"cls_token": "class_token", "pos_embed": "encoder.pos_embedding", "patch_embed.proj": "conv_proj"},
        **{"norm1": "ln_1", "norm2": "ln_2", "mlp.fc1": "mlp.0", "mlp.fc2": "mlp.3"},
        **{"attn.qkv.": "self_attention.in_proj_", "attn.proj": "self_attention.out_proj"},
        "blocks.": "encoder.layers.encoder_layer_",
    }
    weights = {}
    for name, value in ours.state_dict().items():
        if name.startswith("mask") or ".ls" in name:
            continue
        name = name.replace("norm.", "encoder.ln.") if name.startswith("norm.") else name
        for old, new in names.items():
            name = name.replace(old, new)
        weights[name] = value
    theirs.load_state_dict(weights)
    inputs = torch.rand(2, 3, 224, 224)
    normal = (inputs - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(DEVIATION).view(3, 1, 1)
    with torch.inference_mode():
        expected = theirs(normal)
    # The patches add 3 x 56 x 56 terms, twelve sums come after that.
    allowed = float32_error(3 * 56**2, layers=12) * expected.abs().max().item()
    torch.testing.assert_close(ours(inputs), expected, rtol=0, atol=allowed)


def test_dinov2s_positions_come_from_a_grid_of_another_size(float32_error):
    """A constant is one on any grid; away from the rim a slope is one, of the authors' 37 / 16.1 per cell."""
    network = random_dinov2(grid=37)
    network.pos_embed.data[:, 1:] = torch.arange(37.0).repeat(37)[:, None]
    actual = network._positions(16)[0, 1:, 0].view(16, 16)
    assert network._positions(16).shape == (1, 257, 128)
    close = float32_error(16, layers=4)  # 4 x 4 bicubic weights that are made of three products each
    torch.testing.assert_close(actual, actual[:1].expand(16, 16), rtol=0, atol=36 * close)
    slope = (torch.arange(16) + 0.5) * 37 / 16.1 - 0.5
    torch.testing.assert_close(actual[0, 2:-2], slope[2:-2], rtol=0, atol=0.07)
    network.pos_embed.data[:, 1:] = 3
    constant = torch.full((1, 256, 128), 3.0)
    torch.testing.assert_close(network._positions(16)[:, 1:], constant, rtol=0, atol=3 * close)


def test_dinov2_from_a_file(tmp_path, monkeypatch, float32_error):
    """Weights of one's own with their checksum, or the published ones in the data directory."""
    path = tmp_path / extractors.DINOV2.names[0]
    network = random_dinov2(grid=5)
    torch.save(network.state_dict(), path)
    extractors.load(ExtractorSettings(extractor="dinov2", weights=str(path), sha256=digest(path)))
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(tmp_path))
    with pytest.raises(InputError, match=rf"expected SHA-256 {extractors.DINOV2.sha256} \(the published"):
        extractors.load(ExtractorSettings(extractor="dinov2"))
    monkeypatch.setattr(extractors, "DINOV2", replace(extractors.DINOV2, sha256=digest(path)))
    extractor = extractors.load(ExtractorSettings(extractor="dinov2"))
    assert extractor.name == f"dinov2-{digest(path)[:8]}"
    assert (extractor.dimension, extractor.all_rows, extractor.distance) == (128, True, "fd")
    features, probabilities = extractor(images(3, channels=3))
    assert probabilities is None
    with torch.inference_mode():
        expected = network(torch.from_numpy(images(3, channels=3)).permute(0, 3, 1, 2).float() / 255)
    allowed = float32_error(3 * 56**2, layers=12) * expected.abs().max().item()
    np.testing.assert_allclose(features, expected.numpy(), rtol=0, atol=allowed)
