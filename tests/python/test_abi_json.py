"""abi.json says what the headers say, and the gate that compares it with the C compiler can fail."""

import copy
import json
import shutil
import sys

import pytest
from conftest import PACKAGE, ROOT

sys.path.insert(0, str(PACKAGE))
import abi_json
from c_header import parse
from c_layout import c_layout

HEADERS = ROOT / 'bindings/c'
COMPILER = shutil.which('cc')


@pytest.fixture(scope='module')
def abi():
    return abi_json.description(parse(HEADERS))


@pytest.fixture(scope='module')
def layout():
    if COMPILER is None:
        pytest.skip('there is no C compiler')
    return c_layout(parse(HEADERS), HEADERS, COMPILER)


def field(abi, struct, name):
    return next(each for each in abi['structs'][struct]['fields'] if each['name'] == name)


def test_every_number_is_that_of_the_c_compiler(abi, layout):
    assert abi_json.differences(abi, layout) == []


@pytest.mark.parametrize('break_it', [
    lambda abi: abi['structs']['gpushare_ticket'].update(size=16),
    lambda abi: field(abi, 'gpushare_task_options', 'query').update(offset=0),
    lambda abi: field(abi, 'gpushare_app_guarantee', 'held_ns').update(size=8),
    lambda abi: abi['enums']['gpushare_verdict_value'].update(GPUSHARE_VERDICT_OK=2),
    lambda abi: abi['constants'].update(GPUSHARE_HOLD_REASONS=31),
])
def test_a_wrong_number_is_found(abi, layout, break_it):
    broken = copy.deepcopy(abi)
    break_it(broken)
    assert len(abi_json.differences(broken, layout)) == 1


def test_the_functions_are_those_that_the_library_exports(abi):
    assert sorted(abi['functions']) == (HEADERS / 'symbols.txt').read_text().split()


def test_types_are_written_as_in_the_header(abi):
    assert field(abi, 'gpushare_task_options', 'wait_events')['type'] == 'void* const*'
    assert field(abi, 'gpushare_calibration_options', 'cancel')['type'] == 'const volatile int32_t*'
    assert field(abi, 'gpushare_app_guarantee', 'held_ns')['count'] == 32
    assert abi['functions']['gpushare_runtime_create'] == {
        'result': 'gpushare_status',
        'arguments': [{'name': 'options', 'type': 'const gpushare_runtime_options*'},
                      {'name': 'out_runtime', 'type': 'gpushare_runtime**'}]}
    assert abi['functions']['gpushare_version_string']['result'] == 'const char*'
    make_plan = field(abi, 'gpushare_policy_table', 'make_plan')
    assert [each['name'] for each in make_plan['arguments']] == ['user', 'snapshot', 'plan']


def test_the_file_has_versions_and_a_format(tmp_path):
    path = tmp_path / 'abi.json'
    assert abi_json.main([str(path)]) == 0
    written = json.loads(path.read_text())
    assert (written['format'], written['abi_version'], written['soname']) == (1, 1, 'libgpushare.so.1')


def test_an_unknown_type_is_an_error(tmp_path, capsys):
    for name in HEADERS.glob('gpushare*.h'):
        shutil.copy(name, tmp_path)
    header = tmp_path / 'gpushare.h'
    header.write_text(header.read_text().replace('  int32_t sms;\n', '  long double sms;\n', 1))
    assert abi_json.main(['--headers', str(tmp_path), str(tmp_path / 'abi.json')]) == 1
    assert 'long' in capsys.readouterr().err
