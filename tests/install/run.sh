#!/usr/bin/env bash
# Installs a build into a fresh prefix and builds consumers against it, as a user of the package would:
# through find_package and through pkg-config, in C and in C++.
#
#   tests/install/run.sh BUILD_FOLDER CMAKE [C_COMPILER] [CXX_COMPILER]
set -euo pipefail
build="$1"
cmake="${2:-cmake}"
cc="${3:-cc}"
cxx="${4:-c++}"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
prefix="$scratch/prefix"

"$cmake" --install "$build" --prefix "$prefix" > "$scratch/install.log" ||
  { cat "$scratch/install.log" >&2; exit 1; }

# Each file belongs to a component. A program needs the library's alone; `kernels` is an error where it was not built.
for component in library development tool documentation ptx; do
  "$cmake" --install "$build" --prefix "$scratch/parts" --component "$component" > "$scratch/install.log"
  if [[ "$component" == library ]]; then
    find "$scratch/parts" ! -type d ! -name 'libgpushare.so.*' > "$scratch/beside"
    if [[ -s "$scratch/beside" ]]; then
      cat "$scratch/beside" >&2
      echo 'The component library has more than the library.' >&2
      exit 1
    fi
  fi
done
if [[ -e "$prefix/include/gpushare/kernels.h" ]]; then
  "$cmake" --install "$build" --prefix "$scratch/parts" --component kernels > "$scratch/install.log"
fi
diff <(cd "$prefix" && find . ! -type d | sort) <(cd "$scratch/parts" && find . ! -type d | sort) ||
  { echo 'The components together are not the whole installation.' >&2; exit 1; }

# Before an installation, include/ of the source tree has every header.
sources="$here/../.."
library="$(dirname "$(find "$build" -name libgpushare.so -not -path '*/CMakeFiles/*' | head -n 1)")"
"$cc" -std=c99 -Wall -Wextra -Werror -I "$sources/include" "$sources/examples/quickstart.c" -L "$library" -lgpushare \
  "-Wl,-rpath,$library" -o "$scratch/quickstart"
"$scratch/quickstart" | grep -q '^p99 alone ' || { echo 'quickstart.c fails.' >&2; exit 1; }
"$cxx" -std=c++17 -Wall -Wextra -Werror -I "$sources/include" -fsyntax-only "$sources/examples/quickstart.cc"

# The package, found the way a user finds it, with nothing else on the search path.
"$cmake" -S "$here/consumer" -B "$scratch/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" > "$scratch/configure.log" ||
  { cat "$scratch/configure.log" >&2; exit 1; }
"$cmake" --build "$scratch/build" > "$scratch/build.log" || { cat "$scratch/build.log" >&2; exit 1; }
"$scratch/build/consumer_c"
"$scratch/build/consumer_cpp"
"$scratch/build/consumer_ptx"

# pkg-config.
library_folder="$(dirname "$(find "$prefix" -name 'gpushare.pc')")/.."
export PKG_CONFIG_PATH="$library_folder/pkgconfig"
read -ra cflags <<< "$(pkg-config --cflags gpushare)"
read -ra libs <<< "$(pkg-config --libs gpushare)"
"$cc" -std=c99 -Wall -Wextra -Werror "${cflags[@]}" "$here/consumer/consumer.c" "${libs[@]}" \
  -o "$scratch/pkg_c"
"$cxx" -std=c++17 -Wall -Wextra -Werror "${cflags[@]}" "$here/consumer/consumer.cc" "${libs[@]}" \
  -o "$scratch/pkg_cpp"
export LD_LIBRARY_PATH="$library_folder"
"$scratch/pkg_c"
"$scratch/pkg_cpp"
read -ra cflags <<< "$(pkg-config --cflags gpushare-ptx)"
read -ra libs <<< "$(pkg-config --libs gpushare-ptx)"
"$cc" -std=c99 -Wall -Wextra -Werror "${cflags[@]}" "$here/consumer/twin.c" "${libs[@]}" -o "$scratch/pkg_ptx"
"$scratch/pkg_ptx"
if objdump -p "$library_folder/libgpushare_ptx.so" | grep -q 'NEEDED *lib\(gpushare\|absl\|cu\)'; then
  echo 'libgpushare_ptx.so needs more than the system.' >&2
  exit 1
fi

# The component `kernels`, which is there with CUDA: the example as somebody else's project, in C99.
if [[ -e "$prefix/include/gpushare/kernels.h" ]]; then
  "$cmake" -S "$here/../../examples/kernels" -B "$scratch/kernels" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS='-Wall -Wextra -Wpedantic -Werror' > "$scratch/kernels.log" &&
    "$cmake" --build "$scratch/kernels" >> "$scratch/kernels.log" || { cat "$scratch/kernels.log" >&2; exit 1; }
  env -u LD_LIBRARY_PATH "$scratch/kernels/example_kernels" | tee "$scratch/kernels.txt"
  grep -q '^  softmax ' "$scratch/kernels.txt" || { echo 'The kernels are not listed.' >&2; exit 1; }
  read -ra cflags <<< "$(pkg-config --cflags gpushare gpushare-kernels)"
  read -ra libs <<< "$(pkg-config --libs gpushare gpushare-kernels)"
  "$cc" -std=c99 -Wall -Wextra -Werror "${cflags[@]}" "$here/../../examples/kernels/"*.c "${libs[@]}" -ldl -lm \
    -o "$scratch/pkg_kernels"
  "$scratch/pkg_kernels" > "$scratch/kernels.txt"
  grep -q '^  softmax ' "$scratch/kernels.txt" || { echo 'The kernels are not listed.' >&2; exit 1; }
elif "$cmake" -S "$here/../../examples/kernels" -B "$scratch/kernels" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$cc" > "$scratch/kernels.log" 2>&1; then
  echo 'find_package finds the component kernels, and none is installed.' >&2
  exit 1
fi

# A caller asks the loader for the SONAME: that name must be there.
soname="libgpushare.so.$(sed -n 's/^#define GPUSHARE_ABI_VERSION //p' "$prefix/include/gpushare/gpushare.h")"
[[ -e "$library_folder/$soname" ]] || { echo "$soname is not installed." >&2; exit 1; }
objdump -p "$scratch/pkg_c" | grep -q "NEEDED *$soname\$" ||
  { echo "The consumer does not ask for $soname." >&2; exit 1; }

# The command finds what was installed with it from any folder: a scenario by its name, its profile by
# the scenario's own relative path, a profile by its name.
(
  cd "$scratch"
  for scenario in "$prefix"/share/gpushare/scenarios/*.json; do
    "$prefix/bin/gpushare" validate "$(basename "$scenario" .json)" > "$scratch/validate.log" ||
      { echo "The installed scenario $(basename "$scenario") is not good." >&2; exit 1; }
  done
  "$prefix/bin/gpushare" validate h200 > /dev/null
  "$prefix/bin/gpushare" colocate smoke --device sim --queries 20 --json > "$scratch/smoke.json"
  grep -q '"profile": "h200"' "$scratch/smoke.json" ||
    { echo 'The installed command does not run an installed scenario on its profile.' >&2; exit 1; }
  # What is nowhere is an error that names the installed folder.
  if "$prefix/bin/gpushare" validate no_such_scenario 2> "$scratch/error.log"; then exit 1; fi
  grep -q "$prefix/share/gpushare/scenarios/no_such_scenario.json" "$scratch/error.log" ||
    { cat "$scratch/error.log" >&2; exit 1; }
)
for page in README.md docs/README.md docs/results.md docs/results/networks.md; do
  [[ -s "$prefix/share/doc/gpushare/$page" ]] || { echo "$page is not installed." >&2; exit 1; }
done

# What was installed names neither this build nor these sources.
if grep -rIl --include='*.cmake' --include='*.pc' --include='*.h' --include='*.hpp' \
  -e "$(cd "$build" && pwd)" -e "$(cd "$here/../.." && pwd)" "$prefix"; then
  echo 'The files above are installed and name the folder that they were built in.' >&2
  exit 1
fi
echo 'The installed package works through find_package and pkg-config, in C and C++.'
