// WholeCoreMasks: the sets of NUMA nodes whose whole cores, of different sizes, can be dealt out to
// the containers of a request. More nodes are never worse. One thread uses one object.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/core_sizes.h"
#include "core/hint_family.h"

namespace numalign {

class WholeCoreMasks {
 public:
  // `cores`: by position of the node. REQUIRES: `claims` has no counts of 0; both outlive the object.
  WholeCoreMasks(std::span<const CoreSizes> cores, std::span<const CoreClaim> claims, NodeMask must,
                 NodeMask domain);

  // True if all nodes together do.
  bool any() { return serves(all_); }
  // The fewest nodes that do, or 0. Above `enumerated` nodes, not always exact.
  int narrowest(int enumerated);
  // What cores of nested sizes must have: these masks do, and if `are_all_nested`, no others.
  std::vector<Need> needs() const;
  bool are_all_nested() const { return are_all_nested_; }
  // Adds all masks to a set that has those that meet the needs. REQUIRES: at most kEnumeratedNodes.
  void add_to(SmallWords& masks);
  // Lists masks beside those that `linear` offers: those of the fewest nodes first, then the domain.
  // False if some may be missing: it lists at most kMostListed, and tries at most kMostTried.
  bool list_in(LinearHints& linear);

  static constexpr size_t kMostListed = 4096;
  static constexpr int kMostTried = 32'768;

 private:
  // Nodes with equal cores. It does not matter which of them a mask has.
  struct Kind {
    CoreSizes cores;
    std::vector<int> nodes;
  };
  // Returns false to end the search.
  using Visit = std::function<bool(NodeMask)>;

  bool serves(const CoreSizes& cores) { return cores.can_serve(claims_, budget_); }
  Need need(int request, std::span<const int> sizes) const;
  void find_kinds();
  // Visits masks of `size` nodes. False if it was ended, by `visit` or because `tries` ran out.
  bool visit_masks(int size, int& tries, const Visit& visit);
  bool descend(size_t kind, int left, const CoreSizes& chosen, std::vector<int>& picks, int& tries,
               const Visit& visit);
  bool expand(size_t kind, size_t from, int left, uint64_t mask, const std::vector<int>& picks, int& tries,
              const Visit& visit);

  std::span<const CoreSizes> cores_;
  std::span<const CoreClaim> claims_;
  NodeMask must_;
  NodeMask domain_;
  CoreSizes all_;
  std::vector<int> nested_;
  bool are_all_nested_ = true;
  int needed_;  // CPUs at one time
  int budget_ = CoreSizes::kBudget;
  std::vector<Kind> kinds_;           // the largest first
  std::vector<int> most_of_largest_;  // [n]: CPUs of the n largest nodes outside `must`
};

}  // namespace numalign
