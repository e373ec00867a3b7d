"""Text to token rows: how it is cut, what is left out, and what is refused."""

import gzip

import numpy as np
import pytest

from pairflow.errors import InputError
from pairflow.kinds import source_of
from pairflow.kinds.text.prepare import cut_parts, summarise
from pairflow.kinds.text.settings import Text


def settings(source="shakespeare", tokeniser="characters", length=8, **others) -> Text:
    return Text(source=str(source), tokeniser=tokeniser, length=length, **others)


@pytest.fixture
def read(tmp_path):
    """Read texts, one file for each, by their names."""

    def prepare(files, **others):
        folder = tmp_path / "texts"
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        source = folder / next(iter(files)) if len(files) == 1 else folder
        chosen = settings(source, **others)
        return source_of(chosen).read(chosen)

    return prepare


def test_shakespeare_has_the_sizes_that_the_experiment_states():
    chosen = settings(length=32, stride=8, normalisation="letters")
    prepared = source_of(chosen).read(chosen)
    assert prepared.train.shape == (119_199, 32)
    assert prepared.validation.shape == prepared.judge.shape == (1_655, 32)
    assert prepared.tokeniser.tokens == tuple(" abcdefghijklmnopqrstuvwxyz")
    assert prepared.tokeniser.decode(prepared.train[0]) == "first citizen before we proceed "
    assert prepared.rejected.empty


def test_the_parts_follow_one_another_and_share_no_text():
    text = "".join(map(chr, range(0x100, 0x200)))  # each character occurs once
    chosen = settings(validation_fraction=0.25, judge_fraction=0.125)
    parts = cut_parts(text, chosen)
    assert [len(parts[name][0]) for name in ("train", "validation", "judge")] == [160, 64, 32]
    assert "".join(text for texts in parts.values() for text in texts) == text


def test_a_row_is_a_line_as_editors_count_them(read):
    lines = [f"{number}\u2028\x85\x0b\x0c" for number in range(10, 50)]
    prepared = read({"a.txt": "\r\n".join(lines)}, rows="lines", length=12)
    rows = [prepared.tokeniser.decode(row) for part in (prepared.train, prepared.validation) for row in part]
    assert rows == lines[:38]
    assert "\r" not in prepared.tokeniser.tokens


def test_running_text_has_one_kind_of_line_end(read):
    lines = [f"{number}\r\n{number}\r" for number in range(10, 50)]
    prepared = read({"a.txt": "".join(lines)}, stride=1)
    assert prepared.tokeniser.decode(prepared.train[0]) == "10\n10\n11"
    assert prepared.tokeniser.tokens == ("\n", *"0123456789")


def test_the_records_of_fasta_are_rows_without_their_headers(read):
    fasta = "".join(f">P{number} name\r\nMK\r\n{'ACDE'[number % 4]}T\r\n" for number in range(40))
    prepared = read({"a.txt": fasta}, rows="lines")
    assert [prepared.tokeniser.decode(row) for row in prepared.train[:4]] == ["MKAT", "MKCT", "MKDT", "MKET"]
    assert [len(rows) for rows in (prepared.train, prepared.validation, prepared.judge)] == [36, 2, 2]
    assert read({"a.txt": fasta}).tokeniser.decode(read({"a.txt": fasta}).train[0]) == "MKAT\nMKC"
    plain = read({"a.txt": fasta}, rows="lines", length=9, format="plain")
    assert [plain.tokeniser.decode(row) for row in plain.train[:3]] == [">P0 name", "MK", "AT"]


def test_a_folder_holds_fasta_or_other_text(read):
    fasta = {f"{name}.fa": "".join(f">{name}\nMK\n{name}T\n" for _ in range(20)) for name in "ab"}
    prepared = read(fasta | {"notes.md": "MK"}, rows="lines")
    assert [prepared.tokeniser.decode(row) for row in prepared.train[[0, 20]]] == ["MKaT", "MKbT"]
    assert len(prepared.train) == 36
    assert prepared.rejected.place.tolist() == ["notes.md"]
    with pytest.raises(InputError, match="FASTA or other text in a folder, found both, the second in"):
        read(fasta | {"c.txt": "This is\nno FASTA."}, rows="lines")


def test_invisible_characters_are_counted_and_binary_data_are_refused(read):
    prepared = read({"a.txt": "To be,\tor\u00a0not\r\n\ufeffto be. \x0c" * 20})
    assert prepared.notes[0].endswith(" symbols: U+000C (20 times), U+FEFF (20 times).")
    assert not read({"a.txt": "To be, or not to be. " * 20}).notes
    with pytest.raises(InputError, match=r"a\.txt: a NUL character, .* not text \(line 3\)$"):
        read({"a.txt": "To be\r\nor not\nto \0be" * 20})
    table = "".join(f"{text}\n" for text in ["text", "a\0b", *["tea"] * 40])
    rejected = read({"b.csv": table}, rows="lines", column="text").rejected
    assert rejected.place.tolist() == ["row 2"]


def test_each_row_of_a_table_has_a_text(read):
    table = "".join(f'{{"n": 1, "text": "{number}\\r\\n"}}\n' for number in range(10, 50)).encode()
    prepared = read({"a.jsonl.gz": gzip.compress(table)}, rows="lines", column="text")
    assert [prepared.tokeniser.decode(row) for row in prepared.train[[0, -1]]] == ["10\n", "45\n"]
    latin = b"text\n" + b"caf\xe9\n" * 2 + b"tea\n" * 40
    with pytest.raises(InputError, match=r"b\.csv: expected UTF-8 text, found byte 0xe9 in line 2; save it"):
        read({"b.csv": latin}, rows="lines", column="text")
    odd = 'n,text\n1,"a\nb"\n2,a,b\n3,"open\n4,c\n5,closed"\n' + "6,tea\n" * 40
    rejected = read({"b.csv": odd}, rows="lines", column="text").rejected
    assert rejected["place"].tolist() == ["row 4", "row 5"]


def test_training_rows_overlap_as_the_stride_says(read):
    text = "".join(map(chr, range(0x100, 0x200)))
    prepared = read({"a.txt": text}, stride=3)
    tokens = np.arange(256)
    assert [row.tolist() for row in prepared.train[:2]] == [[*range(8)], [*range(3, 11)]]
    assert len(prepared.train) == (256 - 2 * 13 - 8) // 3 + 1
    assert prepared.validation.tolist() == [tokens[230:238].tolist()]
    assert prepared.judge.tolist() == [tokens[243:251].tolist()]
    subset = read({"a.txt": text}, stride=3, training_rows=5)
    assert len(subset.train) == 5
    assert {*map(tuple, subset.train.tolist())} < {*map(tuple, prepared.train.tolist())}
    with pytest.raises(InputError, match=r"^training_rows: expected 1 to 75 .*, found 76$"):
        read({"a.txt": text}, stride=3, training_rows=76)


def test_lines_are_rows_and_the_long_and_empty_ones_are_listed(read):
    lines = [f"row {number}" for number in range(40)]
    lines[3], lines[5], lines[39] = "", "much too long", "the judge reads"
    prepared = read({"a.txt": "\n".join(lines)}, rows="lines")
    assert len(prepared.train) == 34
    assert prepared.tokeniser.decode(prepared.train[1]) == "row 1"
    assert prepared.train[1, 5:].tolist() == [*[prepared.tokeniser.end], *[prepared.tokeniser.padding] * 2]
    assert prepared.rejected.to_dict("list") == {
        "place": ["row 4 of train", "row 6 of train", "row 2 of judge"],
        "text": ["", "much too long", "the judge reads"],
        "reason": ["empty", "too long (13 tokens, limit 7)", "too long (15 tokens, limit 7)"],
    }
    said = "3 pieces were left out: 1 empty (the first: row 4 of train, ''); 2 too long"
    assert summarise(prepared.rejected).startswith(said)


def test_the_files_of_a_folder_follow_in_the_order_of_their_names(read):
    files = {"b.txt": "B" * 80, "a/1.txt": "\ufeff" + "A" * 80 + "\n", "c.txt": b"\xff\xfe", "d.txt": " \n"}
    files |= {".ipynb_checkpoints/b.txt": "C" * 80, "._b.txt": b"\0", "notes.pdf": b"\xff"}
    files["f.txt"] = "C\nC\0"
    files["e.txt"] = "version https://git-lfs.github.com/spec/v1"
    prepared = read(files, judge_fraction=0.1, validation_fraction=0.1)
    assert prepared.tokeniser.tokens == ("\n", "A", "B")
    assert prepared.tokeniser.decode(prepared.train[0]) == "A" * 8
    assert prepared.tokeniser.decode(prepared.judge[0]) == "B" * 8
    rejected = dict(zip(prepared.rejected.place, prepared.rejected.reason, strict=True))
    assert rejected.pop("e.txt").startswith("a Git LFS pointer")
    assert rejected == {
        "c.txt": "not UTF-8 text (byte 0 is 0xff)",
        "d.txt": "empty",
        ".ipynb_checkpoints": "hidden",
        "._b.txt": "hidden",
        "f.txt": "a NUL character, so that it is binary data and not text (line 2)",
        "notes.pdf": "not .txt or FASTA",
    }


@pytest.mark.parametrize(
    ("files", "others", "message"),
    [
        ({"a.txt": b"plain\xe9"}, {}, r"a\.txt: not UTF-8 text \(byte 5 is 0xe9\)$"),
        ({"a.txt": "x" * 99}, {}, r"too little text: its part for validation has no piece of 8 tokens$"),
        (
            {"a.txt": "\n".join(["much too long"] * 40)},
            {"rows": "lines"},
            r"no row is left for train: 36 pieces were left out: 36 too long \(the first: row 1 of train",
        ),
    ],
)
def test_what_gives_no_rows_is_refused_in_one_line(read, files, others, message):
    with pytest.raises(InputError, match=message) as error:
        read(files, **others)
    assert "\n" not in str(error.value)
