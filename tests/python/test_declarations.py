"""What is written from the C headers has the layout of the C compiler, and the gate that says so can fail."""

import pathlib
import re
import shutil
import sys

import pytest
from conftest import PACKAGE, ROOT

import gpushare

sys.path.insert(0, str(PACKAGE))
import generate
from c_header import HEADERS as HEADER_NAMES

HEADERS = ROOT / 'bindings/c'
COMPILER = shutil.which('cc')


@pytest.fixture
def doctored(tmp_path):
    """Makes copies of the headers and the package in which gpushare.h has `new` in the place of `old`."""
    def doctor(old, new):
        headers, package = tmp_path / 'headers', tmp_path / 'gpushare'
        headers.mkdir()
        shutil.copytree(PACKAGE / 'gpushare', package)
        for name in HEADER_NAMES:
            shutil.copy(HEADERS / name, headers)
        text = (headers / 'gpushare.h').read_text()
        assert old in text
        (headers / 'gpushare.h').write_text(text.replace(old, new, 1))
        return ['--headers', str(headers), '--package', str(package)]
    return doctor


@pytest.mark.skipif(COMPILER is None, reason='there is no C compiler')
def test_sizes_and_offsets_are_those_of_the_c_compiler():
    assert generate.main(['--layout', COMPILER]) == 0


APPENDED = ('  void* slice_function;  // CUfunction of the slice form; null: the worker form runs slices\n',
            '  void* slice_function;\n  int64_t later_ns;  // Length of a later thing.\n')


def test_a_field_that_is_appended_is_declared(doctored):
    arguments = doctored(*APPENDED)
    assert generate.main(arguments) == 0
    package = pathlib.Path(arguments[3])
    assert "('later_ns', ctypes.c_int64)" in (package / 'abi.py').read_text()
    assert '    # Length of a later thing.\n    later_ns: int\n' in (package / 'options.py').read_text()


def test_a_function_and_a_record_that_are_appended_are_declared(doctored):
    arguments = doctored('// --- calibration ---', '''
typedef struct gpushare_later {
  uint32_t struct_size;
  gpushare_verdict verdict;
  double share[2];
  int64_t held_ns;
} gpushare_later;
GPUSHARE_API gpushare_status gpushare_later_get(gpushare_app* app,
                                                gpushare_later* out_later) GPUSHARE_NOEXCEPT;
// --- calibration ---''')
    assert generate.main(arguments) == 0
    package = pathlib.Path(arguments[3])
    assert "'gpushare_later_get'" in (package / 'abi.py').read_text()
    records = (package / 'records.py').read_text()
    fields = records[records.index('class Later:'):]
    assert '    verdict: Verdict\n    share: tuple[float, ...]\n    held_ns: int\n' in fields


@pytest.mark.skipif(COMPILER is None, reason='there is no C compiler')
@pytest.mark.parametrize(('old', 'new'), [
    ('  int64_t p99_alone_ns;', '  int32_t moved;\n  int32_t also;\n  int64_t p99_alone_ns;'),
    ('  int32_t tasks_max;', '  int32_t tasks_max2;'),
])
def test_a_field_that_moved_fails_against_the_compiler(doctored, capsys, old, new):
    assert generate.main(['--layout', COMPILER, *doctored(old, new)]) == 1
    assert 'gpushare_app_options' in capsys.readouterr().err


def test_a_source_tree_without_declarations_says_how_to_write_them(doctored, run_python, capsys):
    package = pathlib.Path(doctored('', '')[3])
    (package / 'abi.py').unlink()
    said = run_python('import gpushare', expected=1, PYTHONPATH=str(package.parent))
    assert "ImportError: This gpushare is a source tree" in said
    assert f"python3 '{package.parent}/generate.py'" in said
    assert generate.main(['--layout', 'cc', '--package', str(package)]) == 1
    assert 'has no abi.py' in capsys.readouterr().err


def test_an_unknown_declaration_is_refused(doctored, capsys):
    assert generate.main(doctored('typedef int32_t gpushare_bool;', 'union a { int b; };')) == 1
    assert 'no declaration that the generator knows' in capsys.readouterr().err


def test_every_function_of_the_headers_is_reachable():
    text = ''.join((HEADERS / name).read_text() for name in HEADER_NAMES)
    declared = set(re.findall(r'\b(gpushare_\w+)\([^;{]*\) ?\s*GPUSHARE_NOEXCEPT;', text))
    symbols = set((HEADERS / 'symbols.txt').read_text().split())
    assert declared == symbols
    assert set(gpushare.abi.FUNCTIONS) == declared
    for name in declared:
        assert callable(getattr(gpushare.library(), name))


def test_a_function_that_nobody_declares_has_a_message():
    with pytest.raises(AttributeError, match="has no function 'gpushare_nothing'"):
        gpushare.library().gpushare_nothing  # noqa: B018


def test_a_value_of_a_newer_library_is_a_member():
    verdict = gpushare.Verdict(4711)
    assert verdict == 4711
    assert verdict.name == 'VALUE_4711'
    with pytest.raises(ValueError, match='x'):
        gpushare.Verdict('x')
