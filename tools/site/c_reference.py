"""Writes reference pages in Markdown from the comments of the public C and C++ headers.

A header is read as it is written: sections ("// --- name ---"), and in them declarations with the comment above each.
A declaration becomes a heading with its name, its comment as text, and its code. Bodies of C++ functions and private
members are left out.
"""

import dataclasses
import pathlib
import re

SECTION = re.compile(r'^// --- (.+?) -+$')
DUTIES = re.compile(r'^(?:Threads|Owns|Blocks|Errors)(?:, (?:Blocks|Errors))*:')
NEXT_DUTY = re.compile(r'(?<=\.) (?=(?:Owns|Blocks|Errors)(?:, (?:Blocks|Errors))*:)')
ITEM = re.compile(r' {0,2}(?:-|\d\.) ')
NAMED_PAGE = re.compile(r'(?<![\w/])docs/([\w-]+)\.md')


@dataclasses.dataclass(frozen=True)
class Declaration:
    names: tuple[str, ...]  # what it declares; empty for a comment that stands alone
    comment: tuple[str, ...]
    code: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Section:
    name: str
    declarations: tuple[Declaration, ...]


def names_of(code):
    """The names that lines of a header declare, in their order."""
    text = '\n'.join(line.partition('//')[0] for line in code)
    found = re.findall(r'^(?:class|struct)(?: \[\[nodiscard\]\])? (\w+)', text, re.MULTILINE)
    found += re.findall(r'^(?:GPUSHARE\w*_API) [^(]*?(\w+)\(', text, re.MULTILINE)
    found += re.findall(r'^typedef [^{;]*?\(\*(\w+)\)\(', text, re.MULTILINE)
    found += re.findall(r'^typedef struct (\w+) [{\w]', text, re.MULTILINE)
    found += re.findall(r'^typedef (?!struct)[^({;]*?(\w+);', text, re.MULTILINE)
    found += re.findall(r'^using (\w+) =', text, re.MULTILINE)
    found += re.findall(r'^inline constexpr [\w:]+ (\w+)', text, re.MULTILINE)
    found += re.findall(r'^inline [\w:<>]+ (\w+)\(', text, re.MULTILINE)
    found += re.findall(r'^#\s*define (GPUSHARE_\w+)', text, re.MULTILINE)
    if not found:
        found = re.findall(r'^enum (\w+) ', text, re.MULTILINE)
    return tuple(dict.fromkeys(found))


def depth_after(depth, line):
    code = line.partition('//')[0]
    return depth + code.count('{') - code.count('}') + code.count('(') - code.count(')')


def chunks(lines):
    """Runs of lines that belong together: up to an empty line outside of braces."""
    chunk, depth = [], 0
    for line in lines:
        if not line.strip() and depth == 0:
            if chunk:
                yield chunk
            chunk = []
            continue
        chunk.append(line)
        depth = depth_after(depth, line)
    if chunk:
        yield chunk


def declarations_of(lines):
    found = []
    for chunk in chunks(lines):
        above = []
        while chunk and chunk[0].startswith('//'):
            above.append(chunk.pop(0)[2:].removeprefix(' '))
        names = names_of(chunk)
        if names or (above and not chunk):
            found.append(Declaration(names, tuple(above), tuple(chunk)))
    return tuple(found)


def without_namespace_detail(text):
    """The text of a C++ header without what is in its namespace detail."""
    return re.sub(r'^namespace detail \{\n.*?^\}  // namespace detail\n', '', text, flags=re.MULTILINE | re.DOTALL)


def read(path):
    """The comment that opens the header, and its sections."""
    lines = without_namespace_detail(path.read_text(encoding='utf-8')).splitlines()
    top = []
    while lines and lines[0].startswith('//') and not SECTION.match(lines[0]):
        top.append(lines.pop(0)[2:].removeprefix(' '))
    sections, name, inside = [], None, []
    for line in lines:
        if match := SECTION.match(line):
            if name:
                sections.append(Section(name, declarations_of(inside)))
            name, inside = match[1], []
        else:
            inside.append(line)
    if name:
        sections.append(Section(name, declarations_of(inside)))
    return tuple(top), tuple(sections)


def single_colon(text, index):
    return text[index] == ':' and '::' not in text[index - 1:index + 2]


def without_body(text):
    """A C++ declaration that ends where its body or its list of initialisers begins."""
    depth, closed = 0, False
    for index, character in enumerate(text):
        if character in '()':
            depth += 1 if character == '(' else -1
            closed = closed or depth == 0
        elif closed and depth == 0 and (character == '{' or single_colon(text, index)):
            return text[:index].rstrip() + ';'
    return text


def public_interface(code):
    """The lines of C++ declarations without bodies and private members."""
    kept, item, depth, in_class, hidden = [], [], 0, False, False
    for line in code:
        stripped = line.partition('//')[0].strip()
        if not item and re.match(r'(class|struct)\b.*\{$', stripped):
            kept.append(line)
            in_class, hidden = True, False
        elif not item and in_class and stripped == '};':
            kept.append(line)
            in_class = False
        elif not item and stripped in ('private:', 'public:', 'protected:'):
            hidden = stripped != 'public:'
        elif not item and (not stripped or stripped.startswith('template')):
            if not hidden:
                kept.append(line)
        else:
            item.append(line)
            depth = depth_after(depth, line)
            if depth == 0 and stripped.endswith((';', '}')):
                if not hidden:
                    kept += without_body('\n'.join(item)).split('\n')
                item = []
    while '' in kept and kept[-2:] == ['', '};']:
        del kept[-2]
    return kept


def markdown_of(comment, link):
    """A comment of a header as Markdown: paragraphs, lists, indented lines as code, one line for each duty."""
    lines, code = [], []
    for line in (part for whole in comment for part in NEXT_DUTY.split(whole)):
        if re.match(r' {3,}\S', line) and not (lines and in_list(lines)):
            code.append(line)
            continue
        if code:
            lines += ['', '```text', *code, '```', '']
            code = []
        duty = DUTIES.match(line)
        starts = duty or ITEM.match(line)
        if starts and lines and lines[-1] and not (ITEM.match(line) and in_list(lines)):
            lines.append('')
        if duty:
            lines.append(f'**{duty[0]}** {link(line[duty.end():].strip())}')
        elif ITEM.match(line) or not line.strip():
            lines.append(link(line.removeprefix('  ')))
        else:
            if in_list(lines) and not line.startswith(' '):
                lines.append('')
            inside = in_list(lines) and line.startswith(' ')
            if inside and line.startswith('   '):  # a line of a call sequence
                lines[-1] += '<br>'
            lines.append(('    ' if inside else '') + link(line.strip()))
    if code:
        lines += ['', '```text', *code, '```', '']
    return lines


def in_list(lines):
    for line in reversed(lines):
        if ITEM.match(line):
            return True
        if not line.startswith('    '):
            return False
    return False


class Links:
    """Where each name of the headers is documented, for links between the pages."""

    def __init__(self):
        self.page_of = {}

    def add(self, page, sections):
        for section in sections:
            for declaration in section.declarations:
                for name in declaration.names:
                    self.page_of.setdefault(name, (page, declaration.names[0]))

    def in_text(self, page, own, up):
        """A function that puts links into a line of a comment on `page`."""
        def named(match):
            name = match[0]
            there = self.page_of.get(name)
            if there is None or there[1] in own:
                return f'`{name}`' if name.startswith(('gpushare_', 'GPUSHARE_')) else name
            file = '' if there[0] == page else there[0]
            return f'[`{name}`]({file}#{there[1]})'

        def link(line):
            parts = re.split(r'(`[^`]*`)', escaped(line))
            linked = [part if part.startswith('`') else re.sub(r'\b(?:gpushare|GPUSHARE)_\w+', named, part)
                      for part in parts]
            return NAMED_PAGE.sub(rf'[\1]({up}\1.md)', ''.join(linked))
        return link


def escaped(line):
    """A line without what Markdown would read as its own: headers in angle brackets, stars, underscores, references."""
    line = re.sub(r'<(gpushare/[\w.]+)>', r'`<\1>`', line)
    return line.replace('*out_', r'\*out_').replace('T_q', r'T\_q').replace('[', r'\[')


def write_declaration(declaration, links, page, up, is_cpp):
    if not declaration.names:
        return ['', *markdown_of(declaration.comment, links.in_text(page, (), up)), '']
    first = declaration.names[0]
    lines = ['', f'### {first} {{ #{first} }}', '']
    if len(declaration.names) > 1 and not first.startswith('GPUSHARE_CLASS'):
        others = ', '.join(f'`{name}`' for name in declaration.names[1:])
        lines += [f'Also: {others}.', '']
    lines += markdown_of(declaration.comment, links.in_text(page, (first,), up))
    code = public_interface(declaration.code) if is_cpp else declaration.code
    return [*lines, '', '```cpp' if is_cpp else '```c', *code, '```', '']


def write_page(page, title, intro, header, links, up):
    """The page of one header. `up` leads from the page to the folder of the other pages."""
    top, sections = read(header)
    is_cpp = header.suffix == '.hpp'
    lines = [f'# {title}', '', intro, '', *markdown_of(top, links.in_text(page, (), up))]
    for section in sections:
        lines += ['', f'## {section.name[0].upper()}{section.name[1:]}']
        for declaration in section.declarations:
            lines += write_declaration(declaration, links, page, up, is_cpp)
    return '\n'.join(lines) + '\n'


# Page, title, header from the root, and what a reader can do with it.
PAGES = (
    ('c.md', 'C: gpushare.h', 'bindings/c/gpushare.h', 'Every function, struct and enumeration of the C ABI.'),
    ('c-policy.md', 'C: gpushare_policy.h', 'bindings/c/gpushare_policy.h',
     'What a [policy of your own](../write-a-policy.md) reads and writes.'),
    ('c-cost-model.md', 'C: gpushare_cost_model.h', 'bindings/c/gpushare_cost_model.h',
     'What a cost model of your own is asked and what it answers.'),
    ('cpp.md', 'C++: gpushare.hpp', 'include/gpushare/gpushare.hpp',
     'The C++ API. Each call names the C function under it; [C](c.md) says its threads, blocking and errors.'),
    ('c-kernels.md', 'C: kernels.h', 'include/gpushare/kernels.h',
     'The component of ready kernels, `gpushare::kernels`, with a version of its own.'),
)


def pages(root: pathlib.Path):
    """Each reference page of the headers: its name and its text."""
    links = Links()
    for page, _, header, _ in PAGES:
        links.add(page, read(root / header)[1])
    return {page: write_page(page, title, f'{intro} Written from the comments of '
                             f'[{pathlib.PurePath(header).name}](../../{header}).', root / header, links, '../')
            for page, title, header, intro in PAGES}
