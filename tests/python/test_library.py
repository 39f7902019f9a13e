"""How the library is found, and what is said when it is not."""

import ctypes
import pathlib

import pytest
from conftest import PACKAGE

import gpushare
from gpushare import _library


def test_the_library_is_that_of_the_environment(monkeypatch):
    monkeypatch.setenv('GPUSHARE_LIBRARY', '/somewhere/libgpushare.so.1')
    assert gpushare.library_path() == '/somewhere/libgpushare.so.1'


def test_without_the_variable_the_carried_library_comes_first(monkeypatch, tmp_path):
    monkeypatch.delenv('GPUSHARE_LIBRARY', raising=False)
    monkeypatch.setattr(_library, '__file__', str(tmp_path / '_library.py'))
    assert gpushare.library_path() == 'libgpushare.so.1'
    carried = tmp_path / 'lib/libgpushare.so.1'
    carried.parent.mkdir()
    carried.touch()
    assert pathlib.Path(gpushare.library_path()) == carried


def test_a_missing_library_says_what_to_do(run_python):
    said = run_python('import gpushare; gpushare.Runtime()', expected=1, GPUSHARE_LIBRARY='/nowhere/libgpushare.so.1')
    assert 'ImportError: libgpushare cannot be loaded: /nowhere/libgpushare.so.1' in said
    assert 'set GPUSHARE_LIBRARY' in said


def test_another_abi_version_is_refused(monkeypatch):
    monkeypatch.setattr(gpushare.abi, 'GPUSHARE_ABI_VERSION', 2)
    with pytest.raises(ImportError, match='has ABI version 1, and this package needs 2'):
        _library._load(gpushare.library_path())


def test_the_package_has_the_version_of_the_library():
    project = (PACKAGE / 'pyproject.toml').read_text()
    abi = gpushare.abi
    expected = f'{abi.GPUSHARE_VERSION_MAJOR}.{abi.GPUSHARE_VERSION_MINOR}.{abi.GPUSHARE_VERSION_PATCH}'
    assert f'\nversion = "{expected}"\n' in project
    assert gpushare.version() == expected


def test_an_older_library_names_the_missing_function():
    functions = gpushare.abi.Functions(ctypes.CDLL(None))
    with pytest.raises(AttributeError, match="no function 'gpushare_poll'"):
        functions.gpushare_poll  # noqa: B018
