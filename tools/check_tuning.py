#!/usr/bin/env python3
"""Checks that the rules of adaptive need no more tuned numbers than LIMIT.

A number counts where it is free, so that somebody has to choose it:
  - in TABLES, a constant whose value names no other constant, or has a number other than 0, 1 and 2 beside one;
  - in the code of RULES, every number other than 0, 1 and 2. Bit patterns, which are hexadecimal, do not count.
Exit code 0: there are LIMIT of them; 1: there are more, and all are printed with file and line, or fewer, so that
LIMIT must follow; 2: bad use.

  check_tuning.py [--root FOLDER]
  check_tuning.py --list           prints the free numbers
  check_tuning.py --self-test      breaks each rule in a scratch folder and expects a report
"""

import pathlib
import re
import sys

import gate
from check_functions import blanked

LIMIT = 39
RULES = 'src/core/policies/adaptive'
# The constants of the rules, of what queries show, and of promises, which adaptive alone plans with.
TABLES = (f'{RULES}/arrangement/tuning.h', 'src/core/evidence/tuning.h', 'src/core/promise/tuning.h')

CONSTANT = re.compile(r'\binline\s+constexpr\s+[\w:]+\s+(k[A-Z]\w*)\s*=\s*([^;]*);')
NAME = re.compile(r'\bk[A-Z]\w*')
NUMBER = re.compile(r"(?<![\w.'])(?!0[xX])((?:\d[\d']*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fFlLuU]*(?![\w.])")
NATURAL = {0, 1, 2}


def numbers_of(text):
    """(text, position) of each number other than 0, 1 and 2."""
    for match in NUMBER.finditer(text):
        if float(match.group(1).replace("'", '')) not in NATURAL:
            yield match.group(0), match.start()


def line_at(text, position):
    return text.count('\n', 0, position) + 1


def free_in_table(text):
    """(what, line) of each free constant."""
    for match in CONSTANT.finditer(text):
        name, value = match.groups()
        if not NAME.search(value) or any(numbers_of(value)):
            yield f'{name} = {" ".join(value.split())}', line_at(text, match.start())


def free_in_code(text):
    for number, position in numbers_of(text):
        yield number, line_at(text, position)


def free_numbers(root):
    """All free numbers as printable lines."""
    tables = [root / table for table in TABLES]
    code = sorted(path for path in (root / RULES).rglob('*') if path.suffix in {'.h', '.cc'} and path not in tables)
    found = []
    for paths, free_in in ((tables, free_in_table), (code, free_in_code)):
        for path in paths:
            if path.is_file():
                text, _ = blanked(path.read_text(encoding='utf-8'))
                found += [f'{path.relative_to(root)}:{line}: {what}' for what, line in free_in(text)]
    return found


def check(root, limit=LIMIT):
    """All problems as printable lines."""
    found = free_numbers(root)
    if len(found) > limit:
        return [*found, f'The rules of {RULES} have {len(found)} free numbers, and {limit} are allowed: derive the '
                        f'new one from another, or drop one.']
    if len(found) < limit:
        return [f'The rules of {RULES} have {len(found)} free numbers: LIMIT of tools/check_tuning.py, {limit}, must '
                f'follow, so that the next one is seen.']
    return []


SELF_TEST_BAD = (
    # A constant that names no other one, whatever its value; a factor beside another one's name.
    ('kA = 1', {TABLES[0]: ['inline constexpr double kA = 1;']}),
    ("kA = 20'000", {TABLES[1]: ["inline constexpr int64_t kA = 20'000;"]}),
    ('kB = 4 * kA', {TABLES[2]: ['inline constexpr double kB =', '    4 * kA;']}),
    ('kB = kA + 1e-3', {TABLES[2]: ['inline constexpr double kB = kA + 1e-3;']}),
    # In code: whole, with an exponent, in a header, after a sign.
    ('choose.cc:2: 3', {f'{RULES}/choose.cc': ['// 7', 'int x = a + 3;']}),
    ('value.h:1: 1e-9', {f'{RULES}/arrangement/value.h': ['bool Less() { return a < b - 1e-9; }']}),
    ('value.cc:1: 1e9F', {f'{RULES}/arrangement/value.cc': ['row.fill(1e9F);']}),
    ('value.cc:1: 0.5', {f'{RULES}/arrangement/value.cc': ['x = -0.5;']}),
)
SELF_TEST_GOOD = {
    TABLES[0]: ['// Range 3 to 5.', 'inline constexpr double kB = 1 - 2 * kA / 2.0;', 'static_assert(kB < 3);'],
    TABLES[1]: ['#include <array8>', 'inline constexpr int64_t kC = kA;'],
    f'{RULES}/choose.cc': ['int64_t a = uint64_t{1} << 2; // 64', 'x = y * 0x9E37 - 1.0 + 0 + "9 lives" + p99;'],
    'src/core/policies/papers/tacker.cc': ['int x = 3;'],
}


def self_test():
    """A free number beyond the limit is reported, what is not free is none, and a limit above them is reported."""
    failures = []
    for expected, tree in SELF_TEST_BAD:
        problems = gate.problems_in(lambda root: check(root, 0), tree)
        if len(problems) != 2 or expected not in problems[0]:
            failures.append(f'expected "{expected}" for {next(iter(tree))}, reported: {problems}')
        if gate.problems_in(lambda root: check(root, 1), tree):
            failures.append(f'one free number is allowed in {next(iter(tree))}, and it was reported')
    good = gate.problems_in(lambda root: check(root, 0), SELF_TEST_GOOD)
    if good:
        failures.append(f'nothing is free, reported: {good}')
    if 'must follow' not in ''.join(gate.problems_in(lambda root: check(root, 1), SELF_TEST_GOOD)):
        failures.append('a limit above what there is was not reported')
    return failures


def main():
    parser = gate.parser('Checks that adaptive needs no more tuned numbers than it has.')
    parser.add_argument('--list', action='store_true')
    arguments = parser.parse_args()
    if arguments.list:
        print('\n'.join(free_numbers(arguments.root.resolve())))
        return 0
    return gate.report(arguments, check, self_test, f'The rules of adaptive have {LIMIT} free numbers.')


if __name__ == '__main__':
    sys.exit(main())
