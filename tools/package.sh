#!/usr/bin/env bash
# Packs the library with a private Abseil inside, for systems that have neither this one's Abseil nor its compiler.
#
#   tools/package.sh FOLDER [OPTION...]   FOLDER: where the packages go
#     --build BUILD                       packs this build tree, which has GPUSHARE_ABSEIL_SOURCE (default: builds build/package)
#     --aarch64                           for aarch64, cross-compiled; first tools/setup.sh --aarch64
#     --tarballs                          the two tarballs alone
#     --quiet                             no progress: neither the steps nor the build's counter
#     -DNAME=VALUE                        an option of CMake for the default build, such as -DGPUSHARE_CUDA=OFF
#
# Makes: gpushare-VERSION-linux-MACHINE.tar.gz   headers, libraries, CMake package, pkg-config, command, profiles, pages
#        gpushare-VERSION-linux-MACHINE-debug.tar.gz   its debug information; unpack it over the same folder
#        gpushare_VERSION_ARCHITECTURE.deb, gpushare-dbgsym_...   the same for Debian and what descends from it
#        gpushare_runtime-VERSION-py3-none-PLATFORM.whl   the Python package
# docs/package.md says how to use them; tools/package_check.sh tries them, and tools/aarch64_check.sh those for aarch64.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ $# -ge 1 && "$1" != -* ]] || die 'tools/package.sh needs the folder to put the packages in.'
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
shift
build=''
everything=1
preset=package
quiet=0
options=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --build)
      [[ $# -ge 2 && -f "$2/CMakeCache.txt" ]] || die '--build needs a build tree.'
      build="$(cd "$2" && pwd)"
      shift
      ;;
    --aarch64) preset=package-aarch64 ;;
    --tarballs) everything=0 ;;
    --quiet) quiet=1 ;;
    -D*) options+=("$1") ;;
    *) die "tools/package.sh does not know the argument '$1'; it knows --build, --aarch64, --tarballs, --quiet and -D." ;;
  esac
  shift
done
for program in objcopy strip dpkg-deb dpkg-shlibdeps; do
  command -v "$program" > /dev/null || die "$program is missing; tools/setup.sh installs it."
done

steps=$((everything == 1 ? 6 : 4))
if [[ -z "$build" ]]; then
  step 1 "$steps" 'the build, which takes most of the time'
  configure_package "$preset" ${options[@]+"${options[@]}"}
  mapfile -t targets < <(packed_targets "$root/build/$preset")
  compile "$preset" "${targets[@]}"
  build="$root/build/$preset"
fi
grep -q '^GPUSHARE_ABSEIL_SOURCE:PATH=.' "$build/CMakeCache.txt" ||
  die "$build links the installed Abseil; configure it with -DGPUSHARE_ABSEIL_SOURCE=\"\$(tools/abseil_source.sh)\"."

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
version="$(sed -n 's/^project(gpushare VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")"
machine="$(machine_of "$build/bindings/c/libgpushare.so")"
[[ -n "$machine" ]] || die "$build has no libgpushare.so for x86_64 or aarch64."
tools="$(tool_prefix "$machine")"
architecture="$(dpkg --print-architecture)"
if [[ -n "$tools" ]]; then architecture="$(sed 's/aarch64/arm64/; s/x86_64/amd64/' <<< "$machine")"; fi
name="gpushare-$version-linux-$machine"
tree="$scratch/$name"
debug="$scratch/debug/$name"
# The same commit gives the same archives.
date="$(git -C "$root" log -1 --format=%ct 2> /dev/null || date +%s)"
export SOURCE_DATE_EPOCH="$date"

# Each dependency's code is in the libraries, so its licence goes with them.
take_all_licences() {
  take_licences "$tree/share/doc/gpushare/licences" "${library_parts[@]}" "${command_parts[@]}"
  cat > "$tree/share/doc/gpushare/copyright" << 'END'
libgpushare.so and the command gpushare contain code of Abseil, Eigen, nlohmann-json, CLI11, atomic_queue, protozero,
nanoflann and LEMON. The folder licences has the licence of each. Built with CUDA, they also contain NVIDIA's CUDA runtime
(libcudart_static), which NVIDIA's CUDA Toolkit EULA, attachment A, allows to distribute with an application.
END
}

take_examples() {
  local examples="$tree/share/doc/gpushare/examples" compiler
  compiler="$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")"
  compiler="${compiler:-${tools}gcc}"  # a toolchain file's compiler is not in the cache
  mkdir -p "$examples"
  cp "$root"/examples/quickstart.{c,cc,py} "$examples/"
  # A program for machines without a compiler.
  "$compiler" -std=c99 -O2 -s -I "$tree/include" "$examples/quickstart.c" -L "$tree/lib" -lgpushare \
    -Wl,-rpath,'$ORIGIN/../../../../lib' -o "$examples/quickstart"
}

# split FILE...: moves debug information into .debug/NAME.debug, where gdb looks by the name that stays in the file.
split() {
  local file symbols
  for file in "$@"; do
    symbols="$debug/$(dirname "${file#"$tree/"}")/.debug/$(basename "$file").debug"
    mkdir -p "$(dirname "$symbols")"
    "${tools}objcopy" --only-keep-debug --compress-debug-sections "$file" "$symbols"
    "${tools}strip" --strip-unneeded "$file"
    (cd "$(dirname "$symbols")" && "${tools}objcopy" --add-gnu-debuglink="$(basename "$symbols")" "$file")
    chmod 644 "$symbols"
  done
}

make_tarball() {  # PARENT ARCHIVE
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$date" -C "$1" "$name" | gzip -n > "$folder/$2"
}

# make_deb PACKAGE ROOT DEPENDS DESCRIPTION: ROOT has usr/
make_deb() {
  mkdir -p "$2/DEBIAN"
  cat > "$2/DEBIAN/control" << END
Package: $1
Version: $version
Architecture: $architecture
Maintainer: gpushare
Section: libs
Priority: optional
Installed-Size: $(du -sk "$2/usr" | cut -f 1)
Depends: $3
Description: $4
END
  dpkg-deb --root-owner-group -Zgzip --build "$2" "$folder/$1_${version}_$architecture.deb" > /dev/null
}

# The same for another machine, whose packages dpkg-shlibdeps does not find here: by the versions of the symbols.
foreign_packages() {  # FILE...
  local versions glibc libstdcxx
  versions="$(readelf -V "$@" | grep -o 'Name: [A-Z]*_[0-9.]*' | sed 's/Name: //' | sort -u -V)"
  glibc="$(sed -n 's/^GLIBC_//p' <<< "$versions" | tail -n 1)"
  case "$(sed -n 's/^GLIBCXX_//p' <<< "$versions" | tail -n 1)" in
    '') libstdcxx='' ;;
    3.4.30) libstdcxx=12 ;;
    3.4.29) libstdcxx=11 ;;
    3.4.? | 3.4.1? | 3.4.2[0-8]) libstdcxx=9 ;;
    *) die 'a program needs symbols of a libstdc++ that tools/package.sh does not know.' ;;
  esac
  printf 'libc6 (>= %s), libgcc-s1%s\n' "$glibc" "${libstdcxx:+, libstdc++6 (>= $libstdcxx)}"
}

# What the programs and libraries need of the system, as dpkg-shlibdeps knows it.
system_packages() {  # FILE...
  if [[ -n "$tools" ]]; then
    foreign_packages "$@"
    return
  fi
  mkdir -p "$scratch/shlibs/debian"
  printf 'Source: gpushare\n\nPackage: gpushare\nArchitecture: any\n' > "$scratch/shlibs/debian/control"
  (cd "$scratch/shlibs" && dpkg-shlibdeps -O --ignore-missing-info -l"$tree/lib" "$@" 2> "$scratch/shlibs.log" |
    sed -n 's/^shlibs:Depends=//p')
}

make_debs() {  # FILE...
  local file id depends
  depends="$(system_packages "$@")"
  [[ -n "$depends" ]] || { cat "$scratch/shlibs.log" >&2; die 'dpkg-shlibdeps names no package that the library needs.'; }
  mkdir -p "$scratch/deb" "$scratch/dbgsym/usr/lib/debug/.build-id"
  cp -a "$tree" "$scratch/deb/usr"
  mkdir -p "$scratch/deb/DEBIAN"
  echo 'activate-noawait ldconfig' > "$scratch/deb/DEBIAN/triggers"
  make_deb gpushare "$scratch/deb" "$depends" 'latency-critical and best-effort work on one GPU
 Library with its headers, CMake package and pkg-config file, kernels, profiles, the command
 gpushare and pages. Abseil is inside the library, with hidden symbols.'
  for file in "$@"; do
    id="$(readelf -n "$file" | sed -n 's/^ *Build ID: //p')"
    [[ -n "$id" ]] || die "$(basename "$file") has no build identifier."
    mkdir -p "$scratch/dbgsym/usr/lib/debug/.build-id/${id:0:2}"
    cp "$debug/$(dirname "${file#"$tree/"}")/.debug/$(basename "$file").debug" \
      "$scratch/dbgsym/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
  done
  make_deb gpushare-dbgsym "$scratch/dbgsym" "gpushare (= $version)" 'debug information of gpushare'
}

step 2 "$steps" 'the installed tree'
cmake --install "$build" --prefix "$tree" > "$scratch/log" 2>&1 || { cat "$scratch/log" >&2; die 'the build tree could not be installed.'; }
take_all_licences
take_examples
python3 -B "$root/tools/package_links.py" "$tree" || die 'the links above, of the pages in the package, lead nowhere.'
mapfile -t binaries < <(find "$tree/lib" "$tree/bin" -type f \( -name '*.so.*' -o -name gpushare \) | sort)
step 3 "$steps" 'debug information'
split "${binaries[@]}"
step 4 "$steps" 'the tarballs'
make_tarball "$scratch" "$name.tar.gz"
make_tarball "$scratch/debug" "$name-debug.tar.gz"
if [[ $everything -eq 1 ]]; then
  step 5 "$steps" 'the Debian packages'
  make_debs "${binaries[@]}"
  step 6 "$steps" 'the wheel'
  # The library in the build tree, beside which the wheel's extension is found.
  "$root/tools/python_wheel.sh" "$folder" "$(readlink -f "$build/bindings/c/libgpushare.so")"
fi
say "packed into $folder:"
(cd "$folder" && du -h gpushare*)
