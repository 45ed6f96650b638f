// SubsetSearch: the best sets of NUMA nodes of a given size that meet several needs at once, for
// machines with too many nodes to enumerate. Exact within a budget of steps. One thread uses one
// object.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/hint_family.h"

namespace numalign {

// The best mask of each size among those considered: the closest if distances count, then the
// lowest binary value.
class BestMasks {
 public:
  // `distances`: nodes x nodes, or empty.
  BestMasks(std::span<const uint32_t> distances, int nodes) : distances_(distances), nodes_(nodes) {
    std::fill_n(masks_.begin(), nodes + 1, 0);
  }

  bool by_distance() const { return !distances_.empty(); }
  uint64_t between(int a, int b) const { return distances_[a * nodes_ + b]; }

  // The sum over all pairs, both ways and with itself. It orders masks of one size like their mean
  // distance.
  uint64_t distance(uint64_t mask) const {
    uint64_t sum = 0;
    if (!by_distance()) return sum;
    for_each_node(mask, [&](int a) { for_each_node(mask, [&](int b) { sum += between(a, b); }); });
    return sum;
  }

  void consider(uint64_t mask) {
    int size = count_ones(mask);
    uint64_t sum = distance(mask);
    if (masks_[size] != 0) {
      if (sum != distances_of_[size] ? sum > distances_of_[size] : mask >= masks_[size]) return;
    }
    masks_[size] = mask;
    distances_of_[size] = sum;
  }

  // 0 if no mask of that size was considered.
  uint64_t of_size(int size) const { return masks_[size]; }
  uint64_t distance_of_size(int size) const { return distances_of_[size]; }
  uint64_t narrowest() const {
    for (int size = 0; size <= nodes_; size++) {
      if (masks_[size] != 0) return masks_[size];
    }
    return 0;
  }

 private:
  std::span<const uint32_t> distances_;
  int nodes_;
  // By size, up to that of the machine.
  std::array<uint64_t, NodeMask::kBits + 1> masks_;
  std::array<uint64_t, NodeMask::kBits + 1> distances_of_;  // of the masks that exist
};

// Looks for the best subset of a fixed size. Decides which nodes to leave out, from the highest
// node down. One of several parties (a resource whose mask lacks the node) leaves it out, at a cost
// in each row of the party (the node's free amount for a need). No row may be overdrawn.
class SubsetSearch {
 public:
  struct Row {
    std::vector<double> costs;  // by position in `nodes`; kNever: this row cannot leave the node out
    double slack;

    friend bool operator==(const Row&, const Row&) = default;
  };
  using Party = std::vector<Row>;
  static constexpr double kNever = 1e300;

  // The row of a party that must keep `must` and meet a need with the remaining nodes. `has`: the
  // amount at the start.
  static Row row_of(const Need& need, NodeMask must, std::span<const int> nodes, uint64_t has);

  // REQUIRES: `nodes` ascending. `budget` is decremented, and below 0 after it ran out; a step
  // takes about 50 ns.
  SubsetSearch(std::vector<int> nodes, std::span<const Party> parties, int& budget, BestMasks& best);

  // Shows `best` the best subset of this size that `accept` allows. Without `accept` all are
  // allowed, which is faster.
  using Accept = std::function<bool(uint64_t)>;
  void run(int size, const Accept& accept = {});

 private:
  // [left][k] of a row: the cost of leaving out the k cheapest of the first `left` nodes.
  class CheapestSums {
   public:
    explicit CheapestSums(const std::vector<double>& costs);
    double cost(int left, int out) const { return row(left)[out]; }
    // How many of the first `left` nodes can be left out for `slack`.
    int most(int left, double slack) const;

   private:
    const double* row(int left) const { return &sums_[static_cast<size_t>(left * (left + 1) / 2)]; }
    std::vector<double> sums_;
  };

  // Parties with equal rows are twins. They share the rows, but each has its own slack.
  struct PartyRows {
    size_t first;
    size_t last;   // one beyond
    size_t slack;  // the position of the slack of `first`
    int twin;      // the last earlier party with the same rows, or -1
  };

  void add_party(const Party& party);
  std::vector<size_t> parties_by_cost(size_t node) const;
  uint64_t preceding(size_t node) const;
  bool costs_nothing(const PartyRows& party, size_t node) const;
  bool can_leave_out(int left, int out) const;
  uint64_t least_distance(int left, int missing) const;
  bool is_beaten(int left, int out);
  bool can_stand_in(const PartyRows& party) const;
  bool pay(const PartyRows& party, size_t node);
  bool descend(int left, int out);
  bool leave_out(int node, int out);
  bool keep(int node, int out);
  void complete(int left);

  std::vector<int> nodes_;
  std::vector<Row> rows_;
  std::vector<CheapestSums> cheapest_;  // by row
  std::vector<PartyRows> parties_;
  std::vector<uint64_t> lowest_{0};           // [k]: the mask of the first k nodes
  std::vector<std::vector<size_t>> by_cost_;  // by position: parties
  std::vector<uint64_t> preceding_;  // by position: nodes that the best subset has if it has this one
  int& budget_;
  int step_ = 1;  // the cost of a step
  BestMasks& best_;
  int size_ = 0;
  const Accept* accept_ = nullptr;
  std::vector<double> slacks_;  // of all parties, repeated after each node that is left out
  size_t slacks_width_ = 0;
  size_t slacks_now_ = 0;
  uint64_t kept_ = 0;
  uint64_t required_ = 0;  // by the kept nodes
  uint64_t kept_distance_ = 0;
};

}  // namespace numalign
