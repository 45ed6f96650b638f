// What hwloc 3 changes of that which numalign calls, over the headers of hwloc 2: what compiles with
// both is not only meant to. Never linked.
#pragma once
#pragma GCC system_header  // for #include_next

#define hwloc_cpukinds_get_info hwloc_2_cpukinds_get_info
#define page_types_len hwloc_2_page_types_len
#define page_types hwloc_2_page_types
#include_next <hwloc.h>
#undef hwloc_cpukinds_get_info
#undef page_types_len
#undef page_types

#undef HWLOC_API_VERSION
#define HWLOC_API_VERSION 0x00030000

extern "C" {
struct hwloc_infos_s {
  hwloc_info_s* array;
  unsigned count, allocated;
};

int hwloc_cpukinds_get_info(hwloc_topology_t topology, unsigned kind_index, hwloc_bitmap_t cpuset,
                            int* efficiency, hwloc_infos_s** infosp, unsigned long flags);
}
