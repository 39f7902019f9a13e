#!/usr/bin/env python3
"""Links of a package's pages: to where the package has the file, else plain text; and a check that reports the rest.

  package_links_test.py ROOT
"""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop()).resolve()
sys.path.insert(0, str(ROOT / 'tools'))
import package_links  # noqa: E402

HOME = 'share/doc/gpushare/'
FILES = {'include/gpushare/gpushare.h': 'int a;\n', 'share/gpushare/scenarios/smoke.json': '{}\n',
         'share/gpushare/rust/README.md': '# Rust\n\n[guide](../../docs/a.md#two-words) [sys](gpushare-sys)\n',
         'share/gpushare/rust/gpushare-sys/lib.rs': '\n', f'{HOME}examples/quickstart.c': 'int b;\n',
         f'{HOME}README.md': '# P\n\n[a](docs/a.md#two-words) [docs](docs/) [q](examples/quickstart.c)\n'}
PAGE = '# A\n\n## Two words\n\n'


def packed(page):
    """The pages of a package, and what its check reports, with this page docs/a.md."""
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        for name, text in {**FILES, f'{HOME}docs/a.md': PAGE + page}.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text, encoding='utf-8')
        before = package_links.check(tree)
        package_links.rewrite(tree)
        texts = {path.relative_to(tree).as_posix(): path.read_text(encoding='utf-8') for path in tree.rglob('*.md')}
        return texts, before, package_links.check(tree)


class PackageLinks(unittest.TestCase):
    def lines(self, page):
        texts, _, problems = packed(page)
        self.assertEqual(problems, [])
        return texts[f'{HOME}docs/a.md'].removeprefix(PAGE)

    def test_a_file_that_the_package_has_is_linked_where_it_lies(self):
        self.assertEqual(self.lines('[h](../bindings/c/gpushare.h) [s](../examples/scenarios/smoke.json)\n'
                                    '[r](../bindings/rust/README.md#rust) [all](../examples/scenarios)\n'),
                         '[h](../../../../include/gpushare/gpushare.h) [s](../../../gpushare/scenarios/smoke.json)\n'
                         '[r](../../../gpushare/rust/README.md#rust) [all](../../../gpushare/scenarios)\n')

    def test_a_file_that_it_lacks_is_plain_text(self):
        self.assertEqual(self.lines('see [`src`](../src/README.md#x), [its page](../tests/a.c) and [me](a.md)\n'),
                         'see `src`, its page and [me](a.md)\n')

    def test_code_links_of_the_web_and_of_the_page_stay(self):
        page = '`[a](gone.md)` [w](https://a.b/c) [own](#two-words)\n\n```\n[b](gone.md)\n```\n'
        texts, _, _ = packed(page)
        self.assertEqual(texts[f'{HOME}docs/a.md'], PAGE + page)

    def test_pages_outside_the_documentation_reach_it(self):
        texts, _, problems = packed('')
        self.assertEqual(problems, [])
        self.assertIn('[guide](../../doc/gpushare/docs/a.md#two-words) [sys](gpushare-sys)',
                      texts['share/gpushare/rust/README.md'])
        self.assertEqual(texts[f'{HOME}README.md'], FILES[f'{HOME}README.md'])

    def test_the_check_reports_what_leads_nowhere(self):
        _, before, after = packed('[gone](../src/a.c)\n\n[none](a.md#three)\n')
        self.assertIn(f'{HOME}docs/a.md:5: the link ../src/a.c leads nowhere', before)
        self.assertEqual(after, [f'{HOME}docs/a.md:7: the link a.md#three names no heading of its page'])


if __name__ == '__main__':
    unittest.main()
