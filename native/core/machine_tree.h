// MachineTree: a machine as its objects are nested, and what each CPU belongs to by that. A plain value:
// concurrent reads of one object are safe.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/topology.h"

namespace numalign {

// Whether hwloc's subtype of a NUMA node is that of ordinary memory: none, or DRAM. It names the special
// kinds: HBM, MCDRAM, NVM, GPUMemory, CXL-DRAM.
bool is_ordinary_memory(std::string_view subtype);

class MachineTree {
 public:
  // kOther: what only nests, and may have memory.
  enum class Kind { kOther, kPackage, kDie, kL3Cache, kCore, kPu };

  static constexpr int kNoParent = -1;

  // Objects come parents first, siblings from the lowest CPU up. `parent`: what an earlier call answered;
  // `id`: Linux's, where it is known; that of a PU must be. Answers the object.
  int add(Kind kind, int parent, std::optional<unsigned> id);

  // A NUMA node near all CPUs of an object, which are closer to it than to any node of an object around.
  // `is_ordinary`: see is_ordinary_memory().
  void attach(int object, int node, bool is_ordinary);

  // Every CPU, ascending. `node_of_cpu`: the NUMA nodes of CPUs where Linux tells; of all others it is the
  // nearest one upwards that is ordinary memory, else the nearest of any kind, else, for CPUs that no node is
  // near to, the first node of the nearest object around that has some. Where objects contradict each other
  // (a core on two NUMA nodes, an L3 in two packages), the smaller one is split.
  //
  // Errors: kHwloc where there is no CPU, or an id above CpuSet::kMaxId.
  Result<std::vector<CpuInfo>> cpus(const std::map<int, int>& node_of_cpu) const;

 private:
  struct Object {
    Kind kind;
    int parent;
    std::optional<unsigned> id;
    // The first NUMA nodes that are attached, -1: none.
    int node = -1, ordinary_node = -1;
    // The lowest that is attached to it or to an object in it.
    int node_within = -1;
  };

  int ancestor(Kind kind, int object) const;
  int nearest_node(int pu) const;
  std::vector<int> ids_of(Kind kind) const;
  std::vector<int> pus_by_id() const;

  std::vector<Object> objects_;
};

}  // namespace numalign
