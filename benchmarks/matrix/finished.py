"""Finished rows as JSON lines, keyed by what they depend on: a run that is repeated skips them."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
from typing import Any

from matrix_plan import Row

ROOT = pathlib.Path(__file__).resolve().parents[2]


def commit_of(root: pathlib.Path = ROOT) -> str:
    """The checked-out commit, with '+' if the tree has changes; '' where there is no repository."""
    def git(*arguments: str) -> str:
        done = subprocess.run(['git', '-C', str(root), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changed = git('status', '--porcelain', '--untracked-files=no')
        return git('rev-parse', '--short=12', 'HEAD') + ('+' if changed else '')
    except (OSError, subprocess.CalledProcessError):
        return ''


def hash_of(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


class Finished:
    """The rows in a file and what was measured before them. A line that is cut off is no row."""

    def __init__(self, path: pathlib.Path, setting: dict[str, Any]) -> None:
        self.path, self.setting = path, setting
        self._policies: dict[str, set[str]] = {}
        for line in read(path):
            if 'failed' not in line:
                self._note(line)

    def has(self, row: Row) -> bool:
        """Whether every policy of the row was measured under this setting, or cannot run."""
        return set(row.policies) <= self._policies.get(self._key(row.service, row.be, row.load, self.setting), set())

    def add(self, row: Row, result: dict[str, Any]) -> None:
        line = {'setting': self.setting, 'service': row.service, 'be': row.be, 'load': row.load, **result}
        with self.path.open('a+b') as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b'\n':  # a process was ended while it wrote
                    file.write(b'\n')
            file.write((json.dumps(line) + '\n').encode())
        if 'failed' not in line:
            self._note(line)

    def _note(self, line: dict[str, Any]) -> None:
        key = self._key(line['service'], line['be'], line['load'], line['setting'])
        self._policies.setdefault(key, set()).update(line['conditions'], line.get('absent', ()))

    @staticmethod
    def _key(service: str, be: str, load: str, setting: dict[str, Any]) -> str:
        return json.dumps([service, be, load, setting], sort_keys=True)


def read(path: pathlib.Path) -> list[dict[str, Any]]:
    """The lines of a file that are whole rows; none if there is no file."""
    if not path.exists():
        return []
    rows = []
    for text in path.read_text(encoding='utf-8').splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and {'setting', 'service', 'be', 'load'} <= line.keys():
            rows.append(line)
    return rows
