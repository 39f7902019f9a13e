#!/usr/bin/env bash
# Makes the folder build/glibc-stubs and prints it: libraries with the names and versions of glibc 2.28's symbols and no code,
# to link against. Does nothing when they are there already.
#
#   tools/glibc_stubs.sh [MACHINE]    MACHINE: x86_64 or aarch64 (default: this one); another than this one has the
#                                     folder build/glibc-stubs-MACHINE
#
# zig knows the symbols of every glibc and writes such libraries when it links. It comes as the wheel ziglang, which is
# deleted afterwards.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[[ $# -le 1 ]] || die 'tools/glibc_stubs.sh takes a machine and nothing else.'

zig_version=0.17.1
machine="${1:-$(uname -m)}"
[[ "$machine" =~ ^(x86_64|aarch64)$ ]] || die "tools/glibc_stubs.sh does not know the machine '$machine'; it knows x86_64 and aarch64."
target="$machine-linux-gnu.2.28"
stubs="$root/build/glibc-stubs"
if [[ "$machine" != "$(uname -m)" ]]; then stubs+="-$machine"; fi
if [[ "$(cat "$stubs/version" 2> /dev/null)" == "$zig_version $target $stubs" ]]; then
  printf '%s\n' "$stubs"
  exit 0
fi
[[ -x "$python_tools/bin/python" ]] || die "pip is missing; tools/setup.sh makes $python_tools."
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
log="$scratch/log"
timeout 900 "$python_tools/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 --only-binary :all: --no-deps --target "$scratch/zig" \
  "ziglang==$zig_version" > "$log" 2>&1 || { tail -n 20 "$log" >&2; die "pip could not install ziglang $zig_version."; }
echo 'int gpushare_empty(void) { return 0; }' > "$scratch/empty.c"
# --verbose-link prints the command of the linker, which names the libraries. What zig would compile for itself is left out.
if ! (cd "$scratch" && ZIG_GLOBAL_CACHE_DIR=cache ZIG_LOCAL_CACHE_DIR=cache zig/ziglang/zig build-lib -dynamic -lc -target "$target" \
  -fno-compiler-rt -fno-ubsan-rt -fllvm -flld --verbose-link -cflags -fno-sanitize=undefined -- empty.c) > "$log" 2>&1; then
  tail -n 20 "$log" >&2
  die 'zig could not link.'
fi
partial="$stubs.partial"
rm -rf "$partial"
mkdir -p "$partial"
for name in libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 libld.so.2 libc_nonshared.a; do
  file="$scratch/$(grep -o "[^ ]*/$name" "$log" | tail -n 1)"
  [[ -f "$file" ]] || die "zig's linker was not given $name."
  cp "$file" "$partial/"
done
# What -lNAME finds. Functions that 2.28 keeps in an archive, such as stat, are in libc_nonshared.a; libld.so.2 stands for
# the loader, which has __tls_get_addr.
loader="$(sed 's/^x86_64$/ld-linux-x86-64.so.2/; s/^aarch64$/ld-linux-aarch64.so.1/' <<< "$machine")"
mv "$partial/libld.so.2" "$partial/$loader"
echo "GROUP ( $stubs/libc.so.6 $stubs/libc_nonshared.a AS_NEEDED ( $stubs/$loader ) )" > "$partial/libc.so"
ln -s libm.so.6 "$partial/libm.so"
ln -s libpthread.so.0 "$partial/libpthread.so"
ln -s libdl.so.2 "$partial/libdl.so"
ln -s librt.so.1 "$partial/librt.so"
printf '%s' "$zig_version $target $stubs" > "$partial/version"
rm -rf "$stubs"
mv "$partial" "$stubs"
printf '%s\n' "$stubs"
