#!/usr/bin/env python3
"""Compiles every Python file of this folder, without leaving anything behind."""

import pathlib
import sys

for path in sorted(pathlib.Path(__file__).parent.glob('*.py')):
    compile(path.read_bytes(), str(path), 'exec')
    print(f'{path.name}: compiles')
sys.exit(0)
