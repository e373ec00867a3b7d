"""The page to look through molecules, in a real browser."""

import re

import pandas as pd
import pytest
from pages import Document, violations
from rdkit import Chem

from pairflow.artifacts import Metadata
from pairflow.kinds.molecules.on_demand.files import writer
from pairflow.kinds.molecules.page.drawing import draw, draw_compact
from pairflow.kinds.molecules.structures.descriptors import describe

HOSTILE = "</script><b>=1+1"
SMILES = [
    "C((",
    "CC(=O)Nc1ccc(O)cc1",
    "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
    "CN1CCC[C@H]1c1cccnc1",
    "C[N+](C)(C)CC(=O)[O-]",
    "COc1ccc2[nH]c(S(=O)Cc3ncc(C)c(OC)c3C)nc2c1",
]
ALERTS = ["", "Brenk: phenol; NIH: amide", "", "Brenk: phenol", "", ""]
NAMES = ["broken", "paracetamol", "ibuprofen", HOSTILE, "betaine", "omeprazole"]
BYTES = 5e6 / 1000  # of a molecule: 1,000 of them and their neighbours are 5 MB at most


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rows = [describe(molecule) if (molecule := Chem.MolFromSmiles(text)) else {} for text in SMILES]
    frame = pd.DataFrame({"name": NAMES, "smiles": SMILES, "alerts": ALERTS}).join(pd.DataFrame(rows))
    nearest = [None, *SMILES[2:], "CCO"]
    beside = {"nearest": nearest, "nearest_name": "", "similarity": [None] + [0.5] * 5}
    return frame.assign(plausible=["no", "yes"] * 3, **beside)


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    """The same table as a page, as CSV and without its properties as SMILES."""
    folder = tmp_path_factory.mktemp("written")
    made = Metadata(
        kind="molecules",
        parameters={"model": "zinc250k", "method": "udlm", "seed": 0, "novel": True, "smarts": ["C=O"]}
        | {"greedy_tail": False},
    )
    for suffix in ("html", "csv", "smi"):
        path = folder / f"x.{suffix}"
        writer(path, True, suffix != "smi")(path, table, made)
    return {path.suffix: path.read_text() for path in folder.iterdir()}


def names(page) -> list[str]:
    return page.locator(".card:not([hidden]) > b").all_inner_texts()


def counts(page) -> str:
    return page.locator("#counts").inner_text()


def saved(page, suffix: str) -> str:
    with page.expect_download() as found:
        page.get_by_role("button", name=suffix).click()
    assert found.value.suggested_filename == f"molecules{suffix}"
    return found.value.path().read_text()


def test_molecules_are_searched_sorted_and_filtered(files, open_page):
    page = open_page(files[".html"])
    assert (names(page), counts(page)) == (NAMES, "6 of 6 shown, 0 selected")
    page.get_by_role("searchbox").fill("cc(=o) BRENK")
    assert names(page) == ["paracetamol"]
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Sort by").select_option("weight (g/mol)")
    by_weight = ["betaine", "paracetamol", HOSTILE, "ibuprofen", "omeprazole", "broken"]
    assert names(page) == by_weight
    page.get_by_label("Order").select_option("descending")
    assert names(page) == [*by_weight[4::-1], "broken"]
    page.get_by_text("Filters", exact=True).click()
    page.get_by_label("weight (g/mol) at most").fill("163")
    assert names(page) == [HOSTILE, "paracetamol", "betaine"]
    page.get_by_label("NIH: amide (1)").check()
    assert names(page) == [HOSTILE, "betaine"]
    page.get_by_label("any alert").check()
    assert (names(page), counts(page)) == (["betaine"], "1 of 6 shown, 0 selected")
    page.locator("#ranges select").select_option("yes")
    assert page.get_by_text("No molecule passes").is_visible()
    page.get_by_role("button", name="Reset").click()
    page.get_by_text("6 of 6 shown").wait_for()
    assert names(page) == NAMES


def test_keys_lead_select_open_and_a_selection_is_saved(files, open_page):
    page = open_page(files[".html"])
    assert saved(page, ".csv") == files[".csv"]
    assert saved(page, ".smi") == files[".smi"]
    page.locator("#cards [tabindex='0']").focus()
    for key in ("ArrowRight", "Space", "ArrowRight", "ArrowDown", "ArrowUp", "ArrowDown", "Space", "Enter"):
        page.keyboard.press(key)
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("heading").inner_text() == "betaine"
    assert dialog.get_by_role("img").count() == 2
    assert dialog.locator("dd").first.inner_text() == SMILES[4]
    page.keyboard.press("ArrowRight")
    assert dialog.get_by_role("heading").inner_text() == "omeprazole"
    page.keyboard.press("Escape")
    page.locator("#card5:focus").wait_for()
    assert counts(page) == "6 of 6 shown, 2 selected"
    assert saved(page, ".smi") == f"{SMILES[1]} paracetamol\n{SMILES[4]} betaine\n"
    page.get_by_role("searchbox").fill("betaine")
    lines = files[".csv"].splitlines()
    assert saved(page, ".csv").splitlines() == [lines[0], lines[5], lines[2]]
    page.locator(".card:not([hidden]) > b").click()
    assert counts(page) == "1 of 6 shown, 1 selected"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_page_fits_and_is_accessible(files, open_page, width, scheme):
    page = open_page(files[".html"], width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.get_by_text("Filters", exact=True).click()
    assert violations(page) == []
    page.locator(".pictures path").first.wait_for()
    boxes = [svg.bounding_box() for svg in page.locator(".pictures figure:first-child svg").all()]
    assert len(boxes) == 5
    assert min(box["width"] for box in boxes) > 280
    shown = page.locator(".card .values").all_inner_texts()
    assert sum("alerts Brenk: phenol, NIH: amide" in text for text in shown) == 1
    assert sum("alerts none" in text for text in shown) == 4
    page.locator(".pictures").first.click()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_page_says_how_its_molecules_were_made_and_is_small(files, table):
    html = files[".html"]
    words = Document(html).words()  # no tag of a name is one of the page's
    assert "6 molecules model zinc250k method udlm novel smarts C=O no greedy tail " in words
    assert "QED : drug-likeness, from 0 to 1 SA score : " in words  # what the values mean
    assert "noise : the share" not in words
    content = re.search(r'id="content">(.*?)</script>', html, re.DOTALL)[1]
    assert len(content) < len(table) * BYTES


def test_a_variant_is_beside_its_seed(open_page, tmp_path):
    frame = pd.DataFrame({"name": ["a", "b"], "smiles": ["CCO", "CCN"], "seed": "CCC"})
    frame = frame.assign(seed_name=["hit 7", ""], seed_similarity=[0.5, 0.25])
    writer(tmp_path / "x.html", True, True)(
        tmp_path / "x.html", frame, Metadata(kind="molecules", parameters={})
    )
    page = open_page((tmp_path / "x.html").read_text())
    captions = page.locator("figcaption").all_inner_texts()
    assert captions == ["seed: hit 7, similarity 0.500", "seed: without a name, similarity 0.250"]
    page.locator(".card").first.click()
    assert page.get_by_role("dialog").get_by_role("img").count() == 2


@pytest.mark.parametrize("smiles", SMILES[1:])
def test_a_compact_drawing_has_the_bonds_and_letters_of_rdkits(smiles):
    molecule = Chem.MolFromSmiles(smiles)
    svg = draw(molecule, 600, 440, bond=56, line=3, text=True)
    bonds = re.findall(r"class='bond-\d+ [^>]* d='M ([\d.]+),([\d.]+) ", svg)
    lines, areas, letters = draw_compact(molecule)
    starts = re.findall(r"M(-?\d+)[ -]?(\d+)", "".join(path for _, path in lines + areas))
    assert sorted(starts) == sorted((str(round(float(x))), str(round(float(y)))) for x, y in bonds)
    assert "".join(letter for *_, letter in letters) == "".join(re.findall(r">([^<\s])</text>", svg))
