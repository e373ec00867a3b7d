from pairflow.report import molecules


def test_first_samples_in_their_order_valid_or_not(capfd):
    shown = molecules.first(["CCO", "CC(C", "", "c1cc[nH]c1", "C"], 4)
    assert [molecule.smiles for molecule in shown] == ["CCO", "CC(C", "", "c1cc[nH]c1"]
    assert [molecule.svg is not None for molecule in shown] == [True, False, False, True]
    assert capfd.readouterr().err == ""


def test_drawings_scale_and_take_the_colours_of_the_page():
    [molecule] = molecules.first(["CCO"], 1)
    assert molecule.svg.startswith("<svg")
    assert "px'" not in molecule.svg[: molecule.svg.index(">")]
    assert "viewBox='0 0 150 110'" in molecule.svg
    assert "var(--vermillion" in molecule.svg
    assert "<rect" not in molecule.svg
