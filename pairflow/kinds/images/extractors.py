"""Networks whose features are used to compare images ("extractors").

The Fréchet distance is called FID only for features of the Inception network with FID's published weights.
With other networks it is called `fd`, and metric rows name the network in the column `extractor`. See
docs/method.md, "Distances between images".

The folder `SHIPPED` has small classifiers, whose features have a mean square of 1 over training images.
They compute in double precision, so that distances are the same on every machine, to more digits than a
report prints; their files hold weights in half precision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from pairflow.artifacts import digest, read_object
from pairflow.data.download import RawFile
from pairflow.errors import InputError
from pairflow.kinds.images.settings import ExtractorSettings

SHIPPED = Path(__file__).parent / "classifiers"
BATCH = 64  # images at a time
DIMENSION = 64  # features of the classifier
_INCEPTION = "pt_inception-2015-12-05-6726825d.pth"
INCEPTION = RawFile(
    (_INCEPTION,),
    f"https://github.com/mseitzer/pytorch-fid/releases/download/fid_weights/{_INCEPTION}",
    sha256="6726825d0af5f729cebd5821db510b11b1cfad8faad88a03f1befd49fb9129b2",
)
_DINOV2 = "dinov2_vitl14_pretrain.pth"  # ViT-L/14, without registers
DINOV2 = RawFile(
    (_DINOV2,),
    f"https://dl.fbaipublicfiles.com/dinov2/dinov2_vitl14/{_DINOV2}",
    sha256="d5383ea8f4877b2472eb973e0fd72d557c7da5d3611bd527ceeb1d7162cbf428",
)

SIDE = 224  # pixels of the resized image
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's
_HEAD = 64  # width of an attention head in every published size
_OFFSET = 0.1  # grid cells that DINOv2's authors add when they interpolate positions

# Images (B, channels, H, W) in [0, 1] -> features (B, D), and class probabilities (B, classes) or None.
Network = Callable[[Tensor], tuple[Tensor, Tensor | None]]


@dataclass(frozen=True)
class Extractor:
    """A network that turns images into features, by which they are compared.

    Attributes:
        name: its name in metric rows, with 8 digits of the weights' SHA-256 unless the weights are FID's.
        dimension: D, the number of features.
        network: a function from images to their features, and to class probabilities or None.
        distance: the name of the Fréchet distance of its features.
        shape: the only (channels, H, W) that the network takes; None for any.
        all_rows: whether the features of every training image are stored, to find the nearest.
    """

    name: str
    dimension: int
    network: Network
    distance: str = "fd"
    shape: tuple[int, int, int] | None = None
    all_rows: bool = False
    device: torch.device | str = "cpu"

    @torch.inference_mode()
    def __call__(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Compute features (B, D), and class probabilities (B, classes) or None, of `images` uint8 (B, H,
        W, C). Raises InputError for images of a shape that the network does not take."""
        _, height, width, channels = images.shape
        if self.shape not in (None, (channels, height, width)):
            sizes = f"{_size(self.shape)}, found {_size((channels, height, width))}"
            raise InputError(f"extractor {self.name}: made for images of {sizes}")
        inputs = as_input(images).to(self.device)
        if self.shape is None and channels == 1:
            inputs = inputs.expand(-1, 3, -1, -1)
        features, probabilities = self.network(inputs)
        return features.float().cpu().numpy(), None if probabilities is None else probabilities.cpu().numpy()


def load(settings: ExtractorSettings, device: torch.device | str = "cpu") -> Extractor:
    """Load the extractor that the settings name. Raises InputError for weights that are missing or damaged,
    or that have an unexpected checksum."""
    return EXTRACTORS[settings.extractor](settings, device)


class Classifier(nn.Module):
    """A small network from images (B, C, H, W) in [0, 1] to features (B, 64); `head` gives class logits."""

    def __init__(self, shape: tuple[int, int, int], classes: int):
        super().__init__()
        channels, height, width = shape
        after = 64 * (-(-height // 4)) * (-(-width // 4))
        self.features = nn.Sequential(
            nn.Conv2d(channels, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(after, DIMENSION),
        )
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(DIMENSION, classes))

    def forward(self, images: Tensor) -> Tensor:
        return self.features(2 * images - 1)


class TransformerBlock(nn.Module):
    """A block of a transformer, (B, L, width) to the same shape: attention, then two linear layers (`mlp`).

    Each part normalises its input, and adds its output, scaled per channel by `ls1` or `ls2`, to the input.
    """

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.heads = max(1, width // _HEAD)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "proj": nn.Linear(width, width)})
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(width, hidden), "fc2": nn.Linear(hidden, width)})
        self.ls1 = nn.ParameterDict({"gamma": torch.ones(width)})
        self.ls2 = nn.ParameterDict({"gamma": torch.ones(width)})

    def forward(self, x: Tensor) -> Tensor:  # (B, L, width)
        qkv = self.attn["qkv"](self.norm1(x)).unflatten(-1, (3, self.heads, -1))
        attended = F.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4))  # (B, heads, L, width / heads)
        x = x + self.ls1["gamma"] * self.attn["proj"](attended.transpose(1, 2).flatten(2))
        return x + self.ls2["gamma"] * self.mlp["fc2"](F.gelu(self.mlp["fc1"](self.norm2(x))))


class DinoV2(nn.Module):
    """DINOv2, the vision transformer of Oquab et al. 2023, from images (B, 3, H, W) in [0, 1] to (B, width).

    It returns the class token after the last norm, and takes the published weights of ViT-S/14, B/14 and L/14
    without registers: https://github.com/facebookresearch/dinov2. Every size is read from the weights.
    """

    def __init__(self, width: int, depth: int, hidden: int, patch: int, positions: int):
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, positions, width))
        self.mask_token = nn.Parameter(torch.zeros(1, width))  # in the published files, unused here
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, width, patch, stride=patch)})
        self.blocks = nn.ModuleList(TransformerBlock(width, hidden) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.mean: Tensor
        self.deviation: Tensor
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(DEVIATION).view(3, 1, 1), persistent=False)

    @classmethod
    def from_weights(cls, weights: dict[str, Tensor]) -> "DinoV2":
        """Make the network of these weights, by their names in the published file. Raises KeyError or
        RuntimeError if they are not DINOv2's."""
        network = cls(
            width=weights["cls_token"].shape[-1],
            depth=sum(name.endswith(".norm1.weight") for name in weights),
            hidden=len(weights["blocks.0.mlp.fc1.bias"]),
            patch=weights["patch_embed.proj.weight"].shape[-1],
            positions=weights["pos_embed"].shape[1],
        )
        network.load_state_dict(weights)
        return network.eval()

    def forward(self, images: Tensor) -> Tensor:
        images = F.interpolate(images, (SIDE, SIDE), mode="bicubic", antialias=True).clamp(0, 1)
        grid = self.patch_embed["proj"]((images - self.mean) / self.deviation)  # (B, width, h, w)
        x = torch.cat([self.cls_token.expand(len(grid), -1, -1), grid.flatten(2).transpose(1, 2)], dim=1)
        x = x + self._positions(grid.shape[-1])
        for block in self.blocks:
            x = block(x)
        return self.norm(x)[:, 0]

    def _positions(self, side: int) -> Tensor:
        """Return the embedding (1, 1 + side^2, width) of the class token and of each position,
        interpolated from the square grid of the weights to side x side."""
        stored = round((self.pos_embed.shape[1] - 1) ** 0.5)
        if stored == side:
            return self.pos_embed
        grid = self.pos_embed[:, 1:].unflatten(1, (stored, stored)).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, scale_factor=(side + _OFFSET) / stored, mode="bicubic")
        return torch.cat([self.pos_embed[:, :1], grid.flatten(2).transpose(1, 2)], dim=1)


def as_input(images: np.ndarray) -> Tensor:
    """Turn images uint8 (B, H, W, C) into the input of a network: float (B, C, H, W) in [0, 1]."""
    return torch.from_numpy(images).permute(0, 3, 1, 2) / 255


def _classifier(settings: ExtractorSettings, device: torch.device | str) -> Extractor:
    if settings.weights is None:
        raise InputError("extractor classifier: expected --weights, the name of a classifier; found none")
    path = SHIPPED / f"{settings.weights}.safetensors"
    again = "; install pairflow again"
    sha256 = _verified(path, str(settings.sha256), "the classifier that comes with pairflow", again)
    facts = read_object(path.with_suffix(".json"))
    network = Classifier(facts["shape"], facts["classes"])
    network.load_state_dict(load_file(path))
    network = network.double().eval().to(device)
    return Extractor(
        name=f"classifier-{sha256[:8]}",
        dimension=DIMENSION,
        network=lambda images: (network(images.double()), None),
        shape=tuple(facts["shape"]),
        device=device,
    )


def _inception(settings: ExtractorSettings, device: torch.device | str) -> Extractor:
    """Load pytorch-fid's Inception, which resizes images to 299 x 299 bilinearly: 2,048 features.

    The published weights also give probabilities of 1,008 classes, computed without the bias of the last
    layer, as in the original Inception Score.
    """
    from pytorch_fid import inception

    path, sha256 = _file(settings, INCEPTION)
    weights = _read(path)
    try:
        # Otherwise pytorch-fid downloads the weights itself, without a checksum.
        with mock.patch.object(inception, "load_state_dict_from_url", return_value=weights):
            network = inception.InceptionV3().to(device).eval()
        head = weights["fc.weight"].T.to(device)
    except (KeyError, RuntimeError) as error:
        raise InputError(f"{path}: not the weights of pytorch-fid's Inception") from error

    def run(images: Tensor) -> tuple[Tensor, Tensor | None]:
        features = network(images)[0].flatten(1)
        return features, torch.softmax(features @ head, dim=1) if published else None

    published = sha256 == INCEPTION.sha256
    if published:
        return Extractor("inception", 2048, run, distance="fid", device=device)
    return Extractor(f"inception-{sha256[:8]}", 2048, run, device=device)


def _dinov2(settings: ExtractorSettings, device: torch.device | str) -> Extractor:
    """Load DINOv2, by default ViT-L/14, whose class token has 1,024 features."""
    path, sha256 = _file(settings, DINOV2)
    try:
        network = DinoV2.from_weights(_read(path)).to(device)
    except (KeyError, RuntimeError) as error:
        raise InputError(f"{path}: not the weights of a DINOv2 ViT-S, B or L without registers") from error
    name, dimension = f"dinov2-{sha256[:8]}", network.cls_token.shape[-1]
    return Extractor(name, dimension, lambda images: (network(images), None), all_rows=True, device=device)


EXTRACTORS = {"classifier": _classifier, "inception": _inception, "dinov2": _dinov2}


def _file(settings: ExtractorSettings, published: RawFile) -> tuple[Path, str]:
    """Find the file of weights that the settings name, or the published one. Returns its path and its
    SHA-256; raises InputError if the file has another checksum than expected."""
    path = Path(settings.weights) if settings.weights else published.fetch()
    if settings.sha256:
        return path, _verified(path, settings.sha256, "features.sha256")
    advice = "; to use other weights, give their checksum as features.sha256"
    return path, _verified(path, str(published.sha256), "the published weights", advice)


def _verified(path: Path, expected: str, origin: str, advice: str = "") -> str:
    """Return a file's SHA-256. Raises InputError unless it is `expected`. The message names the `origin` of
    the expected checksum, and ends in `advice`."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    sha256 = digest(path)
    if sha256 != expected:
        raise InputError(f"{path}: expected SHA-256 {expected} ({origin}), found {sha256}{advice}")
    return sha256


def _read(path: Path) -> dict[str, Tensor]:
    try:
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file makes pickle and zipfile raise errors of many types
        raise InputError(f"{path}: not a file of weights ({type(error).__name__})") from error
    if not isinstance(weights, dict):
        raise InputError(f"{path}: not a file of weights, it holds a {type(weights).__name__}")
    return weights


def _size(shape: tuple[int, int, int]) -> str:
    channels, height, width = shape
    return f"{height} x {width} x {channels}"
