#!/usr/bin/env bash
# What to run before a commit: formats, the text, layer and import rules, clang-tidy on everything that changed
# since it was clean, and the dev preset's tests. tools/test.sh is the whole.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

"$root/tools/setup.sh"
tools/format.sh --check
python3 tools/check_layers.py
python3 tools/check_imports.py
python3 tools/check_text.py
python3 tools/check_functions.py
python3 tools/check_tuning.py
configure tidy
python3 tools/tidy.py build/tidy --jobs "$jobs"
tools/test.sh --quick
