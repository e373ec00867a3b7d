"""`pairflow new`: a file of molecules to an experiment that the workflow accepts."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from click.testing import CliRunner
from rdkit import Chem

from pairflow.cli import main
from pairflow.config.file import read as read_configuration
from pairflow.estimate import forecast
from pairflow.estimate.rates import Rate
from pairflow.kinds import source_of
from pairflow.kinds.molecules.data import draft
from pairflow.kinds.molecules.data.data_sets import DATA_SETS as MOLECULES
from pairflow.kinds.molecules.data.library import read_rows
from pairflow.steps.new import name_of

SHIPPED = Path(__file__).parent.parent.parent / "workflow_config.yaml"
SMILES = [row.text for row in read_rows(MOLECULES["small_molecules"].fetch())][:300]
ODD = [*SMILES, "x", "C1CC", "OCC", "CC(=O)[O-].[Na+]"]
RINGS = "\n".join(f"{'C' * a}1CC1{'C' * b}O" for a in range(1, 13) for b in range(1, 13))


def new(*arguments):
    return CliRunner().invoke(main, ["new", "--no-estimate", *arguments, "--quiet", "--device", "cpu"])


def made(*arguments):
    run = new(*arguments)
    assert run.exit_code == 0, run.stderr
    return run


def experiment(project, name):
    """As the workflow reads it."""
    return read_configuration(project / "workflow_config.yaml").experiments[name]


def test_of_a_large_file_some_rows_are_looked_at(project, monkeypatch):
    monkeypatch.setattr(draft, "_SURVEYED", 150)
    (project / "many.smi").write_text("".join(f"{text}\n" for text in SMILES))
    run = made("many.smi")
    lines = [re.split(r"\s{2,}", line.strip()) for line in run.stdout.splitlines()]
    assert (lines[1], lines[2][:2]) == (["rows", "300"], ["looked at", "150"])
    assert ["for training", "284", "split: random"] in lines  # 142 of 150
    assert experiment(project, "many").description.startswith("about 300 molecules of many.smi, ")


def test_table_entry_and_command(project):
    (project / "my library.smi").write_text("".join(f"{text} mol\n" for text in ODD))
    run = made("my library.smi")
    assert (project / "workflow_config.yaml").read_text() == SHIPPED.read_text()
    lines = [re.split(r"\s{2,}", line.strip()) for line in run.stdout.splitlines()]
    assert lines[0] == ["my library.smi (SMILES, by its suffix)"]
    assert ["unparsable", "2", "the first: line 301, 'x'"] in lines
    assert ["duplicates", "1", "drop_duplicates: true"] in lines
    assert ["of several fragments", "1", "fragments: largest"] in lines
    assert ["distinct molecules", "301"] in lines
    assert ["for training", "285", "split: random"] in lines
    assert run.stdout.splitlines()[-1] == "  pairflow run my_library"
    found = experiment(project, "my_library")
    assert (found.data.source, found.data.length, found.scale) == ("my library.smi", 16, "reduced")
    assert (found.data.fragments, found.data.drop_duplicates) == ("largest", True)
    assert (found.network.name, found.methods) == ("mlp", ("pairflow",))
    assert not found.distillation.model_dump(exclude_none=True)
    assert "Training: mlp, 2,000 iterations on 285 rows of" in run.stdout


def test_rows_that_are_no_molecules_are_rejected_and_other_rules_are_proposed(project):
    odd = ["*CCO", "C[Zn]CC", "CCC(=O)[O-].[Na+]", "C[NH3+].[Cl-]", "CC[NH3+]", "CC[N+](=O)[O-]"]
    (project / "a.smi").write_text("\n".join([*SMILES, *odd]))
    run = new("a.smi")
    lines = [re.split(r"\s{2,}", line.strip()) for line in run.stdout.splitlines()]
    assert ["with an R group or dummy atom", "1", "the first: line 301, '*CCO'"] in lines
    assert ["with metals", "1", "metals: reject"] in lines
    tiny = sum(Chem.MolFromSmiles(text).GetNumHeavyAtoms() < 4 for text in [*SMILES, *odd])
    assert [
        f"Consider --min-heavy-atoms 4: {tiny} molecules are smaller, such as solvents and ions."
    ] in lines
    charged = "3 of the molecules have charges, 2 of them because a counter-ion was removed."
    assert [f"Consider --charges neutralise: {charged}"] in lines
    run = new("a.smi", "--force", "--charges=neutralise", "--min-heavy-atoms=4", "--metals=keep")
    assert "Consider" not in run.stdout
    data = experiment(project, "a").data
    assert (data.metals, data.dummies, data.min_heavy_atoms) == ("keep", "reject", 4)


def test_small_molecules_are_selfies_and_plausible_ones_are_counted(project):
    """Too many atoms are another reason why a row is rejected."""
    (project / "a.smi").write_text("\n".join([*SMILES, "CI(=O)=O", "C" * 20_000, "C" * 4_097]))
    run = new("a.smi")
    assert re.search(r"SELFIES cannot write it +1  the first: line 301, 'CI\(=O\)=O'", run.stdout)
    assert re.search(r"over 4,096 atoms +2 ", run.stdout)
    assert experiment(project, "a").data.representation == "selfies"
    assert experiment(project, "a").chemistry.plausible
    made("a.smi", "--force", "--representation", "smiles")
    assert experiment(project, "a").data.representation == "smiles"


def test_drug_like_molecules_are_groups_unless_they_may_have_several_parts(project):
    """Groups get a transformer though rows are short, the cross-entropy, and temperature 1."""
    (project / "a.smi").write_text("\n".join(drug_like()))
    made("a.smi", "--hours", "0.5")
    found = experiment(project, "a")
    assert (found.data.representation, found.data.length, found.network.name) == ("groups", 24, "transformer")
    main = found.evaluations["main"]
    assert (found.training.loss, found.noise, main.temperature) == ("cross_entropy", "frequencies", 1)
    assert (main.greedy_tail, main.grammar) == (False, True)
    made("a.smi", "--force", "--compare", "--from", "none")
    assert experiment(project, "a").methods == ("udlm", "pairflow")  # DCD needs uniform noise
    made("a.smi", "--force", "--fragments", "keep")
    other = experiment(project, "a")
    assert (other.data.representation, other.training.loss, other.noise) == ("selfies", "nelbo", "uniform")
    made("a.smi", "--force", "--representation", "smiles")
    assert experiment(project, "a").data.representation == "smiles"


def test_the_training_is_fitted_to_the_time(project, monkeypatch):
    """An iteration takes 2 s of one core. On two a transformer is 1.4 times as fast: 0.1 hours have less than
    252."""
    monkeypatch.setattr(forecast, "available_cpus", lambda: 2)
    rates = {"train": 2.0, "dcd": 2.0, "draw": 1e-6, "pair": 1.0}
    monkeypatch.setattr(forecast, "measure", lambda work, *_: Rate(rates[work.kind], 9.0, "x"))
    (project / "a.smi").write_text("\n".join(["C" * 60, *SMILES]))
    options = ("--estimate", "--max-too-long-share", "0", "--force", "--hours")
    run = made("a.smi", *options, "0.1")
    found = experiment(project, "a")
    assert found.network.name == "transformer"
    assert 210 <= found.training.iterations < 252
    assert re.search(r"\nTime: [56]\.?\d* min on .* Training fits into 0\.1 hours with 2[1-5]0", run.stdout)
    made("a.smi", *options, "0.1", "--compare")
    assert 60 <= experiment(project, "a").training.iterations < 150  # and then those of DCD
    assert " 0.01 hours are too short: " in new("a.smi", *options, "0.01").stdout


@pytest.mark.parametrize(("options", "epochs"), [(("--from", "none"), 100), (("--from", "zinc250k"), 40)])
def test_a_training_on_groups_has_no_more_epochs_than_are_worth_it(project, monkeypatch, options, epochs):
    monkeypatch.setattr(forecast, "measure", lambda *_: Rate(1e-4, 9.0, "x"))
    (project / "a.smi").write_text("\n".join(SMILES))
    run = made("a.smi", "--estimate", "--hours", "5", "--representation", "groups", *options)
    training = experiment(project, "a").training
    assert experiment(project, "a").parent == {"none": None}.get(options[1], options[1])
    assert 0.9 * epochs * 285 < training.iterations * training.batch_size <= epochs * 285
    assert f"{training.iterations:,} iterations; in tests, far more made samples worse." in run.stdout


def test_all_rejected_rows_are_listed_with_their_places(project):
    """Line 302 of the table follows its header and 300 molecules; a blank line 303 is counted."""
    (project / "a.csv").write_text("\n".join(["smiles", *SMILES, "x", "", "C(", ""]))
    (project / "a.smi").write_text("\n".join(SMILES))
    path = project / "a.rejected.csv"
    assert "all are listed in ./a.rejected.csv" in new("a.csv").stdout
    assert path.read_text() == "line,text,reason\n302,x,unparsable\n304,C(,unparsable\n"
    made("a.smi", "--force")
    assert not path.exists()


def test_what_preprocess_makes_of_it_is_what_was_said(project, done):
    table = "id,Structure\n" + "".join(f"7,{text}\n" for text in ODD)
    (project / "a.csv.gz").write_bytes(gzip.compress(table.encode()))
    options = {"split": "scaffold", "stereo": "drop", "charges": "neutralise"}
    run = made("a.csv.gz", "--name", "b-1", *(f"--{key}={value}" for key, value in options.items()))
    data = experiment(project, "b-1").data
    assert (data.column, data.model_dump(include=set(options))) == ("Structure", options)
    files = {part: part for part in ("train", "validation", "vocabulary", "smiles", "known", "rejected")}
    done("preprocess", "molecules", settings=data.model_dump(), quiet=True, **files)
    rejected = pd.read_parquet(project / "rejected").query("reason == 'unparsable'")
    assert rejected[["row", "line", "text"]].values.tolist() == [[300, 302, "x"], [301, 303, "C1CC"]]
    smiles = pd.read_parquet(project / "smiles")
    assert set(smiles["name"]) == {"7"}
    sizes = smiles["split"].value_counts()
    for label, split in (("for training", "train"), ("for validation", "validation")):
        assert re.search(rf"{label} +(\d+)", run.stdout)[1] == str(sizes[split])
    vocabulary = json.loads((project / "vocabulary").read_text())["tokens"]
    assert re.search(r"K, symbols +(\d+)", run.stdout)[1] == str(len(vocabulary))


def test_columns_of_numbers_are_named_and_become_conditions(project):
    rows = [f"{n},{text},{n % 7},{'ab'[n % 2]},x{n},{n},{n}" for n, text in enumerate(SMILES)]
    header = "compound_id,smiles,pIC50 mean,group,comment,twice,twice"  # `twice` would be refused
    (project / "a.csv").write_text("\n".join([header, *rows]))
    run = new("a.csv")
    for advice in ("with --force and `--condition 'pIC50 mean'`.", "with --force and `--condition group`."):
        assert advice in run.stdout
    assert experiment(project, "a").data.condition is None
    run = made("a.csv", "--condition", "pIC50 mean", "--force")
    assert "`pairflow sample --condition 'pIC50 mean=high'`." in run.stdout
    assert [*experiment(project, "a").data.conditions()] == ["pIC50 mean"]
    made("a.csv", "--condition", "logp", "--force")
    assert experiment(project, "a").data.condition.property == "logp"
    expected = "expected a column of numbers or classes of a.csv, or a property (qed, logp"
    assert f"--condition: unknown name 'x': {expected}" in new("a.csv", "--condition=x", "--force").stderr


def test_a_condition_on_a_column_with_gaps_says_what_it_does_not_use(project):
    """Half of the fields of `gaps` are no numbers, and most numbers of `late` are equal."""
    rows = [f"{text},{n if n % 2 else '<0.1'},{max(n, 219)}" for n, text in enumerate(SMILES)]
    (project / "a.csv").write_text("\n".join(["smiles,gaps,late", *rows]))
    run = made("a.csv", "--condition", "gaps")
    said = "\ngaps: 150 of 300 rows have a number; the others: 150 with < or > or the like (lines 2, 4, "
    assert said in run.stdout
    written = experiment(project, "a")
    asked = written.evaluations["asked"]
    assert (written.data.condition.column, written.data.condition.classes) == ("gaps", 3)
    assert (*asked.condition, *asked.guidances) == ("gaps=spread", 0, 2)  # what the report needs to judge it
    lines = (project / "a.condition.csv").read_text().splitlines()
    assert (lines[0], len(lines), lines[1].split(",")[0]) == ("line,text,reason", 151, "2")
    run = new("a.csv", "--condition", "late", "--force")
    assert "Of the molecules that were read: 220 low (up to 219), 80 high.\n" in run.stdout
    assert experiment(project, "a").data.condition.classes == 2


@pytest.fixture
def prepare(project, done):
    """What `preprocess` makes of the experiment a: its stderr, and its molecules with their labels."""

    def run():
        files = {part: part for part in ("train", "validation", "vocabulary", "smiles", "known", "rejected")}
        settings = experiment(project, "a").data.model_dump(mode="json")
        made = done("preprocess", "molecules", settings=settings, quiet=True, **files)
        table = pd.read_parquet(project / "smiles")
        for split in ("train", "validation"):
            table.loc[table.split == split, "label"] = pd.read_parquet(project / split)["label"].to_numpy()
        return made.stderr, table.set_index("row")["label"]

    return run


def test_a_condition_says_what_becomes_of_repeated_molecules(project, prepare):
    """What `new` says is what `preprocess` does, and says."""
    rows = [f"{text},{n}" for n, text in enumerate(SMILES)] + [f"{SMILES[4]},4.0", f"{SMILES[5]},999", "x,7"]
    (project / "a.csv").write_text("\n".join(["smiles,y", *rows]))
    run = made("a.csv", "--condition", "y", "--replicates", "median")
    said = "1 molecule has several numbers, which differ by up to 994 (lines 7, 303): "
    assert said in run.stdout
    reason = "the molecule, first in line 7, has several values"
    listed = pd.read_csv(project / "a.condition.csv")
    assert listed.values.tolist() == [[7, 5, reason], [303, 999, reason]]
    stderr, labels = prepare()
    assert "pairflow preprocess: note: y: 303 of 303 rows have a number. 1 molecule has" in stderr
    assert said in stderr
    assert labels[5] == 2  # of the median of 5 and 999


@pytest.mark.parametrize("names", [("0", "1"), ("GPCR", "ion channel", "kinase")])
def test_a_column_of_classes_becomes_a_condition(project, prepare, names):
    fields = [names[n % len(names)] for n in range(298)] + ["n.d.", "rare"]
    rows = [f"{text};{field}" for text, field in zip(SMILES, fields, strict=True)]
    (project / "a.csv").write_text("\n".join(["smiles;group", *rows]))
    run = made("a.csv", "--condition", "group")
    assert "group: 298 of 300 rows have a class; the others: " in run.stdout
    assert f"To ask for samples of class {', '.join(names[:-1])} or {names[-1]}: `" in run.stdout
    written = experiment(project, "a")
    assert written.data.condition.classes == names
    assert written.evaluations["asked"].condition == ("group=spread",)
    _, labels = prepare()
    assert labels.tolist() == [n % len(names) for n in range(298)] + [len(names)] * 2


def test_a_column_without_numbers_or_classes_is_no_condition(project):
    rows = [f"{text},x{n},n/a,1" for n, text in enumerate(SMILES)]
    (project / "a.csv").write_text("\n".join(["smiles,group,logp,one", *rows]))
    run = new("a.csv", "--condition", "group")
    text = "--condition: group: 0 of 300 rows have a number; the others: 300 no plain finite number ("
    assert (run.exit_code, run.stderr.count("\n")) == (2, 1)
    assert text + "lines 2-301; the first: 'x0'); expected different numbers" in run.stderr
    assert "one: 300 of 300 rows have a number; expected different" in new("a.csv", "--condition=one").stderr
    made("a.csv", "--condition", "logp")
    assert experiment(project, "a").data.condition.property == "logp"


def drug_like(number=108):
    """Molecules of 17 and more heavy atoms."""
    ends = ("", "O", "N", "F", "Cl", "C#N", "C(=O)O", "OC", "SC")
    tails = [f"{'C' * n}{end}" for n in range(1, 30) for end in ends]
    return [f"O=C(NC1CCN(C)CC1)c1ccc({tail})cc1" for tail in tails[:number]]


def test_few_drug_like_molecules_start_from_a_model_that_comes_with_pairflow(project, monkeypatch):
    """By default, with the time that it takes from the start and without it."""
    rates = {"train": 0.01, "draw": 1e-6, "pair": 1e-3}
    monkeypatch.setattr(forecast, "measure", lambda work, *_: Rate(rates[work.kind], 9.0, "x"))
    (project / "a.smi").write_text("\n".join(drug_like()))
    run = made("a.smi", "--estimate")
    found = experiment(project, "a")
    assert (found.parent, found.data.length) == ("zinc250k", 24)
    tuned, scratch = run.stdout.split("\n\nTraining from scratch (`--from none`)")
    assert [text.count("\nTime: ") for text in (tuned, scratch)] == [1, 1]
    run = new("a.smi", "--force", "--from", "none")
    assert experiment(project, "a").parent is None


def test_many_small_or_long_molecules_start_from_scratch(project, monkeypatch):
    (project / "a.smi").write_text("\n".join(SMILES))
    made("a.smi", "--compare")
    assert experiment(project, "a").parent is None
    assert experiment(project, "a").methods == experiment(project, "demo").methods
    (project / "b.smi").write_text("\n".join(drug_like(261)))
    assert "The training starts from scratch, not from the model zinc250k: " in new("b.smi").stdout
    assert experiment(project, "b").parent is None
    monkeypatch.setattr(draft, "FEW", 108)
    (project / "c.smi").write_text("\n".join(drug_like()))
    made("c.smi")
    assert experiment(project, "c").parent is None


def test_names():
    names = {"my_library.smi": "my_library", "x/Libraries 2024 (f).v2.csv.gz": "Libraries_2024_f_v2"}
    names |= {"été.sdf": "ete", "Enamine.cxsmiles.BZ2": "Enamine", "分子.smi": "library", "-a-.smi": "a"}
    assert {file: name_of(Path(file)) for file in names} == names


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        ("demo.smi", "C\n", [], "_config.yaml: there is an experiment 'demo' already; give another --name"),
        ("a.smi", "\n".join(SMILES[:50]), [], "50 distinct molecules are too few to train on and to hold"),
        ("a.smi", "x\ny\n", [], "no usable molecule in 2 rows: unparsable (2 rows, the first in line 1:"),
        ("a.csv", "id,mass\n1,2\n", [], "a.csv: no column holds SMILES in most rows; found 'id', 'mass'"),
        ("a.xls", "", ["--as", "table"], "a.xls: .xls files are not read; save it as .xlsx in a"),
        ("a.docx", "", [], "a.docx: unknown kind of file; expected a name that ends in .smi"),
        ("a.smi", "C", ["--config", "no.yaml"], "no.yaml: no such file; run the command in"),
        ("a.smi", "C", ["--name", "a b"], "settings: name: string should match pattern"),
        ("{a}.smi", "\n".join(ODD), [], "{a}.smi: braces in a name are wildcards to Snakemake; rename the"),
        ("b.rejected.csv", "smiles\nC\n", ["--name", "b"], "b.rejected.csv: is an input of this command"),
        ("a.smi", "C", ["--replicates", "first"], "replicates: expected only with a condition (--condition)"),
        ("a.smi", RINGS, ["--split", "scaffold"], "split: the smallest of 1"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(project, refused, name, content, arguments, message):
    (project / name).write_text(content)
    refused(new(name, *arguments), "new", message)
    assert (project / "workflow_config.yaml").read_text() == SHIPPED.read_text()
    assert not (project / "experiments").exists()


def test_experiments_added_at_the_same_time_are_all_there(project, fork):
    (project / "a.smi").write_text("\n".join(ODD))
    names = ["one", "two", "three"]
    command = ["new", "a.smi", "--device=cpu", "--no-estimate", "--quiet", "--name"]
    runs = [fork([*command, name], project, project / "errors") for name in names]
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0, 0, 0]
    assert {experiment(project, name).data.source for name in names} == {"a.smi"}


def test_a_text_is_known_by_what_it_holds(project):
    lines = [f"Line {number} of a play, in which nothing happens.\n" for number in range(400)]
    (project / "play.txt").write_text("".join(lines))
    run = made("play.txt")
    assert run.stdout.startswith("play.txt (text, because most of its lines hold no molecule)\n")
    found = experiment(project, "play")
    assert (found.data.kind, found.data.source, found.data.tokeniser) == ("text", "play.txt", "characters")
    assert (found.data.length, found.data.stride, found.methods) == (32, 8, ("pairflow",))
    (project / "smiles.txt").write_text("".join(f"{text} mol\n" for text in ODD))
    made("smiles.txt")
    assert experiment(project, "smiles").data.kind == "molecules"
    refusals = {
        ("play.txt", "--name", "x", "--charges", "neutralise"): "play.txt: text; --charges is for molecules",
        ("mine.smi", "--rows", "lines"): "mine.smi: molecules; --rows is for text",
        ("short.txt",): "short.txt: 91 rows are too few to train on; expected at least 100",
    }
    (project / "short.txt").write_text("".join(lines)[:840])
    (project / "mine.smi").write_text("\n".join(SMILES))
    for arguments, message in refusals.items():
        assert message in new(*arguments).stderr


AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def test_lines_of_few_words_are_rows(project):
    """Made-up peptides of 9 to 20 amino acids, one of 60, and an empty line."""
    random = np.random.default_rng(0)
    peptides = ["M" + "".join(random.choice([*AMINO_ACIDS], size)) for size in random.integers(8, 20, 400)]
    (project / "peptides.txt").write_text("\n".join(["A" * 60, *peptides, "", "end\n"]))
    made("peptides.txt")
    data = experiment(project, "peptides").data
    assert (data.kind, data.rows, data.tokeniser, data.stride) == ("text", "lines", "characters", None)
    assert data.length == np.sort([*map(len, peptides), 60, 3])[381] + 1  # 95 % of 402 lines
    rejected = (project / "peptides.rejected.csv").read_text()
    assert rejected.splitlines()[1].startswith(f"row 1 of train,{'A' * 60},")
    (project / "sorted.txt").write_text("\n".join(sorted(peptides)))
    assert "The lines are sorted and the last ones are held out" in new("sorted.txt").stdout
    made("peptides.txt", "--name", "joined", "--rows", "packed")
    assert experiment(project, "joined").data.rows == "packed"


DIARY = "".join(f"I feel that day {number} was long.\nIn the evening it rains.\n" for number in range(200))
FASTA = "".join(f">sp|P{n:05}|A name\nMKT{'ACDEFGHIKL'[n % 10]}\nwy{'L' * (n % 7)}*\n\n" for n in range(300))


@pytest.mark.parametrize(
    ("name", "header", "options", "title"),
    [
        ("in.txt", "", [], "SMILES, in field 2 of each line, because most of its lines hold a molecule"),
        ("in.txt", "ID\tSMILES\n", [], "table, column 'SMILES', names in 'ID', because its header names a"),
        ("in.dat", "", ["--as", "molecules"], "SMILES, in field 2 of each line, by --as molecules"),
        ("in.dat", "ID\tSMILES\n", ["--as", "table"], "table, column 'SMILES', names in 'ID', by --as table"),
    ],
)
def test_a_file_with_ids_and_smiles_is_molecules(project, name, header, options, title):
    (project / name).write_text(header + "".join(f"M{n}\t{text}\n" for n, text in enumerate(SMILES)))
    run = new(name, *options)
    assert run.stdout.startswith(f"{name} ({title}")
    assert re.search(r"distinct molecules +300\n", run.stdout)


@pytest.mark.parametrize(
    ("name", "reason"), [("in.fasta", "by its suffix"), ("in.txt", "because its first line begins with >")]
)
def test_each_record_of_fasta_is_a_row(project, name, reason):
    (project / name).write_text(FASTA)
    run = new(name)
    assert run.stdout.startswith(f"{name} (text, FASTA, {reason})\n")
    data = experiment(project, "in").data
    assert (data.rows, data.length, data.format) == ("lines", 14, None)
    assert re.search(r"rows for training +270\n", run.stdout)


def test_a_column_of_text_in_a_table_is_text(project):
    rows = [f"{'NPO'[number % 3]}\tText number {number:03}\tx\n" for number in range(200)]
    (project / "in.tsv").write_text("".join(["label\ttext\tother\n", *rows]))
    run = new("in.tsv")
    assert run.stdout.startswith("in.tsv (text, column 'text', which holds no SMILES)\n")
    data = experiment(project, "in").data
    assert (data.column, data.rows, data.length) == ("text", "lines", 16)
    made("in.tsv", "--name", "b", "--column", "other")
    assert experiment(project, "b").data.column == "other"
    book = openpyxl.Workbook()
    for title in ("first", "second"):
        sheet = book.create_sheet(title)
        for row in (["text"], *[[f"{title} text {number}"] for number in range(150)]):
            sheet.append(row)
    book.save(project / "a.xlsx")
    run = new("a.xlsx", "--sheet", "second")
    sheets = "sheet 'second' (--sheet chooses another: 'first')"
    assert run.stdout.startswith(f"a.xlsx (text, {sheets}, column 'text', which holds no SMILES)\n")
    data = experiment(project, "a").data
    prepared = source_of(data, project).read(data)
    assert (data.sheet, prepared.tokeniser.decode(prepared.train[0])) == ("second", "second text 0")
    assert "no sheet 'x'" in new("a.xlsx", "--force", "--sheet", "x").stderr
    (project / "reviews.csv").write_text("".join(["mark,review\n", *rows]))
    message = "found 'mark', 'review'; --column names one with text\n"
    assert new("reviews.csv").stderr.endswith(message)
    (project / "empty.csv").write_text("text\n")
    assert new("empty.csv").stderr == "pairflow new: error: empty.csv: empty; no row holds text\n"


def test_any_file_is_what_the_user_says(project):
    (project / "notes.md").write_text(DIARY)
    (project / "drugs.smi").write_text("\n".join(SMILES))
    message = "notes.md: unknown kind of file; expected a name that ends in .smi, "
    assert message in new("notes.md").stderr
    (project / "farsi.fa").write_text(FASTA)
    for name, taken_as, *found in (
        ("notes.md", "text", "packed", None),
        ("drugs.smi", "rows", "lines", None),
        ("farsi.fa", "text", "lines", "plain"),
    ):
        run = new(name, "--as", taken_as)
        assert run.stdout.startswith(f"{name} (text, by --as {taken_as})\n")
        data = experiment(project, name[:5]).data
        assert [data.rows, data.format] == found
    assert re.search(r"rows for training +810\n", run.stdout)  # also the headers


def test_a_folder_of_other_files_is_not_read_to_its_end(project, monkeypatch):
    """Such as `/`: new stops where there are many other files and hardly any text."""
    monkeypatch.setattr("pairflow.data.source._OTHERS", 100)
    for number in range(150):
        folder = project / "all" / str(number % 5)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.bin").touch()
    (project / "all" / "a.txt").write_text("To be, or not to be. " * 200)
    run = new("all")
    text = r": all: expected a folder of \.txt or FASTA files, found 1 such files among 1\d\d others\n$"
    assert (run.exit_code, bool(re.search(text, run.stderr))) == (2, True), run.stderr
    for number in range(20):  # a text for every ten others
        (project / "all" / f"{number}.txt").write_text("To be, or not to be. " * 20)
    (project / "all" / "a.txt").write_bytes(b"\xff")
    made("all")
    rejected = (project / "all.rejected.csv").read_text()
    assert rejected.startswith("place,text,reason\na.txt,\ufffd,not UTF-8 text (byte 0 is 0xff)\n")


def test_names_with_line_ends_stay_on_their_lines_and_paths_start_at_the_configuration(project):
    folder = project / "a\nb"
    (folder / "experiments").mkdir(parents=True)
    (project / "workflow_config.yaml").rename(folder / "workflow_config.yaml")
    (folder / "experiments" / "broken.yaml").write_text("experiments: {")
    (folder / "x\ny.smi").write_text("\n".join([*SMILES, "x"]))
    run = made("a\nb/x\ny.smi", "--config", "a\nb/workflow_config.yaml")
    assert run.stderr.count("\n") == run.stderr.count("note: left out") == 1
    assert not [line for line in run.stdout.splitlines() if line.startswith(("b/", "y.smi"))]
    assert r"a\nb/experiments/x_y.yaml. Run it in " in run.stdout
    assert experiment(folder, "x_y").data.source == "x\ny.smi"
