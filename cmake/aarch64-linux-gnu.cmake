# Toolchain for Linux on aarch64 (GH200, Jetson) with Debian's cross compiler: tools/setup.sh --aarch64 installs it.
#
#   cmake --preset package-aarch64 -DGPUSHARE_ABSEIL_SOURCE="$(tools/abseil_source.sh)"
#
# Headers without code are this machine's: Debian's cross compiler looks into /usr/include. Programs that the build
# itself runs, and tests, run under qemu.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CUDA_HOST_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;/usr/aarch64-linux-gnu)
