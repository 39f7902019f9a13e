#!/usr/bin/env bash
# Makes a wheel of the Python package that carries libgpushare.so and the libraries that it needs.
#
#   tools/python_wheel.sh FOLDER [LIBRARY]    FOLDER: where the wheel goes; LIBRARY: a libgpushare.so that is built
#                                             (default: builds it in build/package, with a private Abseil)
#
# The wheel carries the extension gpushare._steps too, if the build of the library has made it.
#
# The wheel is for the machine of LIBRARY, x86_64 or aarch64. It carries the licences of the library's parts.
# The wheel is for every Python from 3.10 on. Its name says which glibc it needs: 2.28, if the library was linked against
# tools/glibc_stubs.sh, as in build/package; else that of this machine. pip knows it as gpushare-runtime.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ $# -ge 1 && $# -le 2 ]] || die "tools/python_wheel.sh needs the folder to put the wheel in."
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
[[ -x "$python_tools/bin/auditwheel" ]] || die "auditwheel is missing; tools/setup.sh installs it into $python_tools."
library="${2:-}"
if [[ -z "$library" ]]; then
  configure_package package
  compile package gpushare
  ninja -C "$root/build/package" gpushare_python_steps > /dev/null 2>&1 || say "without the extension gpushare._steps"
  library="$root/build/package/bindings/c/libgpushare.so.1"
fi
[[ -f "$library" ]] || die "There is no library '$library'."
machine="$(machine_of "$library")"
tools="$(tool_prefix "$machine")"

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
cp -R "$root/bindings/python" "$scratch/python"
rm -rf "$scratch/python/build" "$scratch"/python/*.egg-info
"$python_tools/bin/python" -B "$scratch/python/generate.py" --headers "$root/bindings/c"
mkdir -p "$scratch/python/gpushare/lib"
cp -L "$library" "$scratch/python/gpushare/lib/libgpushare.so.1"
"${tools}strip" "$scratch/python/gpushare/lib/libgpushare.so.1"
take_licences "$scratch/python/licences" "${library_parts[@]}"
steps="$(dirname "$library")/../python/_steps.abi3.so"
if [[ -f "$steps" ]]; then "${tools}strip" -o "$scratch/python/gpushare/_steps.abi3.so" "$steps"; fi

# Whoever links for an old glibc links libstdc++ statically. auditwheel then refuses a symbol that is too new.
platform=()
needed="$(readelf -d "$scratch/python/gpushare/lib/libgpushare.so.1")"
if [[ "$needed" != *libstdc++* ]]; then platform=(--plat "manylinux_2_28_$machine" --only-plat); fi

log="$scratch/log"
# auditwheel offers the platforms of the machine that Python names.
auditwheel="import platform, sys; platform.machine = lambda: '$machine'; from auditwheel.main import main; sys.exit(main())"
export _PYTHON_HOST_PLATFORM="linux-$machine"  # the platform of the wheel, where it is not this machine's
if ! { "$python_tools/bin/python" -m pip wheel --disable-pip-version-check --no-index --no-deps --no-build-isolation \
  --wheel-dir "$scratch/raw" "$scratch/python" &&
  PATH="$python_tools/bin:$PATH" "$python_tools/bin/python" -c "$auditwheel" repair ${platform[@]+"${platform[@]}"} --wheel-dir "$scratch/repaired" "$scratch"/raw/*.whl; } > "$log" 2>&1; then
  cat "$log" >&2
  die "the wheel could not be made."
fi
wheel="$(cd "$scratch/repaired" && ls -- *.whl)"
if [[ ${#platform[@]} -gt 0 ]]; then python3 -B "$root/tools/check_symbols.py" "$scratch/repaired/$wheel"; fi
rm -f "$folder"/gpushare_runtime-*"_$machine.whl"
mv "$scratch/repaired/$wheel" "$folder/"
say "$wheel, $(du -h "$folder/$wheel" | cut -f 1), in $folder"
