#include "core/subset_search.h"

#include <algorithm>
#include <numeric>

namespace numalign {
namespace {

// sums[i][k]: what leaving out the k cheapest of the first i nodes costs.
std::vector<std::vector<double>> prefix_sums(const std::vector<double>& costs) {
  std::vector<std::vector<double>> sums(costs.size() + 1);
  std::vector<double> sorted;
  for (size_t i = 0; i <= costs.size(); i++) {
    sums[i].reserve(i + 1);
    sums[i].push_back(0);
    for (double cost : sorted) sums[i].push_back(sums[i].back() + cost);
    if (i < costs.size()) sorted.insert(std::ranges::upper_bound(sorted, costs[i]), costs[i]);
  }
  return sums;
}

// Rows of a party that are combined with each other, two by two.
constexpr size_t kMostMixedRows = 4;

SubsetSearch::Row mixed(const SubsetSearch::Row& a, const SubsetSearch::Row& b, double tilt) {
  double weight_a = tilt / (a.slack + 1);
  double weight_b = 1 / (b.slack + 1);
  // Rounding must not exclude what is possible.
  SubsetSearch::Row row{{}, (weight_a * a.slack + weight_b * b.slack) * (1 + 1e-9) + 1e-9};
  for (size_t i = 0; i < a.costs.size(); i++) {
    double cost = weight_a * a.costs[i] + weight_b * b.costs[i];
    row.costs.push_back(std::min(cost, SubsetSearch::kNever));
  }
  return row;
}

// What is possible for each need alone may be impossible for two together: weighted sums of two rows see some
// of it.
void add_mixed_rows(SubsetSearch::Party& party) {
  size_t n = std::min(party.size(), kMostMixedRows);
  for (size_t a = 0; a < n; a++) {
    for (size_t b = a + 1; b < n; b++) {
      for (double tilt : {0.5, 1.0, 2.0}) party.push_back(mixed(party[a], party[b], tilt));
    }
  }
}

}  // namespace

SubsetSearch::Row SubsetSearch::row_of(const Need& need, NodeMask must, std::span<const int> nodes,
                                       uint64_t has) {
  Row row{{}, static_cast<double>(has) - static_cast<double>(need.request)};
  for (int node : nodes) {
    row.costs.push_back(must.contains(node) ? kNever : static_cast<double>(need.free[node]));
  }
  return row;
}

SubsetSearch::SubsetSearch(std::vector<int> nodes, std::span<const Party> parties, int& budget,
                           BestMasks& best)
    : nodes_(std::move(nodes)), budget_(budget), best_(best) {
  for (const Party& party : parties) add_party(party);
  for (const Row& row : rows_) cheapest_.push_back(prefix_sums(row.costs));
  for (size_t i = 0; i < nodes_.size(); i++) {
    lowest_.push_back(lowest_.back() | uint64_t{1} << nodes_[i]);
    by_cost_.push_back(parties_by_cost(i));
    preceding_.push_back(preceding(i));
  }
  budget_ -= static_cast<int>(rows_.size() * nodes_.size() * nodes_.size() / 16);
}

void SubsetSearch::add_party(const Party& given) {
  Party party;
  for (const Row& row : given) {
    if (std::ranges::find(party, row) == party.end()) party.push_back(row);
  }
  add_mixed_rows(party);
  int twin = -1;
  for (size_t p = 0; p < parties_.size(); p++) {
    std::span<const Row> rows(rows_.begin() + parties_[p].first, rows_.begin() + parties_[p].last);
    if (std::ranges::equal(rows, party)) twin = static_cast<int>(p);
  }
  twins_.push_back(twin);
  parties_.push_back({rows_.size(), rows_.size() + party.size()});
  rows_.insert(rows_.end(), party.begin(), party.end());
}

// The party that the node takes the least part of first.
std::vector<size_t> SubsetSearch::parties_by_cost(size_t node) const {
  std::vector<double> parts;
  for (const Span& party : parties_) {
    double part = 0;
    for (size_t r = party.first; r < party.last; r++) {
      part = std::max(part, rows_[r].costs[node] / (rows_[r].slack + 1));
    }
    parts.push_back(part);
  }
  std::vector<size_t> order(parties_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t p) { return parts[p]; });
  return order;
}

bool SubsetSearch::costs_nothing(size_t party, size_t node) const {
  for (size_t r = parties_[party].first; r < parties_[party].last; r++) {
    if (rows_[r].costs[node] != 0) return false;
  }
  return true;
}

// Lower nodes that could stay in place of this one: a subset without them is not the lowest.
uint64_t SubsetSearch::preceding(size_t node) const {
  for (size_t p = 0; p < parties_.size(); p++) {
    if (costs_nothing(p, node)) return lowest_[node];
  }
  uint64_t mask = 0;
  for (size_t other = 0; other < node; other++) {
    bool is_as_cheap =
        std::ranges::all_of(rows_, [&](const Row& row) { return row.costs[node] <= row.costs[other]; });
    if (is_as_cheap) mask |= uint64_t{1} << nodes_[other];
  }
  return mask;
}

void SubsetSearch::run(int size, const Accept& accept) {
  size_ = size;
  accept_ = &accept;
  kept_ = 0;
  required_ = 0;
  kept_distance_ = 0;
  depth_ = 0;
  int count = static_cast<int>(nodes_.size());
  if (size > count) return;
  slack_.resize(rows_.size() * (nodes_.size() - static_cast<size_t>(size) + 1));
  for (size_t r = 0; r < rows_.size(); r++) {
    slack_[r] = rows_[r].slack;
    if (slack_[r] < 0) return;  // not even all nodes meet it
  }
  descend(count, count - size);
}

// Whether `out` of the first `left` nodes could still be left out, as far as can be said quickly.
bool SubsetSearch::can_leave_out(int left, int out, const double* slack) const {
  if (parties_.size() == 1) {
    for (size_t r = 0; r < rows_.size(); r++) {
      if (cheapest_[r][left][out] > slack[r]) return false;
    }
    return true;
  }
  int most = 0;
  for (const Span& party : parties_) {
    int of_party = left;
    for (size_t r = party.first; r < party.last; r++) {
      const std::vector<double>& sums = cheapest_[r][left];
      int of_row = static_cast<int>(std::ranges::upper_bound(sums, slack[r]) - sums.begin()) - 1;
      of_party = std::min(of_party, of_row);
    }
    most += of_party;
  }
  return most >= out;
}

// The least distance that any completion can have.
uint64_t SubsetSearch::least_distance(int left, int missing) const {
  std::vector<uint64_t> added;
  for (int i = 0; i < left; i++) {
    uint64_t sum = best_.between(nodes_[i], nodes_[i]);
    for_each_node(kept_,
                  [&](int kept) { sum += best_.between(nodes_[i], kept) + best_.between(kept, nodes_[i]); });
    added.push_back(sum);
  }
  std::ranges::sort(added);
  return std::accumulate(added.begin(), added.begin() + missing, kept_distance_);
}

// Whether no completion can be better than what was found.
bool SubsetSearch::is_beaten(int left, int out) {
  if (best_.of_size(size_) == 0) return false;
  if (!best_.by_distance()) return (kept_ | lowest_[left - out]) >= best_.of_size(size_);
  budget_ -= left * (std::popcount(kept_) + 4) / 16;
  // Of masks as close, a lower one may still come.
  return least_distance(left, left - out) > best_.distance_of_size(size_);
}

// Decides node left-1: left out first, so that lower masks come earlier. Answers whether to go on.
bool SubsetSearch::descend(int left, int out) {
  if (out == 0) {
    complete(left);
    return true;
  }
  if (--budget_ < 0) return false;
  if (out > left - std::popcount(required_ & lowest_[left]) || is_beaten(left, out)) return true;
  if (!can_leave_out(left, out, &slack_[depth_ * rows_.size()])) return true;
  if (!leave_out(left - 1, out)) return false;
  if (out == left) return true;  // nothing can be kept any more
  return keep(left - 1, out);
}

// Whether the twin of a party has as much left as it, so that either may leave a node out.
bool SubsetSearch::has_as_much_left(size_t party, const double* slack) const {
  const Span& rows = parties_[party];
  const Span& twin = parties_[static_cast<size_t>(twins_[party])];
  return std::equal(slack + rows.first, slack + rows.last, slack + twin.first);
}

bool SubsetSearch::leave_out(int node, int out) {
  if ((required_ >> nodes_[node] & 1) != 0) return true;
  for (size_t p : by_cost_[node]) {
    const double* slack = &slack_[depth_ * rows_.size()];
    if (twins_[p] >= 0 && has_as_much_left(p, slack)) continue;
    double* rest = &slack_[(depth_ + 1) * rows_.size()];
    std::copy(slack, slack + rows_.size(), rest);
    bool is_overdrawn = false;
    for (size_t r = parties_[p].first; r < parties_[p].last; r++) {
      rest[r] -= rows_[r].costs[node];
      is_overdrawn |= rest[r] < 0;
    }
    if (is_overdrawn) continue;
    depth_++;
    bool goes_on = descend(node, out - 1);
    depth_--;
    // What costs nothing need not be tried elsewhere.
    if (!goes_on || costs_nothing(p, static_cast<size_t>(node))) return goes_on;
  }
  return true;
}

bool SubsetSearch::keep(int node, int out) {
  uint64_t distance_before = kept_distance_;
  uint64_t required_before = required_;
  int id = nodes_[node];
  if (best_.by_distance()) {
    kept_distance_ += best_.between(id, id);
    for_each_node(kept_,
                  [&](int other) { kept_distance_ += best_.between(id, other) + best_.between(other, id); });
  } else if (!*accept_) {
    required_ |= preceding_[node];
  }
  kept_ |= uint64_t{1} << id;
  bool goes_on = descend(node, out);
  kept_ &= ~(uint64_t{1} << id);
  required_ = required_before;
  kept_distance_ = distance_before;
  return goes_on;
}

void SubsetSearch::complete(int left) {
  uint64_t mask = kept_ | lowest_[left];
  if (*accept_ && !(*accept_)(mask)) return;
  if (best_.by_distance()) budget_ -= size_ * size_ / 16;
  best_.consider(mask);
}

}  // namespace numalign
