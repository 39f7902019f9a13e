#!/usr/bin/env bash
# Builds the Go package against an installed prefix, runs its tests and its example on the simulated device.
#
#   tests/languages/go.sh BUILD_OR_PREFIX [CMAKE]    a build tree, which is installed first, or a prefix
#
# Exit code 77: there is no go, or one older than 1.19.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
package="$here/../../bindings/go"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

version="$(go version 2> /dev/null | sed -n 's/^go version go\([0-9.]*\).*/\1/p' || true)"
if [[ -z "$version" ]] || [[ "$(printf '1.19\n%s\n' "$version" | sort -V | head -n 1)" != 1.19 ]]; then
  echo "Skipped: the package needs go 1.19 or later, and there is ${version:-none}."
  exit 77
fi
prefix="$1"
if [[ -f "$1/CMakeCache.txt" ]]; then
  prefix="$scratch/prefix"
  "${2:-cmake}" --install "$1" --prefix "$prefix" > "$scratch/install.log" || { cat "$scratch/install.log" >&2; exit 1; }
  # What is installed is what a user builds.
  package="$prefix/share/gpushare/go"
fi
library_folder="$(dirname "$(find "$prefix" -name gpushare.pc)")/.."
export GPUSHARE_DEVICE=sim GOPROXY=off GOFLAGS=-mod=mod PKG_CONFIG_PATH="$library_folder/pkgconfig"
export CGO_LDFLAGS="-Wl,-rpath,$(cd "$library_folder" && pwd)"
unset LD_LIBRARY_PATH
cp -R "$package" "$scratch/package"
cd "$scratch/package"
[[ -z "$(gofmt -l .)" ]] || { echo "gofmt would change: $(gofmt -l .)" >&2; exit 1; }
go vet ./...
go test ./...
go run ./examples/quickstart | tee "$scratch/printed"
grep -q '^query: ok in [0-9]* us$' "$scratch/printed" || { echo 'The example shows no query.' >&2; exit 1; }
grep -q '^training step: evicted [1-9][0-9]* times$' "$scratch/printed" || { echo 'The example shows no eviction.' >&2; exit 1; }

# A program of somebody else, as the page says.
mkdir "$scratch/program"
cp examples/quickstart/main.go "$scratch/program/"
printf 'module program\n\ngo 1.19\n\nrequire gpushare v0.0.0\n\nreplace gpushare => %s\n' "$scratch/package" > "$scratch/program/go.mod"
(cd "$scratch/program" && go run . > "$scratch/printed")
grep -q '^query: ok in ' "$scratch/printed" || { echo 'The program of somebody else shows no query.' >&2; exit 1; }
echo "The Go package works with go $version."
