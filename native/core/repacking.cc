#include "core/repacking.h"

#include <algorithm>
#include <span>
#include <tuple>

namespace numalign {
namespace {

constexpr size_t kExactMoves = 2;
// The most grants to combine in sets of several: those that cost the least.
constexpr size_t kMostInSets = 256;

// A set of grants that move, some of them with their memory.
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
      : problem_(problem),
        options_(options),
        start_(problem.ground),
        rooms_(options.moves + 1, start_),
        scratch_(start_),
        steps_(options.budget) {}

  Repackings run() {
    for (const MovableGrant& grant : problem_.grants) fits_first_.push_back(fitting_targets(grant));
    candidates_ = candidates();
    std::vector<size_t> grants;
    choose(start_, 0, grants);
    std::sort(choices_.begin(), choices_.end());
    steps_ = options_.budget;
    for (const Choice& choice : choices_) {
      if (is_full()) break;
      try_orders(choice);
    }
    answer_.is_complete = !is_full();
    return std::move(answer_);
  }

 private:
  bool is_full() const { return answer_.proposals.size() > options_.most; }

  bool may_step() {
    if (options_.moves <= kExactMoves) return true;
    if (steps_ > 0) return steps_-- > 0;
    answer_.is_bounded = true;
    return false;
  }

  // True if the request has room for the demands from `from` on.
  bool admits(const RepackingRoom& room, size_t from = 0) const {
    if (from == problem_.request.size()) return true;
    const RequestDemand& each = problem_.request[from];
    bool is_last = from + 1 == problem_.request.size();
    for (const RequestDemand::Place& place : each.places) {
      if (!room.fits(each.demand, place.cpus, place.memory)) continue;
      if (is_last) return true;
      if (!each.stays) return admits(room, from + 1);
      RepackingRoom rest = room;
      rest.take(each.demand, place.cpus, place.memory);
      if (admits(rest, from + 1)) return true;
    }
    return false;
  }

  static NodeMask memory_at(const MovableGrant::Target& target) {
    return target.keeps_memory ? NodeMask() : target.nodes;
  }

  // By target: true if there is room before any grant moves.
  std::vector<bool> fitting_targets(const MovableGrant& grant) const {
    std::vector<bool> fits;
    for (const MovableGrant::Target& target : grant.targets) {
      fits.push_back(start_.fits(grant.demand, target.nodes, memory_at(target)));
    }
    return fits;
  }

  static bool has_target(const MovableGrant& grant, bool keeps_memory) {
    return std::ranges::any_of(grant.targets,
                               [&](const auto& each) { return each.keeps_memory == keeps_memory; });
  }

  // The grants to try, ascending.
  std::vector<size_t> candidates() {
    std::vector<size_t> all;
    for (size_t i = 0; i < problem_.grants.size(); i++) {
      if (!problem_.grants[i].targets.empty()) all.push_back(i);
    }
    if (options_.moves == 1 || all.size() <= kMostInSets) return all;
    answer_.is_bounded = true;
    std::ranges::stable_sort(all, [&](size_t a, size_t b) {
      const MovableGrant& one = problem_.grants[a];
      const MovableGrant& other = problem_.grants[b];
      return std::tie(one.bytes, one.cpus) < std::tie(other.bytes, other.cpus);
    });
    all.resize(kMostInSets);
    std::ranges::sort(all);
    return all;
  }

  // Adds the choices for each set of grants whose absence would make room.
  void choose(const RepackingRoom& room, size_t from, std::vector<size_t>& grants) {
    if (grants.size() == options_.moves) {
      if (can_begin(grants) && admits(room)) add_choices(grants);
      return;
    }
    size_t more = options_.moves - grants.size();
    RepackingRoom& rest = rooms_[grants.size()];
    for (size_t i = from; i + more <= candidates_.size(); i++) {
      const MovableGrant& grant = problem_.grants[candidates_[i]];
      if (!may_step()) return;
      rest = room;
      rest.give_back(grant.holding, has_target(grant, false));
      grants.push_back(candidates_[i]);
      choose(rest, i + 1, grants);
      grants.pop_back();
    }
  }

  // True if one of the grants has room for its move before the others have moved.
  bool can_begin(const std::vector<size_t>& grants) const {
    return std::ranges::any_of(
        grants, [&](size_t i) { return std::ranges::find(fits_first_[i], true) != fits_first_[i].end(); });
  }

  // Adds a choice for each combination of grants that keep their memory and grants that move it.
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

  void try_orders(const Choice& choice) {
    std::vector<size_t> order(choice.grants.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    do {
      std::vector<RepackingMove> moves;
      move_next(start_, choice, order, moves);
    } while (!is_full() && std::ranges::next_permutation(order).found);
  }

  void move_next(const RepackingRoom& room, const Choice& choice, std::span<const size_t> order,
                 std::vector<RepackingMove>& moves) {
    if (order.empty()) {
      if (proposal_count_++ >= options_.skip) answer_.proposals.push_back(moves);
      return;
    }
    size_t index = choice.grants[order.front()];
    bool keeps_memory = choice.keeps_memory[order.front()];
    const MovableGrant& grant = problem_.grants[index];
    RepackingRoom& next = rooms_[moves.size()];
    for (size_t i = 0; i < grant.targets.size() && !is_full(); i++) {
      const MovableGrant::Target& target = grant.targets[i];
      if (target.keeps_memory != keeps_memory) continue;
      if (moves.empty() && !fits_first_[index][i]) continue;
      if (!may_step()) return;
      NodeMask memory = memory_at(target);
      if (!moves.empty() && !room.fits(grant.demand, target.nodes, memory)) continue;
      next = room;
      next.take(grant.demand, target.nodes, memory);
      next.give_back(grant.holding, !keeps_memory);
      if (!may_admit(next, choice, order.subspan(1))) continue;
      moves.push_back({index, i});
      move_next(next, choice, order.subspan(1), moves);
      moves.pop_back();
    }
  }

  // True if there would be room without the grants that have not moved yet.
  bool may_admit(const RepackingRoom& room, const Choice& choice, std::span<const size_t> others) {
    if (others.empty()) return admits(room);
    scratch_ = room;
    for (size_t i : others) {
      scratch_.give_back(problem_.grants[choice.grants[i]].holding, !choice.keeps_memory[i]);
    }
    return admits(scratch_);
  }

  const RepackingProblem& problem_;
  const RepackingOptions& options_;
  const RepackingRoom start_;
  // The room after each move. Copying into an existing room takes a tenth of the time of making
  // one.
  std::vector<RepackingRoom> rooms_;
  RepackingRoom scratch_;
  // By grant and target.
  std::vector<std::vector<bool>> fits_first_;
  std::vector<size_t> candidates_;
  uint64_t steps_;
  std::vector<Choice> choices_;
  size_t proposal_count_ = 0;
  Repackings answer_;
};

}  // namespace

Repackings find_repackings(const RepackingProblem& problem, const RepackingOptions& options) {
  Repackings answer = Search(problem, options).run();
  if (answer.proposals.size() > options.most) answer.proposals.resize(options.most);
  return answer;
}

}  // namespace numalign
