#include "core/hint_listing.h"

#include <algorithm>
#include <functional>

namespace numalign {
namespace {

// REQUIRES: masks of one size.
bool comes_before(NodeMask a, NodeMask b) {
  uint64_t differ = a.bits() ^ b.bits();
  return (a.bits() & (differ & -differ)) != 0;
}

// The most that some of the last nodes of a list can have together.
class MostOf {
 public:
  // `amounts`: by place in the list. `musts`: nodes that are always taken.
  MostOf(const std::vector<double>& amounts, const std::vector<bool>& musts) {
    std::vector<double> others;  // descending
    std::vector<std::vector<double>> from_last{{0}};
    double must_sum = 0;
    for (size_t place = amounts.size(); place-- > 0;) {
      if (musts[place]) {
        must_sum += amounts[place];
      } else {
        others.insert(std::ranges::upper_bound(others, amounts[place], std::greater<>()), amounts[place]);
      }
      std::vector<double> sums{must_sum};
      for (double amount : others) sums.push_back(sums.back() + amount);
      from_last.push_back(std::move(sums));
    }
    most_.assign(from_last.rbegin(), from_last.rend());
  }

  // The sum over the nodes from `place` on: all musts, and `others` more.
  double from(size_t place, size_t others) const { return most_[place][others]; }

 private:
  std::vector<std::vector<double>> most_;
};

// Amounts that every mask must have.
struct Row {
  std::vector<double> amounts;  // by place
  MostOf most;
};

class Lister {
 public:
  Lister(const HintFamily& family, NodeMask after, size_t limit, uint64_t steps)
      : family_(family), after_(after), limit_(limit), steps_(steps) {
    if (auto* linear = std::get_if<LinearHints>(&family.masks)) {
      add_nodes(linear->domain.bits(), linear->must.bits());
      add_rows(*linear);
    } else {
      add_nodes(all_nodes(family.nodes), 0);
    }
    missing_.assign(nodes_.size() + 1, requests_);
  }

  HintListing run() {
    for (int size = std::max(after_.size(), 1); size <= family_.nodes && result_.is_whole; size++) {
      bool is_resumed = size == after_.size();
      begin_size(size, is_resumed);
      descend(0, static_cast<size_t>(size), 0, is_resumed);
      while (result_.is_whole && next_ < listed_.size()) add(listed_[next_++]);
    }
    return std::move(result_);
  }

 private:
  void add_nodes(uint64_t domain, uint64_t must) {
    domain_ = domain;
    for_each_node(domain, [&](int node) {
      nodes_.push_back(node);
      musts_.push_back((must >> node & 1) != 0);
    });
    musts_from_.assign(nodes_.size() + 1, 0);
    for (size_t place = nodes_.size(); place-- > 0;) {
      musts_from_[place] = musts_from_[place + 1] + (musts_[place] ? 1 : 0);
    }
  }

  void add_row(std::vector<double> amounts, double request) {
    MostOf most(amounts, musts_);
    rows_.push_back({std::move(amounts), std::move(most)});
    requests_.push_back(request);
  }

  void add_rows(const LinearHints& linear) {
    std::vector<double> shares(nodes_.size(), 0);
    for (const Need& need : linear.needs) {
      auto request = static_cast<double>(need.request);
      std::vector<double> amounts;
      for (size_t place = 0; place < nodes_.size(); place++) {
        amounts.push_back(static_cast<double>(need.free[static_cast<size_t>(nodes_[place])]));
        shares[place] += std::min(1.0, amounts.back() / request);
      }
      add_row(std::move(amounts), request);
    }
    // A row for all needs together, in parts of each request. It follows from the other rows, and
    // shows early that not all needs can be met. Rounding must not refuse too much.
    auto needs = static_cast<double>(linear.needs.size());
    if (linear.needs.size() > 1) add_row(std::move(shares), needs * (1 - 1e-9));
  }

  // Listed masks are hints whatever the amounts say.
  void begin_size(int size, bool is_resumed) {
    listed_.clear();
    next_ = 0;
    auto* linear = std::get_if<LinearHints>(&family_.masks);
    if (!linear) return;
    for (const ListedHint& hint : linear->listed) {
      if (hint.mask.size() == size && (!is_resumed || comes_before(after_, hint.mask)))
        listed_.push_back(hint);
    }
    std::ranges::sort(listed_, [](const auto& a, const auto& b) { return comes_before(a.mask, b.mask); });
  }

  void add(const ListedHint& hint) {
    if (result_.hints.size() == limit_) {
      result_.is_whole = false;
    } else {
      result_.hints.push_back(hint);
    }
  }

  // Adds a mask that the amounts or the bits offer, and all listed masks before it.
  void offer(NodeMask mask) {
    while (next_ < listed_.size() && comes_before(listed_[next_].mask, mask)) {
      add(listed_[next_++]);
      if (!result_.is_whole) return;
    }
    if (next_ < listed_.size() && listed_[next_].mask == mask) {
      add(listed_[next_++]);
    } else {
      add({mask, family_.prefers(mask)});
    }
  }

  bool can_have(size_t place, size_t left, const std::vector<double>& missing) const {
    size_t musts = musts_from_[place];
    if (musts > left || left > nodes_.size() - place) return false;
    for (size_t row = 0; row < rows_.size(); row++) {
      if (missing[row] > rows_[row].most.from(place, left - musts)) return false;
    }
    return true;
  }

  // Chooses `left` more of the nodes from `place` on. `is_resumed`: so far the choice equals that
  // of `after_`.
  void descend(size_t place, size_t left, uint64_t chosen, bool is_resumed, size_t depth = 0) {
    if (!result_.is_whole) return;
    if (!rows_.empty() && steps_-- == 0) {
      steps_ = 0;
      result_.is_whole = false;
      return;
    }
    if (!can_have(place, left, missing_[depth])) return;
    if (left == 0) {
      NodeMask mask(chosen);
      if (!is_resumed && (!rows_.empty() || family_.offers(mask))) offer(mask);
      return;
    }
    // A mask without a node of `after_` comes after it. That node may belong to a listed mask that
    // the amounts do not reach.
    if ((after_.bits() & ~domain_ & all_nodes(nodes_[place])) != 0) is_resumed = false;
    bool has_after = is_resumed && after_.contains(nodes_[place]);
    // A mask with a node that `after_` lacks comes before it.
    if (!is_resumed || has_after) {
      for (size_t row = 0; row < rows_.size(); row++) {
        missing_[depth + 1][row] = missing_[depth][row] - rows_[row].amounts[place];
      }
      descend(place + 1, left - 1, chosen | uint64_t{1} << nodes_[place], has_after, depth + 1);
    }
    if (!musts_[place]) descend(place + 1, left, chosen, is_resumed && !has_after, depth);
  }

  const HintFamily& family_;
  NodeMask after_;
  size_t limit_;
  uint64_t steps_;
  uint64_t domain_ = 0;
  std::vector<int> nodes_;                    // that may be in a mask, ascending; a place is an index into it
  std::vector<bool> musts_;                   // by place
  std::vector<size_t> musts_from_;            // the number of musts from a place on
  std::vector<Row> rows_;                     // none for bits
  std::vector<double> requests_;              // by row
  std::vector<std::vector<double>> missing_;  // by number of chosen nodes, by row
  HintList listed_;                           // of the current size
  size_t next_ = 0;
  HintListing result_;
};

}  // namespace

HintListing list_hints(const HintFamily& family, NodeMask after, size_t limit, uint64_t steps) {
  if (auto* list = std::get_if<HintList>(&family.masks)) return {*list, true};
  return Lister(family, after, limit, steps).run();
}

HintFamily without_preferred(HintFamily family, std::span<const NodeMask> masks) {
  for (NodeMask mask : masks) {
    if (!family.prefers(mask)) continue;
    if (auto* bits = std::get_if<HintBits>(&family.masks)) {
      bits->preferred[mask.bits() / 64] &= ~(uint64_t{1} << (mask.bits() % 64));
    } else if (auto* list = std::get_if<HintList>(&family.masks)) {
      for (ListedHint& hint : *list) hint.preferred = hint.preferred && hint.mask != mask;
    } else {
      HintList& listed = std::get<LinearHints>(family.masks).listed;
      auto at = std::ranges::lower_bound(listed, mask.bits(), {},
                                         [](const ListedHint& h) { return h.mask.bits(); });
      if (at == listed.end() || at->mask != mask) at = listed.insert(at, {mask, true});
      at->preferred = false;
    }
  }
  return family;
}

}  // namespace numalign
