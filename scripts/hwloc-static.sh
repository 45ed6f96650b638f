#!/bin/sh
# hwloc-static.sh SOURCE PREFIX [HOST]: hwloc's library and headers from its source package, for
# HOST (such as aarch64-linux-gnu) or this machine. It has only what an addon links in, is
# position-independent, and needs no other library. Builds in the current folder. Its assertions
# stay: they catch malformed descriptions of a machine.
set -eu
"$1/configure" --quiet --prefix="$2" --localstatedir=/var ${3:+"--host=$3"} --enable-static --disable-shared --with-pic --disable-plugins \
  --disable-libxml2 --disable-libudev --disable-pci --disable-opencl --disable-cuda --disable-nvml --disable-rsmi \
  --disable-levelzero --disable-gl --disable-cairo \
  CFLAGS="-O2 -fvisibility=hidden -ffunction-sections -fmacro-prefix-map=$(dirname "$PWD")=."
# Its programs, documents and tests are left out.
make -s -j"$(nproc)" -C include install
make -s -j"$(nproc)" -C hwloc install
make -s install-hwlocpkgconfigDATA
