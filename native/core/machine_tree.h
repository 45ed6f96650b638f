// MachineTree: a machine as nested objects, and the objects that contain each CPU. A plain value:
// concurrent reads of one object are safe.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/topology.h"

namespace numalign {

// True if hwloc's subtype of a NUMA node means ordinary memory: none, or DRAM. It names special
// kinds: HBM, MCDRAM, NVM, GPUMemory, CXL-DRAM.
bool is_ordinary_memory(std::string_view subtype);

class MachineTree {
 public:
  // kOther: an object that only nests, and may have memory.
  enum class Kind { kOther, kPackage, kDie, kL3Cache, kCore, kPu };

  static constexpr int kNoParent = -1;

  // Adds an object and returns it. Parents come first, siblings from the lowest CPU up. `parent`: a
  // result of an earlier call. `id`: the id in Linux, if known; a PU must have one.
  int add(Kind kind, int parent, std::optional<unsigned> id);

  // Attaches a NUMA node to the innermost object that it belongs to: the object's CPUs are closer
  // to it than to nodes of outer objects. `is_ordinary`: see is_ordinary_memory().
  void attach(int object, int node, bool is_ordinary);

  // Every CPU, ascending. `node_of_cpu`: the NUMA nodes of CPUs that Linux reports. Any other CPU
  // gets the nearest node upwards with ordinary memory, else the nearest of any kind, else the
  // first node of the nearest outer object that has some. If objects contradict each other (a core
  // on two NUMA nodes, an L3 in two packages), splits the smaller one.
  //
  // Errors: kHwloc if there is no CPU, or an id above CpuSet::kMaxId.
  Result<std::vector<CpuInfo>> cpus(const std::map<int, int>& node_of_cpu) const;

 private:
  struct Object {
    Kind kind;
    int parent;
    std::optional<unsigned> id;
    // The first attached NUMA nodes, -1: none.
    int node = -1, ordinary_node = -1;
    // The lowest node attached to it or to an object in it.
    int node_within = -1;
  };

  int ancestor(Kind kind, int object) const;
  int nearest_node(int pu) const;
  std::vector<int> ids_of(Kind kind) const;
  std::vector<int> pus_by_id() const;

  std::vector<Object> objects_;
};

}  // namespace numalign
