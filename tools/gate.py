"""What the gates over the sources share: their command line, and their self-tests on planted trees of files."""

import argparse
import pathlib
import sys
import tempfile


def problems_in(check, tree):
    """What `check` reports of a folder with these files: each a text, or its lines, by its name."""
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for name, text in tree.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text if isinstance(text, str) else '\n'.join(text) + '\n', encoding='utf-8')
        return check(root)


def parser(description):
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument('--root', type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    made.add_argument('--self-test', action='store_true')
    return made


def report(arguments, check, self_test, passed):
    """Prints the problems, one a line. The exit code is 0 where there are none and 1 where there are some."""
    problems = self_test() if arguments.self_test else check(arguments.root.resolve())
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print('What is wrong is reported.' if arguments.self_test else passed)
    return 1 if problems else 0
