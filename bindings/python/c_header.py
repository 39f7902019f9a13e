"""Parses the C headers of bindings/c for generate.py.

It knows the style of these headers: one field a line, comments with //, structs that are typedefs of the same
name. It refuses a declaration that it does not understand.
"""

import dataclasses
import pathlib
import re
from collections.abc import Iterator

HEADERS = ('gpushare.h', 'gpushare_policy.h', 'gpushare_cost_model.h')

SCALARS = {
    'int': 'ctypes.c_int',
    'int32_t': 'ctypes.c_int32',
    'uint32_t': 'ctypes.c_uint32',
    'int64_t': 'ctypes.c_int64',
    'uint64_t': 'ctypes.c_uint64',
    'size_t': 'ctypes.c_size_t',
    'float': 'ctypes.c_float',
    'double': 'ctypes.c_double',
}


class UnknownError(Exception):
    """A declaration that the parser does not understand."""


@dataclasses.dataclass(frozen=True)
class Field:
    type: str  # as in C, without const and volatile: 'int32_t', 'char*', 'gpushare_ticket*'
    name: str
    count: str  # length of an array, a number or a constant's name; '' for no array
    comment: str
    written: str = ''  # the type as the header writes it: 'const char*', 'void* const*'


@dataclasses.dataclass(frozen=True)
class Function:
    result: str
    name: str
    arguments: tuple[Field, ...]
    written_result: str  # as the header writes it: 'const char*'


@dataclasses.dataclass
class Header:
    """What the headers declare, in their order."""
    constants: dict[str, str] = dataclasses.field(default_factory=dict)
    aliases: dict[str, str] = dataclasses.field(default_factory=dict)
    enums: dict[str, list[tuple[str, int, str]]] = dataclasses.field(default_factory=dict)
    opaque: list[str] = dataclasses.field(default_factory=list)
    structs: dict[str, list[Field]] = dataclasses.field(default_factory=dict)
    callbacks: dict[str, Function] = dataclasses.field(default_factory=dict)
    functions: dict[str, Function] = dataclasses.field(default_factory=dict)
    order: list[str] = dataclasses.field(default_factory=list)  # names of structs and callbacks, as declared

    def enum_of(self, type_name: str) -> str:
        """The enum of an alias such as gpushare_verdict, or ''."""
        return f'{type_name}_value' if f'{type_name}_value' in self.enums else ''


def statements(text: str) -> Iterator[str]:
    """The declarations outside braces, each with its comments, up to its semicolon."""
    start = depth = index = 0
    while index < len(text):
        if text.startswith('//', index):
            index = text.index('\n', index)
        character = text[index]
        if character == '{':
            depth += 1
        elif character == '}':
            depth -= 1
            if depth == 0 and without_comments(text[start:index]).lstrip().startswith('static inline'):
                start = index + 1
        elif character == ';' and depth == 0:
            yield text[start:index]
            start = index + 1
        index += 1


def without_comments(text: str) -> str:
    return re.sub(r'//[^\n]*', '', text)


def without_directives(text: str) -> str:
    """The text without preprocessor lines and without code that only C++ compiles."""
    kept, skipping = [], 0
    for line in text.replace('\\\n', ' ').splitlines():
        word = re.match(r'\s*#\s*(\w+)', line)
        if word is None:
            if not skipping:
                kept.append(line)
        elif word[1] in ('if', 'ifdef', 'ifndef'):
            if skipping or '__cplusplus' in line:
                skipping += 1
        elif word[1] == 'else':
            if skipping == 1:
                skipping = -1
            elif skipping == -1:
                skipping = 1
        elif word[1] == 'endif' and skipping:
            skipping = 0 if skipping == -1 else skipping - 1
        if skipping == -1:  # the #else of `#ifdef __cplusplus`: C compiles these lines
            skipping = 0
    return '\n'.join(kept) + '\n'


def fields_of(body: str) -> list[Field]:
    """The fields between the braces of a struct. A comment belongs to the field on its line or below it."""
    fields: list[Field] = []
    above: list[str] = []
    for line in body.splitlines():
        code, _, comment = (part.strip() for part in line.partition('//'))
        if not code:
            above = [*above, comment] if comment else []
            continue
        if not code.endswith(';'):
            raise UnknownError(f'A field is not on one line: {code!r}.')
        words = ' '.join([*above, comment]).strip()
        above = []
        fields += declared(code[:-1], words)
    return fields


def declared(code: str, comment: str) -> list[Field]:
    """The fields of one declaration: 'uint32_t a, b', 'const char* name', 'int32_t reserved[2]'."""
    if match := re.fullmatch(r'void \(\*(\w+)\)\((.*)\)', code):
        return [Field(f'function({match[2]})', match[1], '', comment, f'void (*)({match[2]})')]
    match = re.fullmatch(r'((?:const |volatile |struct )*)(\w+)((?: ?\*)?(?: ?const ?\*)?\*?) ?(\w.*)', code)
    if match is None:
        raise UnknownError(f'This is no field that the generator knows: {code!r}.')
    stars = '*' * match[3].count('*')
    written = match[1] + match[2] + match[3].replace(' *', '*')
    result = []
    for name in match[4].split(','):
        part = re.fullmatch(r'\s*(\w+)(?:\[(\w+)\])?\s*', name)
        if part is None:
            raise UnknownError(f'This is no name of a field: {name!r} in {code!r}.')
        result.append(Field(match[2] + stars, part[1], part[2] or '', comment, written))
    return result


def arguments_of(text: str) -> tuple[Field, ...]:
    text = ' '.join(text.split())
    if text in ('', 'void'):
        return ()
    return tuple(declared(argument.strip(), '')[0] for argument in text.split(','))


def values_of(body: str) -> list[tuple[str, int, str]]:
    values = []
    above = ''
    for line in body.replace('{', '\n').splitlines():
        code, _, comment = (part.strip() for part in line.partition('//'))
        found = re.findall(r'(\w+) = (-?\d+)', code)
        for name, number in found:
            values.append((name, int(number), comment or above))
        above = comment if not found and not code else ''
    return values


def parse(folder: pathlib.Path) -> Header:
    header = Header()
    for name in HEADERS:
        text = (folder / name).read_text(encoding='utf-8')
        for match in re.finditer(r'^#define (GPUSHARE_\w+) (\d+|\(-\d+\)|INT64_MAX)$', text, re.MULTILINE):
            header.constants[match[1]] = '2**63 - 1' if match[2] == 'INT64_MAX' else match[2]
        text = without_directives(text).replace('extern "C" {', '')
        for statement in statements(text):
            parse_statement(header, statement)
    return header


def parse_statement(header: Header, statement: str) -> None:
    code = ' '.join(without_comments(statement).split())
    if match := re.fullmatch(r'enum (\w+) \{.*\}', code):
        header.enums[match[1]] = values_of(statement[statement.index('{') + 1:statement.rindex('}')])
    elif match := re.fullmatch(r'typedef struct (\w+) \{.*\} \1', code):
        header.structs[match[1]] = fields_of(statement[statement.index('{') + 1:statement.rindex('}')])
        header.order.append(match[1])
    elif match := re.fullmatch(r'typedef struct (\w+) \1', code):
        header.opaque.append(match[1])
    elif match := re.fullmatch(r'typedef (\w+) \(\*(\w+)\)\((.*)\)', code):
        header.callbacks[match[2]] = Function(match[1], match[2], arguments_of(match[3]), match[1])
        header.order.append(match[2])
    elif match := re.fullmatch(r'typedef (\w+) (\w+)', code):
        header.aliases[match[2]] = match[1]
    elif match := re.fullmatch(r'GPUSHARE_API ((?:const )?\w+\*?) (\w+)\((.*)\) GPUSHARE_NOEXCEPT', code):
        result = match[1].removeprefix('const ')
        header.functions[match[2]] = Function(result, match[2], arguments_of(match[3]), match[1])
    elif code:
        raise UnknownError(f'This is no declaration that the generator knows: {code[:200]!r}.')
