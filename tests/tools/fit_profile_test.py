"""tools/fit_profile.py says on stderr how far its search is: sparse lines, one line of a terminal, nothing if quiet."""

import importlib.util
import io
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location('fit_profile', ROOT / 'tools' / 'fit_profile.py')
fit_profile = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(fit_profile)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(out, steps, seconds_a_step, quiet=False):
    now = [100.0]
    progress = fit_profile.Progress(steps, quiet, out, lambda: now[0])
    for _ in range(steps):
        now[0] += seconds_a_step
        progress.step()
    progress.finish()
    return out.getvalue()


class ProgressTest(unittest.TestCase):
    def test_a_short_search_is_silent_without_a_terminal(self):
        self.assertEqual(shown(io.StringIO(), 4, 1), '')

    def test_a_long_one_has_a_line_at_most_every_five_seconds_with_what_remains(self):
        lines = shown(io.StringIO(), 12, 1).splitlines()
        self.assertEqual(lines[0], 'gpushare: 5 of 12 rounds done, 5 s elapsed, about 7 s remaining')
        self.assertEqual(lines[1], 'gpushare: 10 of 12 rounds done, 10 s elapsed, about 2 s remaining')
        self.assertEqual(len(lines), 2)

    def test_a_terminal_has_one_line_that_goes_in_the_end(self):
        text = shown(Terminal(), 3, 1)
        self.assertNotIn('\n', text)
        self.assertIn('\r\033[K2 of 3 rounds done, 2 s elapsed, about 1 s remaining', text)
        self.assertTrue(text.endswith('\r\033[K'))

    def test_quiet_is_quiet(self):
        self.assertEqual(shown(io.StringIO(), 12, 10, quiet=True), '')
        self.assertEqual(shown(Terminal(), 12, 10, quiet=True), '')


if __name__ == '__main__':
    unittest.main()
