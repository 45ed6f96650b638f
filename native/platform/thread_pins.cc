#include "platform/thread_pins.h"

#include <algorithm>
#include <set>

namespace numalign {
namespace {

constexpr int kCleanPasses = 2;
// Bounds a process that makes threads faster than they can be moved; the result never claims to be complete.
constexpr int kMaxPasses = 64;

// Sets and reads back. errno ESRCH where the thread is gone, or belongs to another process.
Result<ThreadMove> move_thread(pid_t tid, const CpuSet& cpus) {
  if (!is_own_thread(tid)) {
    return syscall_error("sched_setaffinity",
                         "cannot move thread " + std::to_string(tid) + " of this process", ESRCH);
  }
  Result<CpuSet> before = get_affinity(tid);
  if (!before.ok()) return before.error();
  ThreadMove move{tid, before.value(), before.value()};
  if (Result<Done> set = set_affinity(tid, cpus); !set.ok()) {
    move.errno_value = set.error().errno_value;
    if (move.errno_value == ESRCH) return set.error();
    return move;
  }
  Result<CpuSet> now = get_affinity(tid);
  if (!now.ok()) return now.error();
  move.now = now.value();
  return move;
}

bool is_gone(const Error& error) { return error.errno_value == ESRCH; }

// The CPUs among `cpus` that are offline, as far as that can be known.
CpuSet offline_among(const CpuSet& cpus) {
  Result<CpuSet> online = online_cpus();
  return online.ok() ? cpus - online.value() : CpuSet();
}

void add(PinOutcome& outcome, ThreadMove move, const CpuSet& wanted) {
  (move.now == wanted ? outcome.moved : outcome.unmovable).push_back(std::move(move));
}

}  // namespace

ThreadPins& ThreadPins::of_this_process() {
  // Never destroyed: pool threads may still run while the process exits.
  static auto& pins = *new ThreadPins;
  return pins;
}

// A thread id may have been given to a new thread since: only one that still runs on its pinned CPUs counts.
const ThreadPins::Pin* ThreadPins::pinned_for_another(pid_t tid, const std::string& grant) {
  auto found = pins_.find(tid);
  if (found == pins_.end() || found->second.grant == grant) return nullptr;
  Result<CpuSet> now = get_affinity(tid);
  if (now.ok() && now.value() == found->second.cpus) return &found->second;
  pins_.erase(found);
  return nullptr;
}

Result<std::variant<PinOutcome, AlreadyPinned>> ThreadPins::pin(pid_t tid, const CpuSet& cpus,
                                                                const std::string& grant,
                                                                const std::string& owner, bool replace) {
  std::lock_guard lock(mutex_);
  const bool whole_process = tid == -1;
  auto threads = [&]() -> Result<std::vector<pid_t>> {
    if (whole_process) return process_threads();
    return std::vector<pid_t>{tid == 0 ? current_thread_id() : tid};
  };

  Result<std::vector<pid_t>> first = threads();
  if (!first.ok()) return first.error();
  if (!grant.empty() && !replace) {
    for (pid_t thread : first.value()) {
      if (const Pin* other = pinned_for_another(thread, grant)) {
        return std::variant<PinOutcome, AlreadyPinned>(AlreadyPinned{thread, other->grant});
      }
    }
  }

  PinOutcome outcome;
  std::set<pid_t> seen;
  int clean = 0;
  for (int pass = 0; pass < kMaxPasses && clean < (whole_process ? kCleanPasses : 1); pass++) {
    Result<std::vector<pid_t>> list = threads();
    if (!list.ok()) return list.error();
    bool found_new = false;
    for (pid_t thread : list.value()) {
      if (!seen.insert(thread).second) continue;
      Result<ThreadMove> move = move_thread(thread, cpus);
      if (!move.ok()) {
        if (whole_process && is_gone(move.error())) continue;
        return move.error();
      }
      found_new = true;
      if (!grant.empty() && move.value().errno_value == 0) {
        auto entry = pins_.try_emplace(thread, Pin{grant, owner, move.value().before, cpus}).first;
        entry->second = Pin{grant, owner, entry->second.before, move.value().now};
        before_.try_emplace(grant, entry->second.before);
      }
      add(outcome, std::move(move).value(), cpus);
    }
    if (!whole_process) break;
    clean = found_new ? 0 : clean + 1;
  }
  return std::variant<PinOutcome, AlreadyPinned>(std::move(outcome));
}

Result<PinOutcome> ThreadPins::undo(const std::string& grant, const CpuSet& pool) {
  std::lock_guard lock(mutex_);
  PinOutcome outcome;
  auto restore = [&](pid_t tid, const CpuSet& before) -> Result<Done> {
    CpuSet wanted = before & pool;
    if (wanted.empty()) wanted = pool;
    Result<ThreadMove> move = move_thread(tid, wanted);
    if (move.ok()) {
      add(outcome, std::move(move).value(), wanted);
    } else if (!is_gone(move.error())) {
      return move.error();
    }
    return Done{};
  };

  CpuSet granted;
  for (auto pin = pins_.begin(); pin != pins_.end();) {
    if (pin->second.grant != grant) {
      ++pin;
      continue;
    }
    granted |= pin->second.cpus;
    Result<CpuSet> now = get_affinity(pin->first);
    // A thread that has chosen other CPUs since is left where it is, unless it is on CPUs that the grant
    // gives back, or may not have chosen them: it was parked, or the kernel has let it out of CPUs that went
    // offline.
    const bool is_out = pin->second.parked || !offline_among(pin->second.cpus).empty();
    if (now.ok() && (is_out || now.value().intersects(pin->second.cpus))) {
      if (Result<Done> restored = restore(pin->first, pin->second.before); !restored.ok())
        return restored.error();
    }
    pin = pins_.erase(pin);
  }

  // Threads born under the pin have its mask and no entry of their own.
  if (auto before = before_.extract(grant); !before.empty()) {
    Result<std::vector<pid_t>> threads = process_threads();
    if (!threads.ok()) return threads.error();
    for (pid_t tid : threads.value()) {
      if (pins_.contains(tid)) continue;
      Result<CpuSet> now = get_affinity(tid);
      if (!now.ok() || now.value().empty() || !now.value().is_subset_of(granted)) continue;
      if (Result<Done> restored = restore(tid, before.mapped()); !restored.ok()) return restored.error();
    }
  }
  return outcome;
}

Result<PinOutcome> ThreadPins::follow(const std::string& grant, const CpuSet& cpus) {
  std::lock_guard lock(mutex_);
  PinOutcome outcome;
  CpuSet granted;
  for (const auto& [tid, pin] : pins_) {
    if (pin.grant == grant) granted |= pin.cpus;
  }
  if (granted.empty()) return outcome;
  const CpuSet lost = granted - cpus;
  const bool has_offline = !offline_among(granted).empty();
  std::set<pid_t> seen;
  for (int pass = 0, clean = 0; pass < kMaxPasses && clean < kCleanPasses; pass++) {
    Result<std::vector<pid_t>> list = process_threads();
    if (!list.ok()) return list.error();
    bool found_new = false;
    for (pid_t tid : list.value()) {
      auto pin = pins_.find(tid);
      const bool is_pinned = pin != pins_.end();
      if (is_pinned && pin->second.grant != grant) continue;
      Result<CpuSet> now = has_offline ? get_whole_mask(tid) : get_affinity(tid);
      if (!now.ok() || now.value().empty()) continue;
      const bool is_inside = now.value().is_subset_of(granted);
      // The kernel lets a thread run anywhere once none of its CPUs is online.
      const bool is_out = is_pinned && (pin->second.parked || (has_offline && !is_inside));
      // Pinned for it, and on other CPUs too by its own choice: it must leave what is lost all the same.
      const bool is_on_both = is_pinned && now.value().intersects(lost);
      if (!is_inside && !is_on_both && !is_out) continue;
      if (!seen.insert(tid).second) continue;
      const bool has_all = now.value() == granted || (is_pinned && now.value() == pin->second.given);
      CpuSet wanted = is_out || has_all ? cpus : now.value() - lost;
      if (wanted.empty()) wanted = cpus;
      // Set anew, its mask would be without the CPUs that are offline.
      if (has_offline && wanted == now.value()) {
        if (is_pinned) pin->second.cpus = cpus;
        continue;
      }
      Result<ThreadMove> move = move_thread(tid, wanted);
      if (!move.ok()) {
        if (is_gone(move.error())) continue;
        return move.error();
      }
      found_new = true;
      if (is_pinned && move.value().errno_value == 0) {
        pin->second.cpus = cpus;
        pin->second.given = wanted == cpus ? move.value().now : CpuSet();
        pin->second.parked = false;
      }
      add(outcome, std::move(move).value(), wanted);
    }
    clean = found_new ? 0 : clean + 1;
  }
  return outcome;
}

Result<PinOutcome> ThreadPins::park(const std::string& grant, const CpuSet& pool) {
  std::lock_guard lock(mutex_);
  PinOutcome outcome;
  for (auto& [tid, pin] : pins_) {
    if (pin.grant != grant) continue;
    Result<ThreadMove> move = move_thread(tid, pool);
    if (!move.ok()) {
      if (is_gone(move.error())) continue;
      return move.error();
    }
    pin.parked = true;
    add(outcome, std::move(move).value(), pool);
  }
  return outcome;
}

bool ThreadPins::holds_for(std::string_view owner, pid_t except) {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(pins_, [&](const auto& entry) {
    if (entry.first == except || entry.second.owner != owner) return false;
    Result<CpuSet> now = get_affinity(entry.first);
    return now.ok() && now.value() == entry.second.cpus;
  });
}

}  // namespace numalign
