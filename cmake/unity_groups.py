#!/usr/bin/env python3
"""Says which sources of a target can be compiled together, for cmake/GpusharePrecompiled.cmake.

  unity_groups.py SIZE SOURCE...
  unity_groups.py --self-test

Prints one line a source: the number of its group. No group has more than SIZE sources. Two sources share a
group only if neither uses a name that the other declares in an unnamed namespace, and no header of either declares
it: that is what differs when the compiler reads both as one. It relies on the layout of clang-format: what a
namespace declares starts in the first column, and a namespace ends with its comment.
"""

import functools
import pathlib
import re
import sys
import tempfile

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
UNNAMED = re.compile(r'^namespace \{\n(.*?)^\}  // namespace$', re.MULTILINE | re.DOTALL)
# A type or an alias; the last word before the first of ( = { ; [ of anything else in the first column; and what a using
# declaration names, which every source may name again: only a header's hides the name of a source.
TYPE = re.compile(r'^(?:(?:struct|class|enum(?: class)?|union) (\w+)|using (\w+)\s*=)', re.MULTILINE)
OTHER = re.compile(r'^(?!(?:struct|class|enum|union|using|namespace)\b)[A-Za-z_][^\n({=;\[]*?\b(\w+)\s*[({=;\[]', re.MULTILINE)
USING = re.compile(r'^using [^;=]*?(\w+);', re.MULTILINE)


def declared(text):
    return {word for words in TYPE.findall(text) for word in words if word} | set(OTHER.findall(text))


def names_and_words(path):
    text = path.read_text(encoding='utf-8')
    names = set()
    for part in UNNAMED.findall(text):
        names |= declared(part)
    return names, set(re.findall(r'\w+', COMMENT_OR_TEXT.sub(' ', text)))


ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@functools.cache
def header(path):
    """The names that a header declares, and the headers that it includes."""
    text = path.read_text(encoding='utf-8')
    return frozenset(declared(text) | set(USING.findall(text))), INCLUDE.findall(text)


def names_of_headers(path, root):
    """What the project's headers declare that a source includes, directly or not."""
    names, seen = set(), set()
    waiting = INCLUDE.findall(path.read_text(encoding='utf-8'))
    while waiting:
        name = waiting.pop()
        if name not in seen and (root / name).is_file():
            seen.add(name)
            found, included = header(root / name)
            names |= found
            waiting += included
    return names


def groups_of(paths, size, root=ROOT):
    """The group of each path."""
    known, groups, answer = {}, [], {}
    for path in paths:
        names, words = names_and_words(path)
        known[path] = names, words | names_of_headers(path, root)
    # Together first: the sources with JSON, whose templates take longest and are then compiled once.
    for path in sorted(paths, key=lambda path: not any('json' in word.lower() for word in known[path][1])):
        names, words = known[path]
        for number, group in enumerate(groups):
            if len(group) < size and not any(names & known[other][1] or known[other][0] & words
                                             for other in group):
                break
        else:
            number = len(groups)
            groups.append([])
        groups[number].append(path)
        answer[path] = number
    return [answer[path] for path in paths]


def self_test():
    """Sources whose names clash are apart, the others together."""
    unnamed = 'namespace a {\nnamespace {\n\n%s\n\n}  // namespace\n%s}  // namespace a\n'
    sources = {
        'constant.cc': unnamed % ('constexpr int kA = 1;', ''),
        'same.cc': unnamed % ('constexpr int kA = 2;', ''),
        'uses.cc': unnamed % ('int Get() { return b::kA; }', ''),
        'mentions.cc': unnamed % ('// Not kA.\nint Other() { return 1; }', ''),
        'type.cc': unnamed % ('struct Row {\n  int kept;\n};', ''),
        'type_too.cc': unnamed % ('template <class T>\nclass Row {\n};', ''),
        'public.cc': unnamed % ('int kept() { return 1; }', 'int kB = 1;\n'),
        'deep.h': 'namespace a {\nstruct Deep {\n};\n}  // namespace a\n',
        'outer.h': '#include "deep.h"\n',
        'includes.cc': '#include "outer.h"\n' + unnamed % ('constexpr int kC = 1;', ''),
        'takes.cc': unnamed % ('using core::Thing;', ''),
        'takes_too.cc': unnamed % ('using core::Thing;\nenum class Kind : uint8_t { kOne };', ''),
        'small.cc': unnamed % ('enum class Size : uint8_t { kTwo };', ''),
        'owns.cc': unnamed % ('struct Thing {\n};', ''),
        'hides.cc': unnamed % ('int Deep() { return 1; }', ''),
    }
    with tempfile.TemporaryDirectory() as scratch:
        paths = [pathlib.Path(scratch, name) for name in sources]
        for path in paths:
            path.write_text(sources[path.name], encoding='utf-8')
        paths = [path for path in paths if path.suffix == '.cc']
        names = [path.name for path in paths]
        group = dict(zip(names, groups_of(paths, 10, pathlib.Path(scratch))))
        sizes = groups_of(paths, 2, pathlib.Path(scratch))
    apart = (('constant', 'same'), ('constant', 'uses'), ('same', 'uses'), ('type', 'type_too'), ('type', 'public'),
             ('includes', 'hides'), ('takes', 'owns'), ('takes_too', 'owns'))
    failures = [f'{a}.cc and {b}.cc are together' for a, b in apart if group[a + '.cc'] == group[b + '.cc']]
    if len({group[name + '.cc'] for name in ('constant', 'mentions', 'type', 'takes', 'takes_too', 'small')}) != 1:
        failures.append(f'sources that could be together are apart: {group}')
    if max(sizes.count(number) for number in sizes) > 2:
        failures.append(f'a group is larger than its limit: {sizes}')
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ['--self-test']:
        return self_test()
    if len(sys.argv) < 2 or not sys.argv[1].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    for number in groups_of([pathlib.Path(name) for name in sys.argv[2:]], int(sys.argv[1])):
        print(number)
    return 0


if __name__ == '__main__':
    sys.exit(main())
