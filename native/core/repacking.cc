#include "core/repacking.h"

#include <algorithm>
#include <span>
#include <tuple>

namespace numalign {
namespace {

constexpr size_t kExactMoves = 2;

// Grants that move, some of them with their memory.
struct Choice {
  double bytes = 0;
  int cpus = 0;
  std::vector<size_t> grants;
  // By grant.
  std::vector<bool> keeps_memory;

  friend bool operator<(const Choice& a, const Choice& b) {
    return std::tie(a.bytes, a.cpus, a.grants, a.keeps_memory) <
           std::tie(b.bytes, b.cpus, b.grants, b.keeps_memory);
  }
};

class Search {
 public:
  Search(const RepackingProblem& problem, const RepackingOptions& options)
      : problem_(problem), options_(options), steps_(options.budget) {}

  Repackings run() {
    RepackingRoom room(problem_.ground);
    std::vector<size_t> grants;
    choose(room, 0, grants);
    std::sort(choices_.begin(), choices_.end());
    steps_ = options_.budget;
    for (const Choice& choice : choices_) {
      if (is_full()) break;
      try_orders(room, choice);
    }
    found_.is_complete = !is_full();
    return std::move(found_);
  }

 private:
  bool is_full() const { return found_.proposals.size() > options_.most; }

  bool may_step() {
    if (options_.moves <= kExactMoves) return true;
    if (steps_ > 0) return steps_-- > 0;
    found_.is_bounded = true;
    return false;
  }

  // Whether the request has room for the demands from one on.
  bool admits(const RepackingRoom& room, size_t from = 0) const {
    if (from == problem_.request.size()) return true;
    const RequestDemand& each = problem_.request[from];
    bool is_last = from + 1 == problem_.request.size();
    for (const RequestDemand::Place& place : each.places) {
      if (!room.fits(each.demand, place.cpus, place.memory)) continue;
      if (is_last) return true;
      if (!each.stays) return admits(room, from + 1);
      RepackingRoom left = room;
      left.take(each.demand, place.cpus, place.memory);
      if (admits(left, from + 1)) return true;
    }
    return false;
  }

  static bool has_target(const MovableGrant& grant, bool keeps_memory) {
    return std::ranges::any_of(grant.targets, [&](const auto& each) { return each.keeps_memory == keeps_memory; });
  }

  // Grants without which there would be room.
  void choose(const RepackingRoom& room, size_t from, std::vector<size_t>& grants) {
    if (grants.size() == options_.moves) {
      if (admits(room)) add_choices(grants);
      return;
    }
    size_t more = options_.moves - grants.size();
    for (size_t i = from; i + more <= problem_.grants.size(); i++) {
      const MovableGrant& grant = problem_.grants[i];
      if (grant.targets.empty()) continue;
      if (!may_step()) return;
      RepackingRoom left = room;
      left.give_back(grant.holding, has_target(grant, false));
      grants.push_back(i);
      choose(left, i + 1, grants);
      grants.pop_back();
    }
  }

  // With the memory of each, or without.
  void add_choices(const std::vector<size_t>& grants) {
    std::vector<Choice> all(1);
    for (size_t i : grants) {
      const MovableGrant& grant = problem_.grants[i];
      std::vector<Choice> next;
      for (bool keeps_memory : {true, false}) {
        if (!has_target(grant, keeps_memory)) continue;
        for (Choice choice : all) {
          choice.bytes += keeps_memory ? 0 : grant.bytes;
          choice.cpus += grant.cpus;
          choice.grants.push_back(i);
          choice.keeps_memory.push_back(keeps_memory);
          next.push_back(std::move(choice));
        }
      }
      all = std::move(next);
    }
    choices_.insert(choices_.end(), all.begin(), all.end());
  }

  void try_orders(const RepackingRoom& room, const Choice& choice) {
    std::vector<size_t> order(choice.grants.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    do {
      std::vector<RepackingMove> moves;
      move_next(room, choice, order, moves);
    } while (!is_full() && std::ranges::next_permutation(order).found);
  }

  void move_next(const RepackingRoom& room, const Choice& choice, std::span<const size_t> order,
                 std::vector<RepackingMove>& moves) {
    if (order.empty()) {
      if (seen_++ >= options_.skip) found_.proposals.push_back(moves);
      return;
    }
    size_t index = choice.grants[order.front()];
    bool keeps_memory = choice.keeps_memory[order.front()];
    const MovableGrant& grant = problem_.grants[index];
    for (size_t i = 0; i < grant.targets.size() && !is_full(); i++) {
      const MovableGrant::Target& target = grant.targets[i];
      if (target.keeps_memory != keeps_memory) continue;
      if (!may_step()) return;
      NodeMask memory = keeps_memory ? NodeMask() : target.nodes;
      if (!room.fits(grant.demand, target.nodes, memory)) continue;
      RepackingRoom next = room;
      next.take(grant.demand, target.nodes, memory);
      next.give_back(grant.holding, !keeps_memory);
      if (!may_admit(next, choice, order.subspan(1))) continue;
      moves.push_back({index, i});
      move_next(next, choice, order.subspan(1), moves);
      moves.pop_back();
    }
  }

  // Whether there would be room without those that have not moved yet.
  bool may_admit(const RepackingRoom& room, const Choice& choice, std::span<const size_t> others) const {
    if (others.empty()) return admits(room);
    RepackingRoom left = room;
    for (size_t i : others) {
      left.give_back(problem_.grants[choice.grants[i]].holding, !choice.keeps_memory[i]);
    }
    return admits(left);
  }

  const RepackingProblem& problem_;
  const RepackingOptions& options_;
  uint64_t steps_;
  std::vector<Choice> choices_;
  size_t seen_ = 0;
  Repackings found_;
};

}  // namespace

Repackings find_repackings(const RepackingProblem& problem, const RepackingOptions& options) {
  Repackings found = Search(problem, options).run();
  if (found.proposals.size() > options.most) found.proposals.resize(options.most);
  return found;
}

}  // namespace numalign
