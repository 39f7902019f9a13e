#!/usr/bin/env python3
"""Checks that no function of the C, C++ and CUDA sources outside tests is longer than LIMIT lines, and that no
function of the folders in BRANCHES has more branches than there.

A function's lines are those from the first of its declaration to its closing brace. A longer function has its
reason in the comment directly above it, on a line of its own:

  // Long because: the cases of one protocol stay in one place.

Such a line above a function that is not long is an error too. A branch is an if, for, while, case, &&, || or ?:,
those of lambdas inside the function included. Exit code 0: all is well; 1: problems, printed
with file and line; 2: bad use.

  check_functions.py [--root FOLDER]
  check_functions.py --list N      prints the N longest functions
  check_functions.py --branches N  prints the N functions with the most branches
  check_functions.py --self-test   breaks each rule in a scratch folder and expects a report
"""

import dataclasses
import re
import sys

import gate

LIMIT = 70
# The most branches of a function, by folder.
BRANCHES = {'src/core/policies/adaptive': 11}
FOLDERS = ('src', 'bindings', 'include', 'kernels', 'tools', 'benchmarks', 'examples')
SUFFIXES = {'.h', '.hpp', '.c', '.cc', '.cu', '.cuh'}
REASON = re.compile(r'^\s*// Long because: (?=\S).{10,}')

# Comments and literals, whose braces and quotes do not count. DIRECTIVE: a line of the preprocessor with its
# continuation lines.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|R"(?P<delimiter>[^()\\\s]*)\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'", re.DOTALL)
BRANCH = re.compile(r'\b(?:if|for|while|case)\b|&&|\|\||\?')
DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*(\w*)(?:[^\n]*\\\n)*[^\n]*', re.MULTILINE)
# These match the text before a function's brace, in which the parentheses are empty: a parameter list, what may follow
# it, and the initialisers of a constructor.
AFTER_PARAMETERS = (r'\(\)\s*(?:(?:const|volatile|noexcept(?:\s*\(\))?|override|final|mutable|try|&&?'
                    r'|requires\s[^{;]*|->[^{;=]*)\s*)*')
FUNCTION = re.compile(AFTER_PARAMETERS + r'$')
INITIALISERS = re.compile(r'\(\)\s*(?:noexcept(?:\s*\(\))?\s*)?(?:try\s*)?:(?!:)')
# Matches the text before a brace that opens no function although it has parentheses: of a type, or of a value.
NO_FUNCTION = re.compile(r'^(?:(?:typedef|extern|inline)\s+)*(?:struct|class|union|enum|namespace)\b(?!.*\(\)\s*$)'
                         r'|=\s*(?:[\w:<>, ]+)?$')


@dataclasses.dataclass(frozen=True)
class Function:
    first: int  # line of the declaration
    last: int   # line of the closing brace
    head: str
    branches: int

    @property
    def lines(self):
        return self.last - self.first + 1


def blanked(text):
    """The text with comments, literals and directives blank; and the directives' (position, word)."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group(0))

    # A literal stays a word, so that `extern "C" {` and `Call("a") {` keep their shape.
    text = NO_CODE.sub(lambda match: blank(match) if match.group(0)[0] == '/'
                       else re.sub(r'[^\n]', '_', match.group(0)), text)
    directives = {}
    for match in DIRECTIVE.finditer(text):
        directives[match.start()] = match.group(1)
    return DIRECTIVE.sub(blank, text), directives


@dataclasses.dataclass
class State:
    """Where the scanner stands. Each open brace: 'scope', 'value' or the start of a function."""
    braces: list
    parens: int
    start: int  # of the text since the last boundary

    def copy(self):
        return State(list(self.braces), self.parens, self.start)


def flatten(head):
    """The text with all parentheses emptied and all braces and their content removed."""
    out, parens, braces = [], 0, 0
    for letter in head:
        if letter == ')':
            parens -= 1
        if letter == '}':
            braces -= 1
        elif parens <= 0 and braces <= 0 and letter != '{':
            out.append(letter)
        if letter == '(':
            parens += 1
        if letter == '{':
            braces += 1
    head = re.sub(r'\b(?:public|private|protected)\s*:(?!:)', ' ', ''.join(out))
    return re.sub(r'\s+', ' ', head).strip()


def opens(head, parens):
    """What a brace after this text opens, outside of functions."""
    if parens:
        return 'value'
    flat = flatten(head)
    if INITIALISERS.search(flat):
        # The brace of the initialiser `a_{1}` follows a name. That of the body follows the end of an initialiser.
        return 'value' if head.rstrip()[-1] not in ')}' else 'function'
    if FUNCTION.search(flat) and not NO_FUNCTION.search(flat):
        return 'function'
    return 'scope'


def functions_of(text):
    """Every function that has a body, those inside functions aside; None where the braces do not match."""
    code, directives = blanked(text)
    state, branches = State([], 0, 0), []
    position_of_line = [0]
    for match in re.finditer('\n', code):
        position_of_line.append(match.end())

    def line_at(position):
        low, high = 0, len(position_of_line)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if position_of_line[middle] <= position else (low, middle)
        return low + 1

    found = []
    events = sorted([(match.start(), match.group(0)) for match in re.finditer(r'[{}();]', code)]
                    + [(place, word) for place, word in directives.items()])
    for place, what in events:
        inside = any(isinstance(brace, int) for brace in state.braces)
        if what in ('if', 'ifdef', 'ifndef'):
            branches.append((state.copy(), None))
        elif what in ('else', 'elif') and branches:
            # Every branch starts from the same state. The code behind #endif continues from that of the first branch.
            before, first = branches[-1]
            branches[-1] = (before, first or state)
            state = before.copy()
        elif what == 'endif' and branches:
            state = branches.pop()[1] or state
        elif what == '(':
            state.parens += 1
        elif what == ')':
            state.parens = max(0, state.parens - 1)
        elif what == ';' and not inside and not state.parens and 'value' not in state.braces:
            state.start = place + 1
        elif what == '{':
            kind = 'value' if inside else opens(code[state.start:place], state.parens)
            if kind == 'function':
                head = code[state.start:place]
                skip = re.match(r'\s*(?:(?:public|private|protected)\s*:(?!:)\s*)*', head).end()
                state.braces.append(state.start + skip)
            else:
                state.braces.append(kind)
            if kind == 'scope':
                state.start = place + 1
        elif what == '}' and state.braces:
            brace = state.braces.pop()
            if isinstance(brace, int):
                head = re.sub(r'\s+', ' ', code[brace:code.index('{', brace)]).strip()
                branches_inside = len(BRANCH.findall(code, brace, place))
                found.append(Function(line_at(brace), line_at(place), head, branches_inside))
            if brace != 'value':
                state.start = place + 1
        elif what == '}':
            return None
    return None if state.braces else found


def source_files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob('*')):
            if path.suffix in SUFFIXES and path.is_file():
                yield path


def reason_lines(lines, function):
    """The lines with a reason in the comment directly above the function."""
    number = function.first - 1
    while number > 0 and lines[number - 1].lstrip().startswith('//'):
        if REASON.match(lines[number - 1]):
            yield number
        number -= 1


def branches_most(name):
    """The most branches of a function in this file; None: any number."""
    for folder, most in BRANCHES.items():
        if name.is_relative_to(folder):
            return most
    return None


def check(root):
    problems = []
    for path in source_files(root):
        text = path.read_text(encoding='utf-8')
        lines, name, used = text.splitlines(), path.relative_to(root), set()
        functions = functions_of(text)
        if functions is None:
            problems.append(f'{name}:1: the braces do not match, so that no function can be measured')
        most = branches_most(name)
        for function in functions or ():
            if most is not None and function.branches > most:
                problems.append(f'{name}:{function.first}: a function of {function.branches} branches, of {most}: '
                                f'{function.head[:80]}')
            if function.lines <= LIMIT:
                continue
            reasons = list(reason_lines(lines, function))
            used.update(reasons)
            if not reasons:
                problems.append(f'{name}:{function.first}: a function of {function.lines} lines, of {LIMIT}, '
                                f"and no '// Long because: ' above it: {function.head[:80]}")
        for number, line in enumerate(lines, start=1):
            if REASON.match(line) and number not in used:
                problems.append(f'{name}:{number}: the function below is not longer than {LIMIT} lines')
    return problems


def body(lines):
    return '  a = 1;\n' * lines


# Sources, each with the line or lines that must be reported, 0 for none. Two of a function's LIMIT lines are its first
# and its last.
LONG, FITS = body(LIMIT - 1), body(LIMIT - 2)
SELF_TEST = (
    ('void F() {\n' + LONG + '}\n', 1),
    ('void F() {\n' + FITS + '}\n', 0),
    ('// Long because: the steps of one protocol.\nvoid F() {\n' + LONG + '}\n', 0),
    ('// What it does.\n// Long because: the steps of one protocol.\n// More.\nvoid F() {\n' + LONG + '}\n', 0),
    ('// Long because: the steps of one protocol.\n\nvoid F() {\n' + LONG + '}\n', (1, 3)),
    ('// Long because: \nvoid F() {\n' + LONG + '}\n', 2),
    ('// Long because: the steps of one protocol.\nvoid F() {\n' + FITS + '}\n', 1),
    # Each form in which a function can begin.
    ('#include <a>\n\ntemplate <int kA>\nvoid F(int a,\n       int b = Of(3)) {\n' + LONG + '}\n', 3),
    ('namespace a {\nclass B {\n public:\n  B() : c_{1}, d_(2) {\n' + LONG + '  }\n};\n}\n', 4),
    ('namespace a {\nB::B(int c) noexcept : c_(c), d_{2} {\n' + LONG + '}\n}\n', 2),
    ('struct A {\n  int B() const override {\n' + LONG + '  }\n};\n', 2),
    ('auto F(int a) -> std::pair<int, int> {\n' + LONG + '}\n', 1),
    ('bool operator()(int a) const noexcept {\n' + LONG + '}\n', 1),
    ('extern "C" {\nint F(void) {\n' + LONG + '}\n}\n', 2),
    ('extern "C" __global__ void __launch_bounds__(256) F(int a) {\n' + LONG + '}\n', 1),
    ('struct A F(struct B b) {\n' + LONG + '}\n', 1),
    ('const Row kRows[] = {\n    {1, [](int a) {\n' + LONG + '    }},\n};\n', 2),
    # Braces and quotes that do not count, and branches of the preprocessor.
    ('void F() {\n  a = "{"; b = \'{\'; c = R"x({"{)x"; // {\n}\nvoid G() {\n' + LONG + '}\n', 4),
    ('#define A(b) \\\n  void b() {\nvoid F() {\n' + LONG + '}\n', 3),
    ('#if A\nvoid F() {\n#else\nvoid F(int a) {\n#endif\n' + LONG + '}\n', 2),
    ('#if A\nextern "C" {\n#else\n#endif\nvoid F() {\n' + LONG + '}\n#if A\n}\n#endif\n', 5),
    ('void F() {\n  {\n}\n', 1),
    ('int a = 1\'000\'000;\nvoid F() {\n' + LONG + '}\n', 2),
    # Branches, of which the folder allows so many.
    ('void F() {\n' + '  if (a) b = c ? 1 : 2;\n' * 6 + '}\n', 1),
    ('void F() {\n  // if && ||\n' + '  while (a || b) c = 1;\n' * 5 + '}\n', 0),
    # Long code that is no function.
    ('namespace a {\n' + 'int b = F(1);\n' * LIMIT + '}\n', 0),
    ('class A : public B {\n' + '  int a = 1;\n  void F() {}\n' * LIMIT + '};\n', 0),
    ('const int kA[] = {\n' + '    F(1),\n' * LIMIT + '};\n', 0),
    ('enum class A : int {\n' + '  kB = F(1),\n' * LIMIT + '};\n', 0),
)


def self_test():
    """Every broken rule is reported, a correct file is not."""
    failures = []
    for text, line in SELF_TEST:
        problems = gate.problems_in(
            check, {f'{next(iter(BRANCHES))}/a.cc': text, 'tests/a_test.cc': 'void F() {\n' + LONG + '}\n'})
        lines = line if isinstance(line, tuple) else (line,) if line else ()
        expected = [f'{next(iter(BRANCHES))}/a.cc:{number}:' for number in lines]
        if sorted(problem.split(' ')[0] for problem in problems) != expected:
            failures.append(f'expected {expected}, reported {problems}, for:\n{text[:160]}')
    return failures


def print_most(root, arguments):
    rows = [(function.lines if arguments.list else function.branches, f'{path.relative_to(root)}:{function.first}',
             function.head)
            for path in source_files(root) for function in functions_of(path.read_text(encoding='utf-8')) or ()]
    print(f'{len(rows)} functions')
    for number, place, head in sorted(rows, reverse=True)[:arguments.list or arguments.branches]:
        print(f'{number:5} {place} {head[:80]}')


def main():
    parser = gate.parser('Checks the length of every function.')
    parser.add_argument('--list', type=int, default=0, metavar='N')
    parser.add_argument('--branches', type=int, default=0, metavar='N')
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    if arguments.list or arguments.branches:
        print_most(root, arguments)
        return 0
    return gate.report(arguments, check, self_test, f'No function is longer than {LIMIT} lines without a reason, or has too many branches.')


if __name__ == '__main__':
    sys.exit(main())
