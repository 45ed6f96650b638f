// RepackingRoom: counts of what is free on NUMA nodes while grants move. It never denies room that
// exists, but may report room that a decision on the CPUs themselves refuses. Plain value:
// copyable, no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/id_set.h"

namespace numalign {

// The CPUs of a pool as some requests count them: single CPUs, CPUs of whole cores, or cores.
struct CpuView {
  struct Core {
    int node;
    int cpus;
    int free;
    // The units that the core counts while all of its CPUs are free.
    int units;
  };
  // Free CPUs by node.
  std::vector<int> free;
  // Empty if each CPU counts, whatever its core.
  std::vector<Core> cores;
  // The fewest CPUs that make a unit.
  int cpus_per_unit = 1;
};

// The memory of a type on a node, in bytes.
struct NodeMemory {
  // Negative if more is booked than the node has.
  double spare = 0;
  double booked = 0;
  // The upper limit of free bytes, however much is given back.
  double most = std::numeric_limits<double>::infinity();
};

// Nodes that share allocations, and the number of blocks allocated on them.
struct MemoryGroup {
  NodeMask nodes;
  int blocks = 0;
};

struct MemoryShare {
  NodeMask nodes;
  size_t type = 0;
  double bytes = 0;
};

// A demand that is met at one place.
struct RepackingDemand {
  // Index into the views, and the number of its units.
  size_t view = 0;
  int units = 0;
  // By view: the least number of CPUs that it takes from the view.
  std::vector<int> cpus_by_view;
  // By type; empty: none.
  std::vector<double> bytes;
  // True if the memory is on one group of nodes. False if several containers may have some each.
  bool is_one_block = true;
};

// The holdings of a grant that may move.
struct RepackingHolding {
  struct CoreShare {
    // Indexes into the views and their cores.
    size_t view;
    size_t core;
    int cpus;
  };
  // By view and node.
  std::vector<int> cpus;
  std::vector<CoreShare> shares;
  std::vector<MemoryShare> memory;
};

// A machine's nodes before any move.
struct RepackingGround {
  size_t nodes = 0;
  std::vector<CpuView> views;
  size_t types = 0;
  // By type and node.
  std::vector<NodeMemory> memory;
  // Disjoint.
  std::vector<MemoryGroup> groups;
};

class RepackingRoom {
 public:
  // REQUIRES: `ground` outlives it.
  explicit RepackingRoom(const RepackingGround& ground);

  // True if a demand may have its CPUs on the nodes of `cpus`, and its memory on those of `memory`.
  bool fits(const RepackingDemand& demand, NodeMask cpus, NodeMask memory) const;
  // Gives back a holding, or only its CPUs.
  void give_back(const RepackingHolding& holding, bool with_memory);
  // Places a demand on these nodes. `memory` is empty if the demand has its memory already.
  void take(const RepackingDemand& demand, NodeMask cpus, NodeMask memory);

 private:
  // A demand on several nodes. Its amount on each of them is unknown.
  struct Spread {
    const RepackingDemand* demand;
    NodeMask cpus;
    NodeMask memory;
  };

  size_t at(size_t row, size_t node) const { return row * ground_->nodes + node; }
  // The free CPUs of a view on a node.
  int& free(size_t view, size_t node) { return counts_[at(view, node)]; }
  int free(size_t view, size_t node) const { return counts_[at(view, node)]; }
  // For views with cores, the units of free cores on a node.
  int& whole(size_t view, size_t node) { return free(ground_->views.size() + view, node); }
  int whole(size_t view, size_t node) const { return free(ground_->views.size() + view, node); }
  double& spare(size_t type, size_t node) { return bytes_[at(type, node)]; }
  double& booked(size_t type, size_t node) { return bytes_[at(ground_->types + type, node)]; }
  int units_on(size_t view, size_t node) const;
  int cpus_in(size_t view, NodeMask nodes) const;
  double free_on(size_t type, size_t node) const;
  double free_in(size_t type, NodeMask nodes) const;
  bool is_open(NodeMask nodes) const;
  bool has_memory(const RepackingDemand& demand, NodeMask nodes) const;

  const RepackingGround* ground_;
  // By view: the index of its first core.
  std::vector<size_t> first_core_;
  // Free CPUs by view and node, whole units by view and node, and free CPUs by core. One list,
  // because the room is copied often.
  std::vector<int> counts_;
  // Spare bytes by type and node, then booked bytes.
  std::vector<double> bytes_;
  // By node.
  std::vector<MemoryGroup> groups_;
  std::vector<Spread> spread_;
};

}  // namespace numalign
