#!/bin/sh
# hwloc-static.sh SOURCE PREFIX [HOST]: hwloc's library and headers from its source package, for HOST (as aarch64-linux-gnu) or this machine:
# only what an addon links in, position-independent, with nothing that would be another library to load. Builds in the current folder.
# Its assertions stay: they stop what a malformed description of a machine might do otherwise.
set -eu
"$1/configure" --quiet --prefix="$2" --localstatedir=/var ${3:+"--host=$3"} --enable-static --disable-shared --with-pic --disable-plugins \
  --disable-libxml2 --disable-libudev --disable-pci --disable-opencl --disable-cuda --disable-nvml --disable-rsmi \
  --disable-levelzero --disable-gl --disable-cairo \
  CFLAGS="-O2 -fvisibility=hidden -ffunction-sections -fmacro-prefix-map=$(dirname "$PWD")=."
# Not its programs, documents and tests.
make -s -j"$(nproc)" -C include install
make -s -j"$(nproc)" -C hwloc install
make -s install-hwlocpkgconfigDATA
