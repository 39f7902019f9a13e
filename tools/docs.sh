#!/usr/bin/env bash
# Builds the documentation site into build/site/html; every link and anchor must lead somewhere (docs/site.md).
#
#   tools/docs.sh            builds; open build/site/html/index.html
#   tools/docs.sh --serve    builds and serves it on 127.0.0.1:8000 until Ctrl-C
#
# It needs the Python tools of tools/setup.sh and no network.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

serve=0
case "${1:-}" in
  --serve) serve=1 ;;
  '') ;;
  *) die "tools/docs.sh does not know the argument '$1'; it knows --serve." ;;
esac
[[ -x "$python_tools/bin/mkdocs" ]] || die "mkdocs is missing; tools/setup.sh installs it."

start=$SECONDS
log="$root/build/site/build.log"
python="$python_tools/bin/python"
"$python" -B bindings/python/generate.py > /dev/null
rm -rf build/site/pages
"$python" -B tools/site/stage.py build/site/pages
cp -r tools/site/assets build/site/pages/
if ! NO_MKDOCS_2_WARNING=1 PYTHONDONTWRITEBYTECODE=1 "$python" -m mkdocs build --strict -f tools/site/mkdocs.yml > "$log" 2>&1; then
  grep -E 'WARNING|ERROR|Error' "$log" >&2 || cat "$log" >&2
  die "the site has problems."
fi
# A page that loads something from another machine would be broken without a network.
"$python" -B tools/site/network.py build/site/html || die "these pages load files from the network."
say "built build/site/html in $((SECONDS - start)) s"
if [[ $serve -eq 1 ]]; then
  say "http://127.0.0.1:8000 (Ctrl-C ends it)"
  exec "$python" -m http.server --bind 127.0.0.1 --directory build/site/html 8000
fi
