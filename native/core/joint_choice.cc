#include "core/joint_choice.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "core/hint_facts.h"

namespace numalign {
namespace {

// Finds the best of the masks that it considers, which come in ascending order.
class Contest {
 public:
  explicit Contest(const JointOptions& options) : options_(options) {}

  void consider(uint64_t mask) {
    const int size = count_ones(mask);
    if (best_ != 0 && size > size_) return;
    const uint64_t distance = distance_of(mask);
    const uint64_t devices = sum_over(mask, options_.devices);
    const uint64_t room = sum_over(mask, options_.rooms);
    // More devices are better.
    const auto key = [](auto size, auto distance, auto devices, auto room) {
      return std::tuple(size, distance, ~devices, room);
    };
    const bool is_first = best_ == 0;
    if (is_first || size < size_) sets_ = nearest_ = tightest_ = 0;
    const bool is_nearer = is_first || std::tie(size, distance) < std::tie(size_, distance_);
    if (is_nearer) nearest_ = tightest_ = 0;
    const bool is_better =
        is_first || key(size, distance, devices, room) < key(size_, distance_, devices_, room_);
    if (is_better) {
      best_ = mask;
      std::tie(size_, distance_, devices_, room_) = std::tie(size, distance, devices, room);
      tightest_ = 0;
    }
    sets_++;
    if (distance == distance_) nearest_++;
    if (distance == distance_ && devices == devices_ && room == room_) tightest_++;
  }

  bool is_empty() const { return best_ == 0; }
  JointChoice choice(bool preferred) const {
    JointChoice choice{.sets = sets_, .nearest = nearest_, .tightest = tightest_};
    choice.merged.mask = NodeMask(best_);
    choice.merged.preferred = preferred;
    choice.merged.admitted = true;
    return choice;
  }

 private:
  uint64_t distance_of(uint64_t mask) const {
    const std::span<const uint32_t> distances = options_.merge.distances;
    uint64_t sum = 0;
    if (distances.empty()) return sum;
    const size_t nodes = static_cast<size_t>(options_.merge.nodes);
    for_each_node(mask, [&](int a) {
      for_each_node(mask, [&](int b) {
        if (a != b) sum += distances[static_cast<size_t>(a) * nodes + static_cast<size_t>(b)];
      });
    });
    return sum;
  }

  static uint64_t sum_over(uint64_t mask, std::span<const uint32_t> by_node) {
    uint64_t sum = 0;
    if (by_node.empty()) return sum;
    for_each_node(mask, [&](int node) { sum += by_node[static_cast<size_t>(node)]; });
    return sum;
  }

  const JointOptions& options_;
  uint64_t best_ = 0;
  int size_ = 0;
  uint64_t distance_ = 0;
  uint64_t devices_ = 0;
  uint64_t room_ = 0;
  uint32_t sets_ = 0;
  uint32_t nearest_ = 0;
  uint32_t tightest_ = 0;
};

bool admits_all(TopologyPolicy policy) {
  return policy == TopologyPolicy::kBestEffort || policy == TopologyPolicy::kNone;
}

// Adds to each mask all of its supersets.
void add_supersets(SmallWords& bits, int nodes) {
  // The positions of the masks that contain a node.
  constexpr uint64_t kWith[] = {0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc, 0xf0f0f0f0f0f0f0f0,
                                0xff00ff00ff00ff00, 0xffff0000ffff0000, 0xffffffff00000000};
  for (int node = 0; node < std::min(nodes, 6); node++) {
    for (uint64_t& word : bits) word |= (word & ~kWith[node]) << (1 << node);
  }
  for (int node = 6; node < nodes; node++) {
    const size_t step = size_t{1} << (node - 6);
    for (size_t i = 0; i < bits.size(); i++) {
      if ((i & step) != 0) bits[i] |= bits[i ^ step];
    }
  }
}

// ---- Few nodes: every mask

class EveryMask {
 public:
  EveryMask(std::span<const HintFamily> families, const JointOptions& options)
      : families_(families), options_(options), words_(HintBits::bit_words(options.merge.nodes)) {
    made_.reserve(families.size());
    for (const HintFamily& family : families) {
      auto* bits = std::get_if<HintBits>(&family.masks);
      bits_.push_back(bits ? bits : &made_.emplace_back(to_bits(family)));
    }
  }

  // Masks that every family prefers or does not care about.
  Contest preferred() const {
    SmallWords common(words_, ~uint64_t{0});
    SmallWords any(words_);
    for (size_t f = 0; f < families_.size(); f++) {
      for (size_t i = 0; i < words_; i++) {
        if (!families_[f].any_preferred) common[i] &= bits_[f]->preferred[i];
        any[i] |= bits_[f]->preferred[i];
      }
    }
    for (size_t i = 0; i < words_; i++) common[i] &= any[i];
    return among(common);
  }

  // Masks that contain a mask of every family that must be met.
  Contest covering() const {
    SmallWords common(words_, ~uint64_t{0});
    for (size_t f = 0; f < families_.size(); f++) {
      if (may_abstain(families_[f])) continue;
      SmallWords covered = bits_[f]->offered;
      add_supersets(covered, options_.merge.nodes);
      for (size_t i = 0; i < words_; i++) common[i] &= covered[i];
    }
    return among(common);
  }

 private:
  Contest among(const SmallWords& masks) const {
    const bool is_single = options_.merge.policy == TopologyPolicy::kSingleNumaNode;
    const uint64_t outside = ~options_.within.bits();
    Contest contest(options_);
    for_each_mask(masks, [&](uint64_t mask) {
      if (mask == 0 || mask > all_nodes(options_.merge.nodes) || (mask & outside) != 0) return;
      if (!is_single || count_ones(mask) == 1) contest.consider(mask);
    });
    return contest;
  }

  std::span<const HintFamily> families_;
  const JointOptions& options_;
  size_t words_;
  std::vector<const HintBits*> bits_;
  std::vector<HintBits> made_;
};

// ---- Many nodes: single nodes, and the results of the merge

Contest preferred_nodes(std::span<const HintFamily> families, const JointOptions& options) {
  Contest contest(options);
  for_each_node(options.within.bits() & all_nodes(options.merge.nodes), [&](int node) {
    const NodeMask mask(uint64_t{1} << node);
    const bool by_all = std::ranges::all_of(
        families, [&](const HintFamily& family) { return family.any_preferred || family.prefers(mask); });
    const bool by_one =
        std::ranges::any_of(families, [&](const HintFamily& family) { return family.prefers(mask); });
    if (by_all && by_one) contest.consider(mask.bits());
  });
  return contest;
}

// The part of a family within some nodes.
HintFamily within(HintFamily family, NodeMask nodes) {
  const auto is_outside = [&](const ListedHint& hint) { return (hint.mask.bits() & ~nodes.bits()) != 0; };
  if (auto* list = std::get_if<HintList>(&family.masks)) {
    std::erase_if(*list, is_outside);
    return family;
  }
  if (!std::holds_alternative<LinearHints>(family.masks)) return family;
  LinearHints linear = std::move(std::get<LinearHints>(family.masks));
  std::erase_if(linear.listed, is_outside);
  // Without a required node, nothing is offered.
  const bool has_all = (linear.must.bits() & ~nodes.bits()) == 0;
  linear.domain = NodeMask(has_all ? linear.domain.bits() & nodes.bits() : 0);
  if (!has_all) linear.must = NodeMask();
  for (Need& need : linear.needs) {
    for (size_t node = 0; node < need.free.size(); node++) {
      if (!linear.domain.contains(static_cast<int>(node))) need.free[node] = 0;
    }
  }
  HintFamily narrowed = family_of(std::move(linear), family.nodes, 0);
  narrowed.approximate = family.approximate;
  return narrowed;
}

// The policy none merges no hints.
MergeOptions merge_options(const JointOptions& options) {
  MergeOptions merge = options.merge;
  if (merge.policy == TopologyPolicy::kNone) merge.policy = TopologyPolicy::kBestEffort;
  return merge;
}

JointChoice by_merge_within(std::span<const HintFamily> families, const JointOptions& options) {
  std::vector<HintFamily> narrowed;
  for (const HintFamily& family : families) narrowed.push_back(within(family, options.within));
  JointChoice choice{.merged = merge_hints(narrowed, merge_options(options))};
  const bool is_lost =
      std::ranges::any_of(narrowed, is_impossible) && std::ranges::none_of(families, is_impossible);
  if (is_lost || (choice.merged.mask.bits() & ~options.within.bits()) != 0) choice.merged.admitted = false;
  return choice;
}

}  // namespace

JointChoice choose_jointly(std::span<const HintFamily> families, const JointOptions& options) {
  const int nodes = options.merge.nodes;
  assert(nodes >= 1 && nodes <= NodeMask::kBits && options.rooms.size() == static_cast<size_t>(nodes));
  const bool is_large = nodes > options.merge.enumerated;
  // If any nodes will do, there is nothing to choose.
  const bool is_any = nodes == 1 || std::ranges::none_of(families, has_masks);
  if (is_any) return {.merged = merge_hints(families, merge_options(options))};
  std::optional<EveryMask> every;
  if (!is_large) every.emplace(families, options);
  if (std::ranges::none_of(families, is_impossible)) {
    const Contest preferred = every ? every->preferred() : preferred_nodes(families, options);
    if (!preferred.is_empty()) return preferred.choice(true);
  }
  if (is_large) return by_merge_within(families, options);
  const bool admits_any = admits_all(options.merge.policy);
  if (std::ranges::all_of(families,
                          [&](const HintFamily& f) { return admits_any ? may_abstain(f) : f.any_preferred; }))
    return {.merged = merge_hints(families, merge_options(options))};
  const Contest covering = admits_any ? every->covering() : Contest(options);
  if (!covering.is_empty()) return covering.choice(false);
  JointChoice none;
  none.merged.mask = NodeMask(all_nodes(nodes));
  return none;
}

}  // namespace numalign
