#!/usr/bin/env python3
"""What tools/site writes for the documentation site: links that are rewritten, and a reference of every declaration.

  site_test.py ROOT
"""

import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop()).resolve()
sys.path.insert(0, str(ROOT / 'tools/site'))
import c_reference  # noqa: E402
import network  # noqa: E402
import stage  # noqa: E402

HEADER = '''// What it is.
//
// Call sequence
//    one()
// - An item
//   goes on.
#ifndef A_
#define A_

// --- first things ------------------------------------------------------

// Makes it; see gpushare_done.
// Threads: any. Owns: nothing.
// Blocks: no.
GPUSHARE_API gpushare_status gpushare_make(int a,
                                           int b) GPUSHARE_NOEXCEPT;

typedef struct gpushare_pair {
  int a;

  int b;  // of a[i]
} gpushare_pair;
#define GPUSHARE_PAIR_INIT 0

// --- last things -------------------------------------------------------

// docs/a.md says when.
GPUSHARE_API void gpushare_done(void) GPUSHARE_NOEXCEPT;

#endif
'''


def written(text, name='a.h'):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        path.write_text(text, encoding='utf-8')
        links = c_reference.Links()
        links.add('a.md', c_reference.read(path)[1])
        return c_reference.write_page('a.md', 'A', 'Intro.', path, links, '../')


def declared(page):
    """The names that a reference page declares: in its headings, behind `Also:`, and with `(` in its code."""
    names = set(re.findall(r'^### (\w+) \{', page, re.MULTILINE))
    for also in re.findall(r'^Also: (.*)$', page, re.MULTILINE):
        names |= set(re.findall(r'`(\w+)`', also))
    for code in re.findall(r'^```c(?:pp)?\n(.*?)^```$', page, re.MULTILINE | re.DOTALL):
        names |= set(re.findall(r'\b(\w+)\(', code))
    return names


def staged(files):
    with tempfile.TemporaryDirectory() as folder:
        root, out = pathlib.Path(folder) / 'root', pathlib.Path(folder) / 'out'
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding='utf-8')
        problems = stage.Site(root, out).everything()
        return problems, {path.relative_to(out).as_posix(): path.read_text(encoding='utf-8')
                          for path in out.rglob('*') if path.is_file()}


class Reference(unittest.TestCase):
    def test_a_declaration_has_its_comment_its_code_and_links(self):
        page = written(HEADER)
        self.assertIn('## First things', page)
        self.assertIn('### gpushare_make { #gpushare_make }\n\nMakes it; see [`gpushare_done`](#gpushare_done).', page)
        self.assertIn('**Threads:** any.\n\n**Owns:** nothing.\n\n**Blocks:** no.', page)
        self.assertIn('int a,\n                                           int b) GPUSHARE_NOEXCEPT;\n```', page)
        self.assertIn('[a](../a.md) says when.', page)

    def test_a_struct_comes_before_its_macro_and_keeps_its_empty_lines(self):
        page = written(HEADER)
        self.assertIn('### gpushare_pair {', page)
        self.assertIn('  int a;\n\n  int b;  // of a[i]\n} gpushare_pair;', page)

    def test_a_class_shows_its_public_declarations_only(self):
        page = written('// --- things ----\n\n// A thing.\nclass Thing {\n public:\n  explicit Thing(std::string a)\n'
                       '      : a_(std::move(a)) {}\n  std::string Get(const std::vector<int>& b = {}) const {\n'
                       '    if (b.empty()) { return a_; }\n    return a_;\n  }\n\n private:\n'
                       '  std::string a_;\n};\n', 'a.hpp')
        self.assertIn('class Thing {\n  explicit Thing(std::string a);\n'
                      '  std::string Get(const std::vector<int>& b = {}) const;\n};', page)
        self.assertNotIn('a_', page)

    def test_each_function_of_the_headers_is_on_its_page(self):
        pages = c_reference.pages(ROOT)
        for page, _, header, _ in c_reference.PAGES:
            text = (ROOT / header).read_text(encoding='utf-8')
            functions = set(re.findall(r'^GPUSHARE\w*_API\b[^;(]*?(\w+)\(', text, re.MULTILINE))
            self.assertEqual(bool(functions), page != 'cpp.md', page)
            self.assertEqual(functions - declared(pages[page]), set(), page)
        self.assertEqual(pages['cpp.md'].count('```') % 2, 0)
        for name in ('Runtime', 'App', 'Queue', 'Kernel', 'Ticket', 'Query', 'Region', 'TokenStream', 'EventLog'):
            self.assertIn(f'### {name} {{ #{name} }}', pages['cpp.md'])


class Stage(unittest.TestCase):
    FILES = {'README.md': '# P\n\n[a](docs/a.md#x) [`c`](src/a.c) `[not](a link)`\n\n```\n[nor](this)\n```\n',
             'docs/README.md': '# Pages\ntext\n- [home](../README.md)\n- [all](b/)\n\n'
                               'text\n| a | b |\n| --- | --- |\n| `x\\|y` | 1 |\n',
             'docs/a.md': '# A\n\n[dir](../src) [own](#a)\n', 'docs/b/one.md': '# One\n\n[up](../README.md)\n',
             'src/a.c': 'int a;\n', 'src/README.md': '# Sources\n\n[deep](deep/x.txt)\n', 'src/deep/x.txt': 'x\n'}

    def test_links_lead_to_where_the_files_lie(self):
        problems, pages = staged(self.FILES)
        self.assertEqual(problems, [])
        self.assertIn('[a](a.md#x) [`c`](tree/src/a.c.txt) `[not](a link)`', pages['index.md'])
        self.assertIn('[nor](this)', pages['index.md'])
        self.assertIn('[dir](tree/src/README.md) [own](#a)', pages['a.md'])
        self.assertIn('[deep](deep/x.txt.txt)', pages['tree/src/README.md'])
        self.assertEqual(pages['tree/src/a.c.txt'], 'int a;\n')
        self.assertIn('[home](index.md)', pages['pages.md'])
        self.assertIn('[all](b/index.md)', pages['pages.md'])
        self.assertIn('- [One](one.md)', pages['b/index.md'])
        self.assertIn('[up](../pages.md)', pages['b/one.md'])

    def test_lists_and_tables_get_the_empty_line_that_they_need(self):
        pages = staged(self.FILES)[1]
        self.assertIn('text\n\n- [home](index.md)\n- [all]', pages['pages.md'])
        self.assertIn('text\n\n| a | b |\n| --- | --- |\n| `x|y` | 1 |', pages['pages.md'])

    def test_a_link_to_nothing_is_a_problem(self):
        problems, _ = staged({**self.FILES, 'docs/a.md': '# A\n\n[gone](../src/gone.c)\n'})
        self.assertEqual(problems, ['docs/a.md: the link ../src/gone.c leads nowhere'])

    def test_a_folder_that_holds_something_is_left_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            mine = pathlib.Path(folder) / 'mine.txt'
            mine.write_text('mine', encoding='utf-8')
            self.assertEqual(len(stage.stage(ROOT, pathlib.Path(folder))), 1)
            self.assertEqual(len(stage.stage(ROOT, mine)), 1)
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ['mine.txt'])
            self.assertEqual(mine.read_text(encoding='utf-8'), 'mine')


class Network(unittest.TestCase):
    LOADS = ('<script src="https://a.example/x.js"></script>', "<img alt='' src='//a.example/x.png'>",
             '<link rel=stylesheet href=http://a.example/x.css>', '<IFRAME\n SRC = "https://a.example/"></IFRAME>',
             '<img srcset="https://a.example/x.png 2x" src="x.png">', '<video poster="https://a.example/x.png"></video>')
    STYLES = ('@font-face{src:url(https://a.example/x.woff2)}', 'a{background:url("//a.example/x.png")}',
              '@import "https://a.example/x.css";')
    OWN = ('<a href="https://a.example/">followed, not loaded</a>', '<script src="../x.js"></script>',
           '<img src="x.png">', '<code>&lt;script src="https://a.example/x.js"&gt;</code>')

    def test_each_file_from_another_machine_is_found(self):
        for text in self.LOADS:
            self.assertEqual(len(network.loaded_by_page(text)), 1, text)
        for text in self.STYLES:
            self.assertEqual(len(network.loaded_by_style(text)), 1, text)

    def test_links_and_own_files_are_no_problem(self):
        for text in self.OWN:
            self.assertEqual(network.loaded_by_page(text), [], text)
        self.assertEqual(network.loaded_by_style('a{background:url(data:image/svg+xml;x="http://www.w3.org/")}'), [])

    def test_a_site_names_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / 'deep').mkdir()
            page, style = pathlib.Path(folder) / 'deep/a.html', pathlib.Path(folder) / 'a.css'
            page.write_text(self.LOADS[0], encoding='utf-8')
            style.write_text(self.STYLES[0], encoding='utf-8')
            self.assertEqual(network.problems_of(pathlib.Path(folder)),
                             [f'{page} loads https://a.example/x.js', f'{style} loads https://a.example/x.woff2'])


if __name__ == '__main__':
    unittest.main()
