"""The samplers of `pairflow.flow.samplers`, given the exact denoiser of a tiny data set.

The distribution that a sampler ends in is computed exactly, by carrying every state's probability through the
transitions that the sampler itself uses.
"""

import itertools
from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from pairflow.config import BASES, tail_revises
from pairflow.errors import InputError
from pairflow.flow import corruption
from pairflow.flow.corruption import CORRUPTIONS, Absorbing, Frequencies, Uniform, in_parts
from pairflow.flow.plan import LAST_TIME, SamplingPlan
from pairflow.flow.posterior import PREDICTIONS, leave_one_out_to_posterior, posterior_to_leave_one_out
from pairflow.flow.samplers import FREE, ancestral, draw, euler, tempered, unmask, with_given
from pairflow.flow.schedule import DIFFUSION, Linear

K = 3
FROM_NOISE = Linear(0.0)  # its kappa(0) = 0: a uniform source is then exactly the process at t = 0
ONE = torch.tensor([[0], [2], [2], [2]])
TWO = torch.tensor([[0, 1], [2, 2], [1, 0], [2, 2]])
# Given symbols: the first of two positions holds 0, of which the data have three rows of six.
GIVEN = torch.tensor([0, FREE])
SKEWED = torch.tensor([[0, 1], [0, 1], [0, 0], [1, 0], [1, 0], [1, 0]])


def states(length):
    return torch.tensor(list(itertools.product(range(K), repeat=length)))


def leave_one_out_of(data, pi=None):
    """The exact leave-one-out denoiser of a data set, in float64, for uniform noise or frequencies."""

    def denoise(x_t, kappa):
        kappa = kappa.double()[:, None, None]
        match = (x_t[:, None] == data).double()  # (B, M, N)
        noise = 1 / K if pi is None else pi[torch.arange(len(pi)), x_t][:, None]
        log_likelihood = (kappa * match + (1 - kappa) * noise).log()
        weights = (log_likelihood.sum(-1, keepdim=True) - log_likelihood).softmax(1)  # of all positions but i
        return torch.einsum("bmn,mnk->bnk", weights, F.one_hot(data, K).double()).log()

    return denoise


def posterior_of(data, pi=None):
    denoise = leave_one_out_of(data, pi)
    return lambda x_t, kappa: leave_one_out_to_posterior(denoise(x_t, kappa), x_t, kappa, pi)


def law(data):
    """Probability of every state under the data."""
    return (states(data.shape[1])[:, None] == data).all(-1).double().mean(-1)


def plan_of(sampler, steps, convert=False, **options):
    """A plan for the kind of denoiser that the sampler takes, or for the other one."""
    [other] = {*PREDICTIONS} - {sampler.takes}
    options = {"schedule": FROM_NOISE, "greedy_tail": False} | options
    return SamplingPlan(steps=steps, prediction=other if convert else sampler.takes, **options)


def transitions(sampler, denoise, every, plan):
    """The law (S, N, K) of every state's positions in each update, and kappa after it."""
    for t, s in itertools.pairwise(plan.times):
        kappa = torch.full((len(every),), plan.schedule.kappa(t))
        yield sampler.transition(every, [denoise(every, kappa)], t, s, plan), plan.schedule.kappa(s)


def laws_of_updates(sampler, denoise, length, steps, source=None, **options):
    """Probability of every state after each update from a uniform (or other) source, exactly."""
    every = states(length)
    probability = torch.full((len(every),), 1 / len(every), dtype=torch.float64) if source is None else source
    for q, alpha_s in transitions(sampler, denoise, every, plan_of(sampler, steps, **options)):
        step = torch.stack([q[:, i, every[:, i]] for i in range(length)]).prod(0)  # (S, S): from, to
        probability = probability @ step
        yield alpha_s, probability


def sampled_law(*arguments, **options):
    """Probability of every state after the last update."""
    *_, (_, probability) = laws_of_updates(*arguments, **options)
    return probability


def source(rows, length, seed=0):
    return torch.randint(K, (rows, length), generator=torch.Generator().manual_seed(seed))


def sample(denoise, x0, prediction, **options):
    plan = SamplingPlan(steps=6, prediction=prediction, **options)
    return ancestral(denoise, x0, plan, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "method", [name for name, base in BASES.items() if base.corruption in ("uniform", "absorbing")]
)  # another corruption may need another number of symbols
def test_the_greedy_tail_counts_as_a_call_where_it_can_change_a_sample(method):
    """Of 20,000 positions about 0.2 still hold a mask after the last update."""
    corruption = CORRUPTIONS[BASES[method].corruption](3)
    x0 = corruption.source((10_000, 2), torch.Generator().manual_seed(0))

    def network(x_t, sigma):
        """Prefers the symbol 0, which a draw takes in half of the cases."""
        return torch.tensor([0.5, 0.25, 0.25, 1e-9])[: corruption.symbols].log().expand(*x_t.shape, -1)

    plan = SamplingPlan(steps=2, prediction=corruption.losses["nelbo"].learns)
    plans = (replace(plan, greedy_tail=tail) for tail in (True, False))
    seed = torch.Generator().manual_seed
    with_tail, without = (corruption.sample(network, x0, plan, seed(1)) for plan in plans)
    changed = (with_tail != without).double().mean()
    assert changed > 0.4 if tail_revises(method) else changed <= 1e-4


def test_the_greedy_tail_is_the_argmax_of_one_more_call():
    calls = []

    def denoise(x_t, kappa):
        calls.append((x_t, kappa))
        return leave_one_out_of(TWO)(x_t, kappa)

    x0 = source(50, 2)
    greedy = sample(denoise, x0, "leave_one_out")
    assert len(calls) == 7
    x_t, kappa = calls[-1]
    assert kappa.dtype == torch.float32
    torch.testing.assert_close(kappa, torch.full((50,), DIFFUSION.kappa(LAST_TIME)))
    assert torch.equal(x_t, sample(denoise, x0, "leave_one_out", greedy_tail=False))
    assert torch.equal(greedy, leave_one_out_of(TWO)(x_t, kappa).argmax(-1))


def test_a_temperature_divides_the_logits_and_leaves_the_argmax():
    exact = leave_one_out_of(TWO)
    x_t, kappa = states(2), torch.full((9,), 0.4)
    p = exact(x_t, kappa).exp()
    for temperature in (0.5, 2.0):
        expected = p ** (1 / temperature)
        heated = tempered(p.log(), temperature).exp()
        torch.testing.assert_close(heated, expected / expected.sum(-1, keepdim=True))
        assert torch.equal(heated.argmax(-1), p.argmax(-1))
    assert tempered(p, 1.0) is p
    options = {"prediction": "leave_one_out", "greedy_tail": False}
    plain, *others = (sample(exact, source(500, 2), temperature=t, **options) for t in (1.0, 0.3, 3.0))
    assert all(not torch.equal(plain, other) for other in others)


# Absorbing corruption: symbol 2 is the mask, which the data below do not hold.

MASK = 2
ONE_MASKED = torch.tensor([[0], [1], [1], [1]])
TWO_MASKED = torch.tensor([[0, 1], [1, 0], [1, 0], [0, 0]])


def unmasked_by(data):
    """The exact denoiser of masked states: the data points that agree with all that is shown."""

    def denoise(x_t, kappa):
        fits = ((x_t[:, None] == data) | (x_t[:, None] == MASK)).all(-1).double()  # (B, M)
        fits = fits / fits.sum(1, keepdim=True).clamp(min=1)  # states that no data point fits are never seen
        actual = torch.einsum("bm,mnk->bnk", fits, F.one_hot(data, K).double())
        return torch.where((x_t == MASK)[..., None], actual, F.one_hot(x_t, K).double()).log()

    return denoise


# Ancestral and Euler updates of uniform noise, and MDLM's update, each with the denoiser that it takes.
UPDATES = {
    "ancestral": (ancestral, leave_one_out_of),
    "euler": (euler, posterior_of),
    "mdlm": (euler, unmasked_by),
}
SMALL = {"ancestral": (ONE, TWO), "euler": (ONE, TWO), "mdlm": (ONE_MASKED, TWO_MASKED)}


def law_after(name, data, steps):
    """The exact law after the updates; those of MDLM start from all masks."""
    (sampler, denoiser_of), length = UPDATES[name], data.shape[1]
    source = (states(length) == MASK).all(-1).double() if name == "mdlm" else None
    return sampled_law(sampler, denoiser_of(data), length, steps, source=source)


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize(("name", "error"), [("ancestral", 1e-8), ("euler", 1e-6), ("mdlm", 1e-12)])
def test_one_position_is_sampled_exactly(name, error, steps):
    """Up to the process at the last time. The denoiser is given kappa in float32."""
    data = SMALL[name][0]
    source = torch.tensor([0.0, 0.0, 1.0]) if name == "mdlm" else torch.full((K,), 1 / K)
    expected = LAST_TIME * law(data) + (1 - LAST_TIME) * source.double()
    torch.testing.assert_close(law_after(name, data, steps), expected, rtol=0, atol=error)


@pytest.mark.parametrize("name", UPDATES)
def test_two_positions_come_near_the_data_like_one_over_the_steps(name):
    data = SMALL[name][1]
    distances = [0.5 * (law_after(name, data, steps) - law(data)).abs().sum() for steps in (4, 8, 16, 32)]
    assert distances[0] < 0.3
    for coarse, fine in itertools.pairwise(distances):
        assert 1.7 < coarse / fine < 2.3


PI = torch.tensor([[0.7, 0.2, 0.1], [0.05, 0.35, 0.6]], dtype=torch.float64)  # frequencies, by position


@pytest.mark.parametrize("kind", [leave_one_out_of, posterior_of])
@pytest.mark.parametrize("sampler", [ancestral, euler], ids=["ancestral", "euler"])
def test_from_noise_by_frequency_the_data_are_sampled(sampler, kind):
    """One position exactly, two up to an error like 1 / steps; by either kind of denoiser."""
    sampled = {}
    for data, steps in [(ONE, 1), (ONE, 7), *((TWO, steps) for steps in (4, 8, 16, 32))]:
        length = data.shape[1]
        noise = Frequencies(PI[:length])
        every, by_frequency = states(length), noise.sampler("euler" if sampler is euler else "ancestral")
        start = PI[torch.arange(length), every].prod(-1)  # (S,)
        convert = (kind is posterior_of) != (sampler is euler)
        options = {"source": start, "convert": convert}
        reached = sampled_law(by_frequency, kind(data, noise.pi), length, steps, **options)
        sampled[length, steps] = total_variation(reached, LAST_TIME * law(data) + (1 - LAST_TIME) * start)
    assert max(sampled[1, 1], sampled[1, 7]) < 1e-5
    assert sampled[2, 4] < 0.3
    for steps in (4, 8, 16):
        assert 1.7 < sampled[2, steps] / sampled[2, 2 * steps] < 2.3


SOURCES = states(2)  # each of the nine states is the source of one data row
ROWS = torch.tensor([[0, 1], [2, 2], [1, 0]])
NEAREST = ROWS[(SOURCES[:, None] != ROWS).sum(-1).argmin(-1)]
IN_TURN = ROWS[torch.arange(len(SOURCES)) % 3]


def held_by(x_t, x0, x1, kappa):
    """Probability that each pair's state at kappa is x_t, (B, M)."""
    return (kappa * (x_t[:, None] == x1) + (1 - kappa) * (x_t[:, None] == x0)).prod(-1)


def posterior_of_pairs(x0, x1):
    """The exact denoiser of fixed pairs. On the path of no pair, all rows are equally likely."""

    def denoise(x_t, kappa):
        weights = held_by(x_t, x0, x1, kappa.double()[:, None, None])
        total = weights.sum(1, keepdim=True)
        weights = torch.where(total > 0, weights / total.clamp(min=1e-300), 1 / len(x1))
        return torch.einsum("bm,mnk->bnk", weights, F.one_hot(x1, K).double()).log()

    return denoise


def nelbo_of_pairs(x0, x1):
    """What the NELBO teaches of fixed pairs (test_losses.py)."""
    denoise = posterior_of_pairs(x0, x1)
    return lambda x_t, kappa: posterior_to_leave_one_out(denoise(x_t, kappa), x_t, kappa)


def total_variation(one, other):
    return float(0.5 * (one - other).abs().sum())


def distance_after(sampler, x1, steps):
    """Total variation distance of the samples from the data x1, whose sources are SOURCES."""
    exact = posterior_of_pairs(SOURCES, x1)
    reached = sampled_law(sampler, exact, 2, steps, convert=sampler is ancestral)
    return total_variation(reached, law(x1))


def test_ancestral_updates_sample_another_law_than_that_of_pairs_by_how_much_depends_on_the_coupling():
    """All nine states are sources here, so that no state is off a path."""
    steps = (4, 8, 32, 128)
    near, in_turn = (
        {sampler: [distance_after(sampler, x1, n) for n in steps] for sampler in (euler, ancestral)}
        for x1 in (NEAREST, IN_TURN)
    )
    assert distance_after(ancestral, NEAREST, 1) < 1e-4
    assert max(near[euler]) < 2e-5
    assert near[ancestral] == pytest.approx([0.0880, 0.0871, 0.0857, 0.0858], abs=1e-4)
    assert in_turn[euler] == pytest.approx([0.1999, 0.0965, 0.0209, 0.0049], abs=1e-4)
    assert in_turn[ancestral] == pytest.approx([0.2045, 0.0953, 0.0193, 0.0043], abs=1e-4)


FOUR = torch.tensor([[1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 0, 2]])
ROWS_OF_FOUR = torch.tensor([[0, 0, 0], [2, 0, 0], [1, 1, 0], [2, 1, 1]])


def largest_share_off_paths(sampler, steps):
    """The largest share, of all updates from the four sources, of states that are on the path of no pair."""
    every, exact = states(3), posterior_of_pairs(FOUR, ROWS_OF_FOUR)
    off = held_by(every, FOUR, ROWS_OF_FOUR, 0.5).sum(1) == 0
    options = {"convert": sampler is ancestral, "source": held_by(every, FOUR, FOUR, 1.0).double().mean(1)}
    return max(float(law[off].sum()) for _, law in laws_of_updates(sampler, exact, 3, steps, **options))


def test_both_updates_leave_the_paths_of_pairs_euler_updates_less_and_less():
    shares = {
        one: [largest_share_off_paths(one, steps) for steps in (4, 8, 32)] for one in (euler, ancestral)
    }
    assert shares[euler] == pytest.approx([0.0228, 0.0161, 0.0053], abs=1e-4)
    assert shares[ancestral] == pytest.approx([0.402, 0.443, 0.472], abs=1e-3)


@pytest.mark.parametrize("x1", [NEAREST, IN_TURN], ids=["nearest", "in turn"])
def test_euler_updates_follow_the_marginal_path_of_pairs_whichever_loss_they_were_learnt_by(x1):
    """At every time, up to an error that falls like one over the steps."""

    def gaps(denoise, steps, **options):
        for alpha, reached in laws_of_updates(euler, denoise(SOURCES, x1), 2, steps, **options):
            path = held_by(states(2), SOURCES, x1, alpha).mean(1)
            yield total_variation(reached, path)

    worst = [max(gaps(posterior_of_pairs, steps)) for steps in (8, 16, 32, 64)]
    for coarse, fine in itertools.pairwise(worst):
        assert fine < 1e-4 or 1.8 < coarse / fine < 2.3
    by_nelbo = [*gaps(nelbo_of_pairs, 16, convert=True)]
    assert by_nelbo == pytest.approx([*gaps(posterior_of_pairs, 16)], abs=1e-5)  # kappa in float32
    if x1 is IN_TURN:
        assert max(gaps(nelbo_of_pairs, 64)) > 0.1  # not converted


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("noise", [0.2, 0.7, 1.0])
def test_noised_data_become_the_data_again(name, noise):
    """From the exact law of noised data the error falls like one over the steps; less noise makes less."""
    (sampler, denoiser_of), data, every = UPDATES[name], SMALL[name][1], states(2)
    drawn = (every == MASK).double() if name == "mdlm" else torch.full(every.shape, 1 / K)
    held = (1 - noise) * (every[:, None] == data).double() + noise * drawn[:, None]  # (S, M, N)
    start = {"schedule": Linear(1 - noise), "source": held.prod(-1).mean(-1)}
    gaps = [sampled_law(sampler, denoiser_of(data), 2, steps, **start) - law(data) for steps in (8, 16)]
    coarse, fine = (0.5 * gap.abs().sum() for gap in gaps)
    assert coarse < 0.15 * noise
    assert 1.7 < coarse / fine < 2.3


KINDS = [(ancestral, leave_one_out_of, posterior_of), (euler, posterior_of, leave_one_out_of)]


@pytest.mark.parametrize(("sampler", "own", "other"), KINDS)
def test_a_sampler_draws_from_its_law_whichever_kind_of_denoiser_it_is_given(sampler, own, other):
    rows, names = 20_000, {posterior_of: "posterior", leave_one_out_of: "leave_one_out"}

    def drawn(kind, **options):
        plan = SamplingPlan(steps=4, prediction=names[kind], greedy_tail=False, **options)
        return sampler(kind(TWO), source(rows, 2), plan, generator=torch.Generator().manual_seed(1))

    samples = drawn(own)
    assert torch.equal(samples, drawn(other))
    assert not torch.equal(samples, drawn(other, conversion="none"))
    share = torch.bincount(samples @ torch.tensor([K, 1]), minlength=K**2) / rows
    expected = sampled_law(sampler, own(TWO), 2, 4, schedule=DIFFUSION)
    standard_error = (expected * (1 - expected) / rows).sqrt()
    assert ((share - expected).abs() < 4 * standard_error + 1e-9).all()


@pytest.mark.parametrize("options", [{}, {"temperature": 0.5}, {"given": GIVEN}])
@pytest.mark.parametrize("name", ["ancestral", "euler", "mdlm"])
def test_samples_by_position_follow_the_same_law(name, options):
    """With few rows at a time, by enumeration."""
    sampler, denoiser_of = UPDATES[name]
    sampler = replace(unmask, mask=MASK) if name == "mdlm" else sampler
    data, count = SKEWED if "given" in options else SMALL[name][1], 20_000
    x0 = torch.full((count, 2), MASK) if name == "mdlm" else source(count, 2)
    if "given" in options:
        expected = kept_law(name, data, GIVEN, 4)
    else:
        start = (states(2) == MASK).all(-1).double() if name == "mdlm" else None
        expected = sampled_law(sampler, denoiser_of(data), 2, 4, source=start, **options)
    plan, generator = plan_of(sampler, 4, **options), torch.Generator().manual_seed(4)
    denoise = denoiser_of(data)  # as one that can be asked for some positions
    x = sampler(lambda x, kappa, where: denoise(x, kappa)[where], x0, plan, rows=7000, generator=generator)
    share = torch.bincount(x @ torch.tensor([K, 1]), minlength=K**2) / count
    assert ((share - expected).abs() <= 4 * (expected * (1 - expected) / count).sqrt() + 4 / count).all()


LABELLED = [
    (Uniform(K), torch.arange(20_000) % 2, "euler"),
    (Frequencies(PI), torch.arange(20_000) % 2, "ancestral"),
    (Absorbing(K, MASK), torch.tensor(1), "euler"),
]


@pytest.mark.parametrize(("kind", "label", "name"), LABELLED, ids=["uniform", "frequencies", "absorbing"])
@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_a_corruption_of_many_symbols_samples_by_position_with_the_same_law(
    monkeypatch, kind, label, name, weight
):
    """Labels and guidance included: the law of the samples is that of all positions at once."""

    def network(x_t, sigma, label=None):
        own = 0 if label is None else F.one_hot(label, K).double()[:, None]
        return F.one_hot((x_t.sum(1, keepdim=True) + x_t) % 2, K).double() + 2 * own

    def shares(few):
        monkeypatch.setattr(corruption, "MANY_SYMBOLS", few)
        monkeypatch.setattr(corruption, "PART_VALUES", 30_000)
        asked = {"labels": label, "guidance": weight, "greedy_tail": False}
        plan = SamplingPlan(sampler=name, steps=3, prediction="posterior", **asked)
        x0 = kind.source((20_000, 2), torch.Generator().manual_seed(0))
        x = kind.sample(network, x0, plan, torch.Generator().manual_seed(few))
        return torch.bincount(x @ torch.tensor([K, 1]) + K**2 * label, minlength=2 * K**2) / len(x)

    one, other = shares(2), shares(100)
    assert ((one - other).abs() <= 4.5 * ((one + other) / 20_000).sqrt() + 4 / 20_000).all()


def test_only_rows_with_a_position_that_leaves_reach_the_network(monkeypatch):
    """Of two positions at 100 steps, each leaves with probability 1/100, 1/99, ...: ten times in all."""
    monkeypatch.setattr(corruption, "MANY_SYMBOLS", 2)
    network, kind = Network(), Uniform(K)
    x0 = kind.source((50, 2), torch.Generator().manual_seed(0))
    plan = SamplingPlan(sampler="euler", steps=100, prediction="posterior")
    kind.sample(network, x0, plan, torch.Generator().manual_seed(1))
    assert 8 * 50 < network.rows < 13 * 50


class Network(torch.nn.Module):
    """Logits that depend on the whole state; counts the rows that it was asked for."""

    def __init__(self):
        super().__init__()
        self.table, self.rows = torch.randn(7, K, generator=torch.Generator().manual_seed(0)), 0

    def forward(self, x_t, sigma):
        self.rows += len(x_t)
        place = torch.arange(x_t.shape[1])
        return self.table[(x_t.sum(1, keepdim=True) + place) % 7]


def test_an_unmasked_token_stays_and_none_is_left_masked():
    corruption, seen = Absorbing(K, MASK), []
    denoise = corruption.denoiser(Network())

    def watch(x_t, kappa):
        seen.append(x_t)
        return denoise(x_t, kappa)

    x0 = corruption.source((200, 6))
    plan = SamplingPlan(steps=9, prediction="posterior")
    end = corruption.sampler("ancestral")(watch, x0, plan, generator=torch.Generator().manual_seed(0))
    for before, after in itertools.pairwise([*seen, end]):
        assert torch.equal(before[before != MASK], after[before != MASK])
    assert (seen[0] == MASK).all()
    assert not (end == MASK).any()


def test_rows_that_did_not_change_are_not_computed_again():
    corruption, network = Absorbing(K, MASK), Network()
    plan = SamplingPlan(steps=100, prediction="posterior")
    x0 = corruption.source((50, 6))
    remembering, forgetting = corruption.denoiser(network), corruption.denoiser(network).denoise
    first = euler(remembering, x0, plan, generator=torch.Generator().manual_seed(3))
    asked, network.rows = network.rows, 0
    second = euler(forgetting, x0, plan, generator=torch.Generator().manual_seed(3))
    assert torch.equal(first, second)
    assert network.rows == 101 * 50
    assert 50 < asked <= 7 * 50  # once, and after each of at most six changes


def test_each_row_keeps_its_label_where_only_some_rows_are_computed_again():
    def network(x_t, sigma, label=None):
        return 100.0 * F.one_hot(label, K)[:, None].expand(*x_t.shape, K)

    labels = torch.arange(50) % 2
    plan = SamplingPlan(steps=100, prediction="posterior", labels=labels)
    x = Absorbing(K, MASK).sample(network, torch.full((50, 6), MASK), plan)
    assert (x == labels[:, None]).all()


@pytest.mark.parametrize(
    ("length", "symbols", "rows"), [(32, 40, 1024), (784, 2, 1024), (3072, 256, 64), (12_288, 256, 16)]
)
def test_a_batch_takes_half_a_gibibyte_at_most(length, symbols, rows):
    assert Uniform(symbols).rows_at_once(length) == rows
    assert rows * length * symbols * 8 <= 2**29


HAND = [
    (Uniform(K), {"sampler": "ancestral", "prediction": "posterior"}),
    (Uniform(K), {"sampler": "euler", "prediction": "leave_one_out", "temperature": 0.5}),
    (Uniform(K), {"sampler": "euler", "prediction": "leave_one_out", "conversion": "none", "guidance": 0.0}),
    (Uniform(K), {"prediction": "leave_one_out", "guidance": 2.0, "schedule": Linear(0.3)}),
    (Frequencies(PI.repeat(2, 1)), {"prediction": "posterior", "guidance": 2.0}),
    (Absorbing(K, MASK), {"prediction": "posterior", "guidance": 2.0}),
]


@pytest.mark.parametrize("given", [None, torch.tensor([FREE, 1, FREE, 0])], ids=["free", "given"])
@pytest.mark.parametrize(("kind", "options"), HAND)
def test_a_loop_that_calls_step_draws_the_rows_of_the_sampler(kind, options, given):
    table = torch.randn(7, K, generator=torch.Generator().manual_seed(0))

    def network(x_t, sigma, label=None):
        own = 0 if label is None else F.one_hot(label, K)[:, None]
        return table[(x_t.sum(1, keepdim=True) + x_t) % 7] + own

    plan = SamplingPlan(steps=3, labels=torch.arange(50) % 2, given=given, **options)
    x0, seed = kind.source((50, 4), torch.Generator().manual_seed(2)), torch.Generator().manual_seed
    sampler, generator, kappa = kind.sampler(plan.sampler), seed(3), plan.schedule.kappa
    labelled = partial(network, label=plan.labels)
    x = with_given(x0, given)
    for t, s in itertools.pairwise(plan.times):
        log_p, plain = (kind.log_probabilities(read, x, kappa(t)) for read in (labelled, network))
        x = sampler.step(x, log_p, t, s, plan, plain, generator)
    assert torch.equal(x, kind.sample(network, x0, replace(plan, greedy_tail=False), seed(3)))
    log_p, plain = (kind.log_probabilities(read, x, kappa(s)) for read in (labelled, network))
    x = sampler.mode(log_p, plan, plain)
    assert torch.equal(x, kind.sample(network, x0, plan, seed(3)))


def test_a_network_on_a_cpu_sees_few_rows_at_a_time():
    seen = []

    def network(x_t, sigma, label):
        seen.append(len(x_t))
        return torch.stack([x_t * sigma[:, None], label.expand(len(x_t))[:, None] + x_t], dim=-1)

    x_t, sigma = torch.randint(2, (200, 784)), torch.rand(200)
    for label in (torch.arange(200), torch.tensor(7)):  # of each row, or of all
        seen.clear()
        actual = in_parts(network, x_t, sigma, label)
        assert seen == [83, 83, 34]
        assert torch.equal(actual, network(x_t, sigma, label))


CONDITIONAL = torch.tensor([1 / 3, 2 / 3], dtype=torch.float64)  # of the second position
LAST_TWO = torch.tensor([[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 1, 0], [1, 1, 1]])


def kept_law(name, data, given, steps):
    """The exact law of `sampled_law` where given symbols are kept, of every state."""
    sampler, denoiser_of = UPDATES[name]
    every, free = states(data.shape[1]), given == FREE
    start = (every[:, free] == MASK).all(-1) if name == "mdlm" else torch.ones(len(every), dtype=torch.bool)
    start = (start & (every == with_given(every, given)).all(-1)).double()
    probability = start / start.sum()
    kept = F.one_hot(given.clamp(min=0), K).double()
    for q, _ in transitions(sampler, denoiser_of(data), every, plan_of(sampler, steps)):
        q = torch.where(free[:, None], q, kept)
        step = torch.stack([q[:, i, every[:, i]] for i in range(len(given))]).prod(0)
        probability = probability @ step
    return probability


@pytest.mark.parametrize("name", UPDATES)
def test_given_symbols_are_kept_and_others_follow_the_exact_law(name):
    sampler, denoiser_of = UPDATES[name]
    seen = []

    def denoise(x_t, kappa):
        seen.append(x_t)
        return denoiser_of(SKEWED)(x_t, kappa)

    x0 = torch.full((20_000, 2), MASK) if name == "mdlm" else source(20_000, 2)
    plan, seed = plan_of(sampler, 4, given=GIVEN), torch.Generator().manual_seed
    x = sampler(denoise, x0, plan, generator=seed(3))
    assert len(seen) == 4
    assert all((x_t[:, 0] == 0).all() for x_t in [*seen, x])
    expected = kept_law(name, SKEWED, GIVEN, 4).view(K, K)[0]
    share = torch.bincount(x[:, 1], minlength=K) / len(x)
    assert ((share - expected).abs() <= 4 * (expected * (1 - expected) / len(x)).sqrt() + 1e-12).all()
    greedy = sampler(denoise, x0, replace(plan, greedy_tail=True), generator=seed(3))
    assert (greedy[:, 0] == 0).all()
    own = torch.stack([GIVEN, GIVEN.flip(0) + 1]).clamp(min=FREE).repeat(10_000, 1)  # of each row
    rows = sampler(denoise, x0, replace(plan, given=own, greedy_tail=True), generator=seed(3))
    assert ((rows == own) | (own == FREE)).all()
    with pytest.raises(InputError, match=r"^given: expected shape \(20000, 2\), found \(3, 2\)"):
        sampler(denoise, x0, replace(plan, given=own[:3]))


def test_with_masks_samples_follow_the_conditional_of_the_data():
    assert torch.allclose(kept_law("mdlm", SKEWED, GIVEN, 1).view(K, K)[0, :2], CONDITIONAL, atol=1e-4)
    given = torch.tensor([0, FREE, FREE])
    data = law(LAST_TWO).view(K, K, K)
    conditional = data[0] / data[0].sum()
    laws = (kept_law("mdlm", LAST_TWO, given, steps).view(K, K, K)[0] for steps in (16, 32, 64))
    gaps = [(law - conditional).abs().sum().item() for law in laws]
    assert gaps[1] == pytest.approx(gaps[0] / 2, rel=0.1)  # two positions are drawn at once less often
    assert gaps[2] == pytest.approx(gaps[1] / 2, rel=0.1)


@pytest.mark.parametrize(("name", "share"), [("ancestral", 0.431), ("euler", 0.442)])
def test_uniform_noise_takes_given_symbols_for_noisy_ones(name, share):
    """The limit of many steps lies between the conditional, 1/3, and the marginal of the data, 2/3.

    The numbers are in docs/method.md. What the given symbols rule out is not drawn, but for the last time.
    """
    after = {steps: kept_law(name, SKEWED, GIVEN, steps).view(K, K)[0] for steps in (64, 256)}
    assert after[256][0] == pytest.approx(share, abs=1e-3)
    assert after[64][0] == pytest.approx(share, abs=3e-3)
    assert after[256][2] < 1e-5


def test_draws_follow_the_probabilities_and_never_take_an_impossible_symbol():
    probabilities = torch.tensor([0.0, 0.5, 0.0, 0.3, 0.2, 0.0], dtype=torch.float64)
    symbols = draw(probabilities.expand(100, 400, 6), torch.Generator().manual_seed(0))
    share = torch.bincount(symbols.flatten(), minlength=6) / symbols.numel()
    assert ((share - probabilities).abs() <= 4 * (probabilities * (1 - probabilities) / 40_000).sqrt()).all()
