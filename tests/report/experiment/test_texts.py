"""Text beside controls: nonsense is caught by values that are measured as those of samples are."""

import numpy as np

from pairflow.kinds.text.controls import CONTROLS
from pairflow.kinds.text.kneser_ney import KneserNey
from pairflow.kinds.text.ngrams import distinct_share, jensen_shannon, token_entropy
from pairflow.kinds.text.page.details import find_warnings

RANDOM = np.random.default_rng(0)
WORDS = [RANDOM.integers(1, 27, RANDOM.integers(2, 7)).tolist() for _ in range(60)]


def language(count: int, seed: int) -> np.ndarray:
    """Rows of 32 symbols: words of a small language, by their rank, with a space (0) after each."""
    random, shares = np.random.default_rng(seed), 1 / np.arange(1, 61)
    words = random.choice(60, count * 20, p=shares / shares.sum())
    stream = [symbol for word in words for symbol in (*WORDS[word], 0)]
    return np.array(stream[: count * 32]).reshape(count, 32)


JUDGE = KneserNey.fit(language(2000, 1).reshape(1, -1), 27, 6)
HELD_OUT = language(500, 2)


def measured(rows: np.ndarray) -> dict[str, float]:
    return {
        "judge_ppl": JUDGE.perplexity(rows),
        "entropy": token_entropy(rows).mean(),
        "distinct_4": distinct_share(rows, 4),
        "js_trigram": jensen_shannon(rows, HELD_OUT, 3),
    }


REAL = measured(language(300, 3))
SHUFFLED = measured(CONTROLS["shuffled"](language(2000, 4), 300, np.random.default_rng(0)))


def test_a_nonsense_sampler_with_a_good_perplexity_is_caught():
    """The most frequent word again and again, and rows of the same two words in any order."""
    words = np.random.default_rng(0).choice(2, (300, 40))
    few = [[symbol for word in row for symbol in (*WORDS[word], 0)][:32] for row in words]
    for rows in (np.tile(np.resize([*WORDS[0], 0], 32), (300, 1)), np.array(few)):
        values = measured(rows)
        assert values["judge_ppl"] < 0.6 * SHUFFLED["judge_ppl"]
        assert "varies too little" in find_warnings(values, REAL, SHUFFLED)


def test_a_single_row_is_caught_and_noise_too():
    snippet = CONTROLS["snippet"](language(50, 5), 300, np.random.default_rng(0))
    assert find_warnings(measured(snippet), REAL, SHUFFLED) == ["samples repeat one another"]
    noise = np.random.default_rng(0).integers(0, 27, (300, 32))
    text = "trigrams no nearer to text than shuffled text’s"
    assert find_warnings(measured(noise), REAL, SHUFFLED) == [text]


def test_other_text_and_a_chain_of_its_trigrams_give_no_warning():
    chain = CONTROLS["chain"](language(2000, 4), 300, np.random.default_rng(0))
    assert find_warnings(measured(chain), REAL, SHUFFLED) == []
    other = {**measured(language(300, 6)), "judge_ppl": REAL["judge_ppl"]}
    assert find_warnings(other, REAL, SHUFFLED) == []
    likelier = {**other, "judge_ppl": 0.9 * REAL["judge_ppl"]}
    assert find_warnings(likelier, REAL, SHUFFLED) == ["likelier than real text"]
