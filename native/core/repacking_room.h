// RepackingRoom: what is free on NUMA nodes while grants move, by counts. It never says that there
// is no room where there is some; where there seems to be some, a decision on the CPUs themselves
// has the last word. Plain value: copyable, no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/id_set.h"

namespace numalign {

// CPUs as some requests count them: those of one pool; CPUs of whole cores alone; or cores.
struct CpuView {
  struct Core {
    int node;
    int cpus;
    int free;
    // What it counts once all of its CPUs are free.
    int units;
  };
  // CPUs by node.
  std::vector<int> free;
  // Empty: each CPU counts, whatever core it is of.
  std::vector<Core> cores;
  // The fewest CPUs that make a unit.
  int cpus_per_unit = 1;
};

// What a node has of a type of memory, in bytes.
struct NodeMemory {
  // Less than nothing where more is booked than there is.
  double spare = 0;
  double booked = 0;
  // No more can be had, whatever is given back.
  double most = std::numeric_limits<double>::infinity();
};

// Nodes that share allocations, and how many blocks these are.
struct MemoryGroup {
  NodeMask nodes;
  int blocks = 0;
};

struct MemoryShare {
  NodeMask nodes;
  size_t type = 0;
  double bytes = 0;
};

// What is asked for at one place.
struct RepackingDemand {
  // Index into the views, and how many units of it.
  size_t view = 0;
  int units = 0;
  // By view: the CPUs that it takes away from it at least.
  std::vector<int> cpus_by_view;
  // By type; empty: none at all.
  std::vector<double> bytes;
  // Memory of one group of nodes. Else several containers may have some each.
  bool is_one_block = true;
};

// A grant that may move, as far as it holds something that others count.
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

// A machine of some nodes.
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

  // Whether a demand may have its CPUs of some nodes and its memory of some others, or the same.
  bool fits(const RepackingDemand& demand, NodeMask cpus, NodeMask memory) const;
  // A holding is given back, or its CPUs alone.
  void give_back(const RepackingHolding& holding, bool with_memory);
  // Something comes to these nodes, `memory` none where it has its memory already.
  void take(const RepackingDemand& demand, NodeMask cpus, NodeMask memory);

 private:
  // What has come to several nodes, nobody knows how much to which.
  struct Spread {
    const RepackingDemand* demand;
    NodeMask cpus;
    NodeMask memory;
  };

  size_t at(size_t row, size_t node) const { return row * ground_->nodes + node; }
  // What a view has free on a node, and of views with cores the units of cores that are.
  int& free(size_t view, size_t node) { return counts_[at(view, node)]; }
  int free(size_t view, size_t node) const { return counts_[at(view, node)]; }
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
  // By view, where its cores begin.
  std::vector<size_t> first_core_;
  // Free CPUs by view and node, whole units by view and node, free CPUs by core. In few lists, for
  // a copy takes a copy of each.
  std::vector<int> counts_;
  // Spare bytes by type and node, and booked ones.
  std::vector<double> bytes_;
  // By node.
  std::vector<MemoryGroup> groups_;
  std::vector<Spread> spread_;
};

}  // namespace numalign
