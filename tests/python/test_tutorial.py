"""The programs of the tutorial's pages run as they stand there."""

import pathlib
import re
import shutil
import subprocess

import pytest

import gpushare

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks(page, language):
    return re.findall(rf'```{language}\n(.*?)```', (ROOT / 'docs' / page).read_text(encoding='utf-8'), re.DOTALL)


def run(*command, folder):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=folder)


@pytest.mark.parametrize(('page', 'shorter', 'printed'), [
    ('first-program.md', {}, r'OK after \d+ us\n'),
    ('beside.md', {'queries=200': 'queries=20', '20_000_000': '2_000_000'},
     r'p99 alone \d+ us, beside training \d+ us; the step was evicted [1-9]\d* times\n'),
])
def test_a_python_program_prints_what_its_page_says(page, shorter, printed, capsys):
    program, = blocks(page, 'python')
    for words, fewer in shorter.items():
        assert words in program
        program = program.replace(words, fewer)
    exec(program, {'__name__': '__main__'})
    assert re.fullmatch(printed, capsys.readouterr().out)


def test_the_c_program_compiles_as_c99_and_runs(tmp_path):
    compiler = shutil.which('cc')
    if compiler is None:
        pytest.skip('There is no C compiler.')
    program, = blocks('first-program.md', 'c')
    (tmp_path / 'first.c').write_text(program)
    library = pathlib.Path(gpushare.library_path()).resolve()
    done = run(compiler, '-std=c99', '-Wall', '-Wextra', '-Werror', 'first.c', f'-I{ROOT / "include"}', str(library),
               f'-Wl,-rpath,{library.parent}', '-o', 'first', folder=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run('./first', folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r'ok after \d+ us\n', done.stdout), done.stdout
