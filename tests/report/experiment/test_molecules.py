from pairflow.kinds.molecules.page import drawing as molecules

SAMPLES = ["CCO", "CC(C", "", "c1cc[nH]c1", "C", "C", "CN", "CF", ""]


def test_galleries_hold_random_valid_samples_and_count_all(capfd):
    shown = molecules.draw_gallery(SAMPLES, 4, seed=0)
    assert (shown.valid, shown.empty, shown.count) == (6, 2, 9)
    assert len(shown.molecules) == 4
    assert {molecule.smiles for molecule in shown.molecules} <= {"CCO", "c1cc[nH]c1", "C", "CN", "CF"}
    assert shown == molecules.draw_gallery(SAMPLES, 4, seed=0)
    others = (molecules.draw_gallery(SAMPLES, 4, seed).molecules for seed in range(9))
    assert len({tuple(each.smiles for each in gallery) for gallery in others}) > 3
    assert capfd.readouterr().err == ""


def test_repeats_stay_and_nothing_valid_is_an_empty_gallery():
    assert sorted(each.smiles for each in molecules.draw_gallery(SAMPLES, 9, 0).molecules).count("C") == 2
    nothing = molecules.draw_gallery(["", "C("], 4, 0)
    assert (nothing.molecules, nothing.valid, nothing.count) == ([], 0, 2)


def test_drawings_scale_and_take_the_colours_of_the_page():
    [molecule] = molecules.draw_gallery(["CCO"], 1, 0).molecules
    assert molecule.svg.startswith("<svg")
    assert "px'" not in molecule.svg[: molecule.svg.index(">")]
    assert "viewBox='0 0 200 147'" in molecule.svg
    assert "var(--vermillion" in molecule.svg
    assert "<rect" not in molecule.svg
