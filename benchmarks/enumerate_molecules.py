"""The embedded data set: all small molecules of C, N, O and F under stated rules, from scratch.

`python benchmarks/enumerate_molecules.py small_molecules.csv.gz` writes the packaged file again, byte for
byte (with the pinned RDKit, which canonicalises SMILES). The enumeration is exhaustive, in three steps:

1. *Skeletons*: all connected graphs of up to 7 atoms, each with at most 4 neighbours, and at most two rings.
   Every connected graph has an atom whose removal leaves it connected: adding atoms one by one reaches all.
2. *Bond orders*: every bond single, double or triple.
3. *Elements*: every atom C, N, O or F with the valences 4, 3, 2 and 1, which hydrogen fills. So all molecules
   are neutral and closed-shell. Configurations (R/S, E/Z) are not distinguished; tautomers are.

Strain, as in GDB-11 (Fink and Reymond, J. Chem. Inf. Model. 2007, 47, 342): no atom in two rings of three or
four atoms; no double bond at an atom of a three-membered ring, inside a four-membered ring, or at an atom of
two rings (Bredt's rule); no triple bond in a ring; no two multiple bonds at one atom (cumulenes).

Stability: `UNSTABLE` names the groups left out. It is stricter than GDB-11 on what falls apart in water or is
the minor tautomer: C=N bonds and bonds between heteroatoms are in aromatic rings only.
"""

import gzip
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations, product
from pathlib import Path

from rdkit import Chem

from pairflow.kinds.molecules.data.representations import tokenize

MAX_ATOMS = 7
MAX_RINGS = 2
MAX_TOKENS = 14  # N = 16 with <bos> and <eos>
VALENCE = {"C": 4, "N": 3, "O": 2, "F": 1}

UNSTABLE = {
    "hydrogen fluoride": "[FH]",
    "bond between heteroatoms outside an aromatic ring": "[#7,#8]~[N,O,F]",
    "C=N outside an aromatic ring: hydrolyses": "[#6]=N",
    "heteroatom on C=C (enol, enamine, enol ether): hydrolyses or tautomerises to a carbonyl": "C=C[N,O,F]",
    "heteroatom on C#C": "C#C[#7,#8,#9]",
    "cyanate, cyanogen fluoride, N-cyano azole": "N#C[O,F,n]",
    "two nitriles on nitrogen": "N#CNC#N",
    "acetal, aminal, fluoro ether or amine on sp3 carbon: hydrolyses": "[CX4]([#7,#8])[#7,#8,#9]",
    "acyl fluoride": "FC=O",
    "anhydride": "O=COC=O",
    "carbonic and carbamic acid: lose CO2": "[OH]C(=O)[N,O]",
    "amine with aldehyde or ketone: condense": "[NX3;!H0;!$(NC=O);!$(NC#N)].[CX3;!$(C(=O)[#7,#8])]=O",
    "vicinal tricarbonyl": "O=[#6][#6](=O)[#6]=O",
    "cyclopentadienone: antiaromatic, dimerises": "O=C1C=CC=C1",
    "aromatic ring with exocyclic C=C": "a=C",
    "adjacent pyrrole-like atoms in an aromatic ring": "[nX3,o][nX3,o]",
    "three adjacent nitrogens in a six-membered ring: lose N2": "[n;r6][n;r6][n;r6]",
    "1,2,3-oxadiazole: opens to a diazo ketone": "onn",
    "hydroxyl on an aromatic five-membered ring: its keto form is the stable one": "[OH]c1aaaa1",
    "amine with H on furan or pyrrole: oxidises in air": "[NX3;!H0][$(c1[o,nX3]ccc1),$(c1c[o,nX3]cc1)]",
}
_UNSTABLE = [Chem.MolFromSmarts(pattern) for pattern in UNSTABLE.values()]


Graph = tuple[str, dict[tuple[int, int], int]]
"""Elements, one letter per atom, and bond orders by the places of the two atoms (the smaller first)."""


def enumerate_molecules() -> list[str]:
    """Canonical SMILES of all molecules under the rules that fit `MAX_TOKENS`, by size, then by text."""
    molecules: dict[str, Chem.Mol] = {}
    for skeleton in skeletons(MAX_ATOMS):
        for hydrocarbon in bond_orders(skeleton):
            for graph in placements(hydrocarbon):
                molecule = _molecule(graph)
                Chem.SanitizeMol(molecule)
                molecules.setdefault(Chem.MolToSmiles(molecule), molecule)
    stable = [
        (molecule.GetNumAtoms(), smiles)
        for smiles, molecule in molecules.items()
        if len(tokenize(smiles)) <= MAX_TOKENS and not any(map(molecule.HasSubstructMatch, _UNSTABLE))
    ]
    return [smiles for _, smiles in sorted(stable)]


def skeletons(max_atoms: int) -> Iterator[Graph]:
    """All graphs of step 1 up to `max_atoms` atoms, as saturated hydrocarbons."""
    level: list[Graph] = [("C", {})]
    for size in range(1, max_atoms + 1):
        yield from level
        level = _distinct(grown for graph in level for grown in _grow(graph, size) if not _strained(grown))


def bond_orders(skeleton: Graph) -> list[Graph]:
    """All ways of step 2 to put double and triple bonds into a skeleton, under the rules on strain."""
    atoms, bonds = skeleton
    rings, neighbours = _rings(skeleton), Counter(atom for bond in bonds for atom in bond)
    ring_bonds = [bond for bond in bonds if any(ring.issuperset(bond) for ring in rings)]
    crowded = {atom for atom, number in Counter(a for bond in ring_bonds for a in bond).items() if number > 2}
    crowded |= {atom for ring in rings if len(ring) == 3 for atom in ring}

    def choices(bond: tuple[int, int]) -> Iterable[int]:
        if crowded.intersection(bond) or any(len(ring) == 4 and ring.issuperset(bond) for ring in rings):
            return (1,)
        highest = min(5 - max(neighbours[atom] for atom in bond), 2 if bond in ring_bonds else 3)
        return range(1, highest + 1)

    ways = (dict(zip(bonds, orders, strict=True)) for orders in product(*map(choices, bonds)))
    return _distinct((atoms, way) for way in ways if not _cumulated(way))


def placements(hydrocarbon: Graph) -> Iterator[Graph]:
    """All ways of step 3 to make the atoms of a hydrocarbon C, N, O or F.

    Outside rings, heteroatoms bound to each other and C=N are not built: `UNSTABLE` excludes them all.
    """
    carbons, bonds = hydrocarbon
    rings = _rings(hydrocarbon)
    used: Counter[int] = Counter()
    for bond, order in bonds.items():
        used.update(dict.fromkeys(bond, order))
    partners: list[list[tuple[int, int]]] = [[] for _ in carbons]
    for (first, second), order in bonds.items():
        if not any(ring.issuperset((first, second)) for ring in rings):
            partners[second].append((first, order))

    def extend(elements: str) -> Iterator[Graph]:
        atom = len(elements)
        if atom == len(carbons):
            yield elements, bonds
            return
        for element, valence in VALENCE.items():
            pairs = [({elements[other], element}, order) for other, order in partners[atom]]
            if used[atom] <= valence and all("C" in p and (o != 2 or p != {"C", "N"}) for p, o in pairs):
                yield from extend(elements + element)

    return extend("")


def _grow(graph: Graph, atom: int) -> Iterator[Graph]:
    """The graph with one more atom, bound in all ways to one, two or three of the others."""
    atoms, bonds = graph
    neighbours = Counter(atom for bond in bonds for atom in bond)
    free = [end for end in range(atom) if neighbours[end] < 4]
    rings = len(bonds) - len(atoms) + 1
    for number in range(1, 2 + MAX_RINGS - rings):
        for ends in combinations(free, number):
            yield atoms + "C", bonds | {(end, atom): 1 for end in ends}


def _strained(graph: Graph) -> bool:
    """Whether two rings of three or four atoms share an atom."""
    small = [ring for ring in _rings(graph) if len(ring) < 5]
    return any(bool(one & other) for one, other in combinations(small, 2))


def _cumulated(bonds: dict[tuple[int, int], int]) -> bool:
    """Whether an atom has two multiple bonds."""
    multiple = Counter(atom for bond, order in bonds.items() if order > 1 for atom in bond)
    return any(number > 1 for number in multiple.values())


def _rings(graph: Graph) -> list[set[int]]:
    return [set(ring) for ring in Chem.GetSSSR(_molecule(graph))]


def _molecule(graph: Graph) -> Chem.RWMol:
    elements, bonds = graph
    molecule = Chem.RWMol()
    for element in elements:
        molecule.AddAtom(Chem.Atom(element))
    for (first, second), order in bonds.items():
        molecule.AddBond(first, second, Chem.BondType.values[order])
    return molecule


def _distinct(graphs: Iterable[Graph]) -> list[Graph]:
    """One graph of each isomorphism class. Kekulé structures stay different: heteroatoms may differ."""
    distinct: dict[str, Graph] = {}
    for graph in graphs:
        molecule = _molecule(graph)
        molecule.UpdatePropertyCache()
        Chem.FastFindRings(molecule)
        distinct.setdefault(Chem.MolToSmiles(molecule), graph)
    return list(distinct.values())


def write(path: str | Path, molecules: list[str]) -> None:
    """Write a gzipped CSV file with the column `smiles`, the same bytes for the same molecules."""
    text = "".join(f"{line}\n" for line in ["smiles", *molecules])
    with Path(path).open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode())


if __name__ == "__main__":
    write(sys.argv[1], enumerate_molecules())
