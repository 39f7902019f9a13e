"""benchmarks/papers/mixes.py: mixes of five placements, predicted and compared with what was measured."""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'benchmarks' / 'papers'))
import mixes


@pytest.fixture(scope='module')
def scenario():
    return mixes.scenario()


def test_each_placement_has_every_instance_once_and_three_to_five_a_gpu(scenario):
    cases = {case['name']: case for case in scenario['cases']}
    assert len(cases) == len(scenario['cases']) == 32 + 20
    for placement in mixes.PLACEMENTS:
        beside = [cases[f'{placement}-{app}']['be'] for app in mixes.LOADS]
        assert sorted(name for names in beside for name in names) == sorted(app['name'] for app in scenario['be'])
        assert all(3 <= len(names) <= 5 for names in beside)
    assert json.dumps(scenario) == json.dumps(mixes.scenario())


def result_of(scenario, be_rate):
    """As if each case had a p99 of 1.01 and the BE rate that be_rate says of its LC app and BE apps."""
    runs = [{'case': case['name'], 'policy': 'adaptive', 'lc': [{'app': case['lc'][0], 'p99_over_alone': 1.01}],
             'be': [{'app': name} for name in case['be']], 'be_rate_of_solo': be_rate(case['lc'][0], case['be'])}
            for case in scenario['cases']]
    return {'device': 'sim', 'simulated': True, 'runs': runs}


def test_what_is_measured_as_predicted_has_no_error_and_no_regret(scenario):
    pairs = mixes.predicted_pairs(*mixes.apps())
    found = mixes.compare(result_of(scenario, lambda app, beside: mixes.at_once(pairs, app, beside)[1]))
    for row in found['mixes']:
        assert row['predicted_be'] == pytest.approx(row['be_rate']) == pytest.approx(row['be_of_pairs'])
        assert row['p99_of_pairs'] == pytest.approx(1 + 0.01 * len(row['be']))
    assert found['regret'] == 0
    assert 'SIMULATED' in mixes.text(found)


def test_mixes_of_other_predictions_are_refused(scenario):
    result = result_of(scenario, lambda app, beside: 0.4)
    mix = next(run for run in result['runs'] if run['case'] == 'greedy-chain1')
    mix['be'] = mix['be'][1:]
    with pytest.raises(SystemExit, match='other predictions'):
        mixes.compare(result)


def test_the_regret_is_what_the_assignment_lacks_of_the_best(scenario):
    best = {tuple(case['be']) for case in scenario['cases'] if case['name'].startswith('random-2-')}
    found = mixes.compare(result_of(scenario, lambda app, beside: 0.5 if tuple(beside) in best else 0.4))
    assert found['regret'] == pytest.approx(0.2)
