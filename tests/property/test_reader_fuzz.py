"""Damaged real traces: untouched events give the same figures, or a problem names the place (200 mutations).

`make fuzz` tries 20,000. What it found before stands here as examples.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.fuzzing import SilentlyWrongError, Subject, check, subjects, try_one
from support.mutations import MUTATORS, Mutation, mutate

MUTATIONS = 200


@pytest.fixture(scope="module")
def real(shared_traces: Path) -> list[Subject]:
    return subjects(shared_traces)


def test_no_mutation_is_silently_wrong(real: list[Subject]) -> None:
    @settings(max_examples=MUTATIONS, deadline=None, database=None)
    @given(st.randoms(use_true_random=False), st.integers(0, len(real) - 1))
    def holds(rng: random.Random, number: int) -> None:
        check(real[number], mutate(real[number].clean, rng), rng)

    holds()


@pytest.mark.parametrize("mutator", MUTATORS, ids=lambda mutator: mutator.__name__.strip("_"))
def test_every_mutator_changes_something_and_is_borne(real: list[Subject], mutator: object) -> None:
    rng = random.Random(3)
    for subject in real[:3]:
        mutation = mutator(subject.clean, rng)  # type: ignore[operator]
        assert mutation.stored != subject.clean.text
        check(subject, mutation, rng)


@pytest.mark.parametrize("seed", [60, 371, 521])
def test_what_was_found_before(real: list[Subject], seed: int) -> None:
    try_one(real[seed % len(real)], seed)


def test_the_oracle_sees_a_lost_event_and_a_changed_one(real: list[Subject]) -> None:
    subject, rng = real[0], random.Random(0)
    clean = subject.clean
    i = next(i for i, row in enumerate(subject.rows) if row is not None)
    without = clean.text[: clean.starts[i]] + clean.text[clean.starts[i + 1] :]
    with pytest.raises(SilentlyWrongError, match="lost"):
        check(subject, Mutation(kind="none", stored=without), rng)
    event = clean.text[clean.starts[i] : clean.ends[i]]
    changed = clean.text.replace(event, event.replace(b'"dur": ', b'"dur": 1'))
    with pytest.raises(SilentlyWrongError, match="changed"):
        check(subject, Mutation(kind="none", stored=changed), rng)
    check(subject, Mutation(kind="none", stored=changed, touched=frozenset({i})), rng)
