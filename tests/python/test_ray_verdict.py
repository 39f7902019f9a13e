"""What makes a phase of benchmarks/ray/compare.py fail, without Ray."""

import importlib.util
import pathlib

import pytest

FILE = pathlib.Path(__file__).resolve().parents[2] / 'benchmarks/ray/verdict.py'
SPEC = importlib.util.spec_from_file_location('ray_verdict', FILE)
VERDICT = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(VERDICT)


def wrong(outcomes=None, **changes):
    return VERDICT.verdict({'outcomes': {'version 1': 90, **(outcomes or {})}, 'lost': 0, 'twice': 0, 'breaks': 0,
                            'least': True, 'ranked': 90, 'services': {'chat': {'answered': 90}}, **changes})


def test_a_phase_without_errors_passes():
    assert wrong() == []
    assert wrong(least=False, ranked=0) == []


def test_requests_may_end_with_the_replicas_that_held_them():
    assert wrong({'ActorDiedError': 20, 'ActorUnavailableError': 12}, breaks=1) == []
    assert wrong({'ActorDiedError': 64}, breaks=2) == []


@pytest.mark.parametrize(('changes', 'sentence'), [
    ({'lost': 2}, '2 requests had no answer and no error'), ({'twice': 1}, '1 requests were answered twice'),
    ({'outcomes': {'ActorDiedError': 1}}, 'nothing was broken'),
    ({'outcomes': {'ActorDiedError': 33}, 'breaks': 1}, 'At most 32 requests'),
    ({'outcomes': {'KeyError': 1}, 'breaks': 1}, 'KeyError'),
    ({'services': {'chat': {'answered': 0}}}, "without any answer: ['chat']"),
    ({'ranked': 0}, 'another router chose them')])
def test_what_must_not_happen_is_said(changes, sentence):
    found, = wrong(**changes)
    assert sentence in found
