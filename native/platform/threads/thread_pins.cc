#include "platform/threads/thread_pins.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/cpu_use.h"
#include "core/task_files.h"
#include "platform/threads/proc_folder.h"

namespace numalign {
namespace {

constexpr int kCleanPasses = 2;
// A limit for a process that starts threads faster than they can be moved; the result never claims
// to be complete.
constexpr int kMaxPasses = 64;

// Sets the mask of a thread of this process and reads it back. Nullopt if it has ended. `obeys`: the
// kernel did what it was asked of another thread, so no filter or sandbox stands in for it.
std::optional<ThreadMove> move_own_thread(pid_t tid, const CpuSet& cpus, bool& obeys) {
  Result<CpuSet> before = get_affinity(tid);
  const auto refused = [&](const Error& error) -> std::optional<ThreadMove> {
    if (error.errno_value == ESRCH) return std::nullopt;
    const CpuSet mask = before.ok() ? before.value() : CpuSet();
    return ThreadMove{tid, mask, mask, error.errno_value};
  };
  if (!before.ok()) return refused(before.error());
  if (Result<Done> set = set_affinity(tid, cpus); !set.ok()) return refused(set.error());
  // A cpuset clips nothing off a single CPU, nor off a part of the thread's present mask.
  const bool is_exact = cpus.size() == 1 || cpus.is_subset_of(before.value());
  Result<CpuSet> now = is_exact && obeys ? Result<CpuSet>(cpus) : get_affinity(tid);
  if (!now.ok()) return refused(now.error());
  if (is_exact) obeys = now.value() == cpus;
  return ThreadMove{tid, std::move(before).value(), std::move(now).value()};
}

// The same for an id that no thread of this process may have any more: then nullopt.
std::optional<ThreadMove> move_thread(pid_t tid, const CpuSet& cpus, bool obeys = false) {
  return is_own_thread(tid) ? move_own_thread(tid, cpus, obeys) : std::nullopt;
}

Error has_ended(pid_t tid) {
  return syscall_error("sched_setaffinity", "cannot move thread " + std::to_string(tid) + " of this process",
                       ESRCH);
}

// Without CAP_SYS_NICE, a thread with the flag keeps it. The flag does nothing to an ordinary
// thread whose nice value is not below 0.
Result<Done> change_scheduling(pid_t tid, const Scheduling& now, Scheduling wanted) {
  Result<Done> set = set_scheduling(tid, wanted);
  if (set.ok() || !now.reset_on_fork || wanted.reset_on_fork) return set;
  wanted.reset_on_fork = true;
  return set_scheduling(tid, wanted);
}

// Reads which CPUs are online at the first question.
std::function<CpuSet(const CpuSet&)> offline_now() {
  return [online = std::optional<Result<CpuSet>>()](const CpuSet& cpus) mutable {
    if (!online) online = online_cpus();
    return online->ok() ? cpus - online->value() : CpuSet();
  };
}

CpuSet offline_among(const CpuSet& cpus) { return offline_now()(cpus); }

// When threads of this process have started. Opens their folder once.
class ThreadStarts {
 public:
  // 0 if it cannot be read: the thread has ended, or no descriptor is left.
  uint64_t of(pid_t tid) {
    if (!folder_) folder_.emplace("/proc/self/task");
    const std::string name = std::to_string(tid) + "/stat";
    const std::optional<std::string_view> text = folder_->read_piece(folder_->fd(), name.c_str());
    const std::optional<TaskStat> stat = text ? parse_task_stat(*text) : std::nullopt;
    return stat ? stat->start_ticks : 0;
  }
  // Whether the thread that started then still has the id. What is unknown counts as equal: a thread
  // must not stay on a grant because its file cannot be read.
  bool are_of_one(pid_t tid, uint64_t start) {
    const uint64_t now = start == 0 ? 0 : of(tid);
    return now == 0 ? is_own_thread(tid) : now == start;
  }

 private:
  std::optional<ProcFolder> folder_;
};

uint64_t start_of(pid_t tid) { return ThreadStarts().of(tid); }

// Remembered masks are for one operation, whatever comes of it.
struct ClearAtEnd {
  std::map<pid_t, CpuSet>& masks;
  ~ClearAtEnd() { masks.clear(); }
};

// Leaves out threads that end meanwhile.
Result<std::map<pid_t, CpuSet>> masks_of_all() {
  Result<std::vector<pid_t>> threads = process_threads();
  if (!threads.ok()) return threads.error();
  std::map<pid_t, CpuSet> masks;
  for (pid_t tid : threads.value()) {
    Result<CpuSet> mask = get_affinity(tid);
    if (mask.ok() && !mask.value().empty()) masks[tid] = std::move(mask).value();
  }
  return masks;
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

// Another thread may get the id of one that has ended. It inherits nothing that is known of the first.
void ThreadPins::forget_ended() {
  ThreadStarts starts;
  const auto has_ended = [&](const auto& entry) {
    return !starts.are_of_one(entry.first, entry.second.start);
  };
  std::erase_if(pins_, has_ended);
  std::erase_if(scheduled_, has_ended);
  choices_.forget_if(has_ended);
}

void ThreadPins::forget_ended(pid_t tid) {
  auto pin = pins_.find(tid);
  if (pin != pins_.end() && !ThreadStarts().are_of_one(tid, pin->second.start)) pins_.erase(pin);
}

// Opens `list` at first.
Result<std::vector<pid_t>> ThreadPins::list_threads(std::optional<ThreadList>& list) {
  if (!list) {
    Result<ThreadList> opened = ThreadList::open(0);
    if (!opened.ok()) return opened.error();
    list = std::move(opened).value();
  }
  Result<std::vector<pid_t>> now = list->threads();
  if (now.ok()) listed_ = now.value();
  return now;
}

// If they cannot be listed now, because no descriptor is left, those of the last list.
Result<std::vector<pid_t>> ThreadPins::threads() {
  std::optional<ThreadList> list;
  Result<std::vector<pid_t>> now = list_threads(list);
  if (now.ok() || listed_.empty()) return now;
  std::erase_if(listed_, [](pid_t tid) { return !is_own_thread(tid); });
  return listed_;
}

// A thread that has chosen other CPUs since has left the other grant.
const ThreadPins::Pin* ThreadPins::pinned_for_another(pid_t tid, const std::string& grant) {
  auto found = pins_.find(tid);
  if (found == pins_.end() || found->second.target.grant == grant) return nullptr;
  Result<CpuSet> now = get_affinity(tid);
  if (now.ok() && now.value() == found->second.cpus) return &found->second;
  pins_.erase(found);
  return nullptr;
}

// The pin of a thread for a part of the grant; nullptr for all others.
const ThreadPins::Pin* ThreadPins::pinned_for_part(pid_t tid, const std::string& grant) {
  auto pin = pins_.find(tid);
  const bool is_for_part =
      pin != pins_.end() && pin->second.target.grant == grant && !pin->second.target.part.empty();
  return is_for_part ? &pin->second : nullptr;
}

Result<std::optional<AlreadyPinned>> ThreadPins::move(const Moves& moves, const std::string& grant,
                                                      const std::string& owner, bool replace) {
  forget_ended();
  Result<std::vector<pid_t>> first = moves.threads();
  if (!first.ok()) return first.error();
  if (!grant.empty() && !replace) {
    for (pid_t thread : first.value()) {
      if (const Pin* other = pinned_for_another(thread, grant)) {
        return std::optional(AlreadyPinned{thread, other->target.grant});
      }
    }
  }

  std::set<pid_t> seen;
  ThreadStarts starts;
  int clean = 0;
  bool obeys = false;
  for (int pass = 0; pass < kMaxPasses && clean < (moves.whole_process ? kCleanPasses : 1); pass++) {
    const Result<std::vector<pid_t>> list = pass == 0 ? first : moves.threads();
    // Most have moved: to say that none have would be worse.
    if (!list.ok()) break;
    bool found_new = false;
    for (pid_t thread : list.value()) {
      if (!seen.insert(thread).second) continue;
      auto [cpus, part, granted] = moves.destination_of(thread);
      const Pin* stays = moves.whole_process && part.empty() ? pinned_for_part(thread, grant) : nullptr;
      if (stays) {
        Result<CpuSet> now = get_affinity(thread);
        // A cgroup changes the masks of a process that moves into it.
        if (!now.ok() || now.value() == stays->cpus || stays->parked) continue;
        cpus = stays->cpus;
      }
      // Its file shows that it is a thread of this process.
      const uint64_t start = grant.empty() || stays ? 0 : starts.of(thread);
      std::optional<ThreadMove> result =
          start > 0 ? move_own_thread(thread, cpus, obeys) : move_thread(thread, cpus);
      if (!result && !moves.whole_process) return has_ended(thread);
      if (!result) continue;
      found_new = true;
      ThreadMove move = *std::move(result);
      if (auto earlier = earlier_.find(thread); earlier != earlier_.end()) move.before = earlier->second;
      if (grant.empty() && move.errno_value == 0) note_choice(thread, cpus);
      if (!grant.empty() && !stays && move.errno_value == 0) {
        const CpuSet before = choice_of(thread, move.before);
        const PinTarget target{grant, part};
        Pin& pin = pins_[thread] = Pin{target, owner, before, move.now};
        pin.start = start;
        Granted& all = granted_.try_emplace(target, Granted{before, {}}).first->second;
        if (thread == own_process_id()) all.before = before;
        // CPUs that remain after the kernel's clipping are not its choice.
        all.cpus |= cpus == granted ? pin.cpus : granted;
      }
      moves.done(std::move(move), cpus);
    }
    if (!moves.whole_process) break;
    clean = found_new ? 0 : clean + 1;
  }
  relax();
  earlier_.clear();
  return std::optional<AlreadyPinned>();
}

Result<std::optional<AlreadyPinned>> ThreadPins::other_pin(pid_t tid, const std::string& grant) {
  std::lock_guard lock(mutex_);
  forget_ended();
  std::vector<pid_t> threads{tid == 0 ? current_thread_id() : tid};
  if (tid == -1) {
    Result<std::vector<pid_t>> all = process_threads();
    if (!all.ok()) return all.error();
    threads = std::move(all).value();
  }
  for (pid_t thread : threads) {
    if (const Pin* other = pinned_for_another(thread, grant))
      return std::optional(AlreadyPinned{thread, other->target.grant});
  }
  return std::optional<AlreadyPinned>();
}

// move() for one thread without a grant.
Result<std::variant<PinOutcome, AlreadyPinned>> ThreadPins::pin_for_nobody(pid_t tid, const CpuSet& cpus) {
  const ClearAtEnd clear{earlier_};
  forget_ended(tid);
  // The kernel finds the calling thread faster by 0 than by its id.
  std::optional<ThreadMove> result = move_thread(tid == current_thread_id() ? 0 : tid, cpus);
  if (!result) return has_ended(tid);
  ThreadMove move = *std::move(result);
  move.tid = tid;
  if (move.errno_value == 0) note_choice(tid, cpus);
  PinOutcome outcome;
  add(outcome, std::move(move), cpus);
  relax();
  return std::variant<PinOutcome, AlreadyPinned>(std::move(outcome));
}

Result<std::variant<PinOutcome, AlreadyPinned>> ThreadPins::pin(pid_t tid, const CpuSet& cpus,
                                                                const PinTarget& target,
                                                                const std::string& owner, bool replace) {
  std::lock_guard lock(mutex_);
  PinOutcome outcome;
  if (tid != -1 && target.grant.empty()) return pin_for_nobody(tid == 0 ? current_thread_id() : tid, cpus);
  std::optional<ThreadList> open;
  const Moves moves{
      .threads = [&]() -> Result<std::vector<pid_t>> {
        if (tid == -1) return list_threads(open);
        return std::vector<pid_t>{tid == 0 ? current_thread_id() : tid};
      },
      .destination_of =
          [&](pid_t) {
            return Destination{cpus, target.part, cpus};
          },
      .done = [&](ThreadMove move, const CpuSet& wanted) { add(outcome, std::move(move), wanted); },
      .whole_process = tid == -1,
  };
  Result<std::optional<AlreadyPinned>> pinned = move(moves, target.grant, owner, replace);
  if (!pinned.ok()) return pinned.error();
  if (pinned.value()) return std::variant<PinOutcome, AlreadyPinned>(*pinned.value());
  if (tid == -1) holds_whole_process(target);
  return std::variant<PinOutcome, AlreadyPinned>(std::move(outcome));
}

Result<std::variant<PlacementOutcome, AlreadyPinned>> ThreadPins::place(const Placement& placement,
                                                                        const std::string& grant,
                                                                        const std::string& owner,
                                                                        bool replace) {
  std::lock_guard lock(mutex_);
  PlacementOutcome outcome;
  CpuUse use;
  std::map<pid_t, ThreadRole> roles;
  auto place_of = [&](ThreadRole role) -> const std::optional<ThreadPlace>& {
    return placement[static_cast<size_t>(role)];
  };
  std::optional<ThreadList> open;
  const Moves moves{
      .threads = [&]() -> Result<std::vector<pid_t>> {
        Result<std::vector<pid_t>> list = list_threads(open);
        if (!list.ok()) return list;
        std::vector<pid_t> threads = std::move(list).value();
        for (pid_t thread : threads) {
          if (!roles.contains(thread)) roles[thread] = ThreadRoles::of_this_process().get(thread);
        }
        std::erase_if(threads, [&](pid_t thread) { return !place_of(roles.at(thread)); });
        std::ranges::sort(threads, {}, [&](pid_t thread) { return std::pair(roles.at(thread), thread); });
        return threads;
      },
      .destination_of =
          [&](pid_t thread) {
            const ThreadRole role = roles.at(thread);
            const ThreadPlace& place = *place_of(role);
            const CpuSet cpus = place.one_each ? CpuSet{use.least_used(place.cpus)} : place.cpus;
            use.add(cpus, runs_javascript(role));
            return Destination{cpus, place.part, place.granted};
          },
      .done =
          [&](ThreadMove move, const CpuSet& wanted) {
            add(outcome[static_cast<size_t>(roles.at(move.tid))], std::move(move), wanted);
          },
      .whole_process = true,
  };
  using Outcome = std::variant<PlacementOutcome, AlreadyPinned>;
  Result<std::optional<AlreadyPinned>> pinned = move(moves, grant, owner, replace);
  if (!pinned.ok()) return pinned.error();
  if (pinned.value()) return Outcome(*pinned.value());
  if (std::ranges::all_of(placement, [](const auto& place) { return place.has_value(); })) {
    holds_whole_process({grant});
  }
  return Outcome(std::move(outcome));
}

// The target that came last has the threads that no caller has pinned.
void ThreadPins::holds_whole_process(const PinTarget& target) {
  for (auto& [each, granted] : granted_) granted.whole_process = each == target;
}

// A thread on a grant has not chosen that; what it chooses there is undone with the pin.
void ThreadPins::note_choice(pid_t tid, const CpuSet& cpus) {
  if (choices_.find(tid) && !pins_.contains(tid)) choices_.set(tid, {cpus, cpus});
}

// Threads born on a grant's CPUs have not chosen them.
const ThreadPins::Granted* ThreadPins::born_on(const CpuSet& mask) const {
  auto found =
      std::ranges::find_if(granted_, [&](const auto& entry) { return mask.is_subset_of(entry.second.cpus); });
  return found == granted_.end() ? nullptr : &found->second;
}

CpuSet ThreadPins::choice_of(pid_t tid, const CpuSet& mask) const {
  if (auto pin = pins_.find(tid); pin != pins_.end()) return pin->second.before;
  if (const Granted* granted = born_on(mask)) return granted->before;
  const ThreadChoice* choice = choices_.find(tid);
  return choice ? choice->chosen : mask;
}

void ThreadPins::adopt(pid_t tid, const CpuSet& granted, const PinTarget& target, const std::string& owner) {
  std::lock_guard lock(mutex_);
  forget_ended(current_thread_id());
  Result<CpuSet> parent = get_affinity(0);
  const CpuSet before = choice_of(current_thread_id(), parent.ok() ? parent.value() : granted);
  granted_.try_emplace(target, Granted{before, {}}).first->second.cpus |= granted;
  Result<CpuSet> now = tid == 0 ? Result<CpuSet>(CpuSet()) : get_affinity(tid);
  if (!now.ok() || now.value().empty()) return;
  pins_[tid] = Pin{target, owner, before, now.value()};
  pins_[tid].start = start_of(tid);
}

Result<CpuSet> ThreadPins::asked_mask() {
  std::lock_guard lock(mutex_);
  Result<CpuSet> now = get_affinity(0);
  if (!now.ok()) return now;
  const pid_t tid = current_thread_id();
  forget_ended(tid);
  const ThreadChoice* choice = choices_.find(tid);
  return !choice || pins_.contains(tid) || born_on(now.value()) ? now : Result<CpuSet>(choice->asked);
}

Result<CpuSet> ThreadPins::chosen_mask() {
  std::lock_guard lock(mutex_);
  const pid_t main = own_process_id();
  Result<CpuSet> now = get_affinity(main);
  if (!now.ok()) return now;
  forget_ended(current_thread_id());
  return choice_of(main, now.value());
}

Result<bool> ThreadPins::ask(const CpuSet& cpus) {
  Result<Done> set = set_affinity(0, cpus);
  if (set.ok()) return true;
  if (set.error().errno_value == EINVAL) return false;
  return set.error();
}

Result<Done> ThreadPins::ask_later(const CpuSet& chosen, const CpuSet& all) {
  std::lock_guard lock(mutex_);
  Result<Done> set = set_affinity(0, all);
  const pid_t tid = current_thread_id();
  if (set.ok()) choices_.set(tid, {chosen, all, start_of(tid)});
  return set;
}

void ThreadPins::ask_choices(const std::string& grant) {
  std::lock_guard lock(mutex_);
  forget_ended();
  for (auto& [tid, pin] : pins_) {
    if (pin.target.grant == grant) pin.asked = set_affinity(tid, pin.before).ok();
  }
}

Result<int> ThreadPins::settle_choices(const CpuSet& limit, bool dry_run) {
  std::lock_guard lock(mutex_);
  forget_ended();
  int settled = 0;
  for (const auto& [tid, chosen] : choices_.unsettled(limit)) {
    Result<CpuSet> now = get_affinity(tid);
    // The thread has ended, is pinned again, or has made another choice.
    if (pins_.contains(tid) || !now.ok() || now.value() != limit) continue;
    if (!dry_run) {
      const std::optional<ThreadMove> move = move_thread(tid, chosen);
      if (move && move->errno_value == 0) choices_.set(tid, {chosen, chosen});
    }
    settled++;
  }
  return settled;
}

Result<std::variant<Scheduling, Starved>> ThreadPins::schedule(pid_t tid, const Scheduling& wanted,
                                                               const std::string& grant) {
  using Outcome = std::variant<Scheduling, Starved>;
  std::lock_guard lock(mutex_);
  forget_ended();
  if (!is_own_thread(tid)) {
    return syscall_error("sched_setattr", "cannot reach thread " + std::to_string(tid) + " of this process",
                         ESRCH);
  }
  if (wanted.is_real_time()) {
    if (std::optional<Starved> victim = starved(tid)) return Outcome(*victim);
  }
  Result<Scheduling> before = get_scheduling(tid);
  if (!before.ok()) return before.error();
  if (Result<Done> set = change_scheduling(tid, before.value(), wanted); !set.ok()) return set.error();
  Result<Scheduling> now = get_scheduling(tid);
  if (!now.ok()) return now.error();
  auto entry =
      scheduled_.try_emplace(tid, Scheduled{grant, before.value(), now.value(), start_of(tid)}).first;
  // It may have chosen another class itself since.
  if (entry->second.now != before.value()) entry->second.before = before.value();
  entry->second.grant = grant;
  entry->second.now = now.value();
  return Outcome(now.value());
}

// A thread that could run only on the CPUs of real-time threads. `real_time_too` counts as one (0:
// none).
std::optional<Starved> ThreadPins::starved(pid_t real_time_too) {
  Result<std::vector<pid_t>> threads = process_threads();
  if (!threads.ok()) return std::nullopt;
  CpuSet taken;
  std::vector<Starved> others;
  for (pid_t thread : threads.value()) {
    Result<Scheduling> scheduling = get_scheduling(thread);
    Result<CpuSet> cpus = get_affinity(thread);
    if (!scheduling.ok() || !cpus.ok()) continue;  // it has ended
    if (thread == real_time_too || scheduling.value().is_real_time()) {
      taken |= cpus.value();
    } else {
      others.push_back({thread, cpus.value()});
    }
  }
  for (const Starved& other : others) {
    if (!other.cpus.empty() && other.cpus.is_subset_of(taken)) return other;
  }
  return std::nullopt;
}

// Takes back real-time classes that starve others now, because threads were moved.
void ThreadPins::relax() {
  for (auto scheduled = scheduled_.begin(); scheduled != scheduled_.end();) {
    if (!scheduled->second.now.is_real_time()) {
      ++scheduled;
      continue;
    }
    std::optional<Starved> victim = starved(0);
    if (!victim) return;
    Result<CpuSet> cpus = get_affinity(scheduled->first);
    if (cpus.ok() && !cpus.value().intersects(victim->cpus)) {
      ++scheduled;
      continue;
    }
    unschedule(scheduled->first, scheduled->second);
    scheduled = scheduled_.erase(scheduled);
  }
}

// A thread that has chosen another class since keeps it.
void ThreadPins::unschedule(pid_t tid, const Scheduled& scheduled) {
  if (!is_own_thread(tid)) return;
  Result<Scheduling> now = get_scheduling(tid);
  if (!now.ok() || now.value() != scheduled.now) return;
  if (change_scheduling(tid, now.value(), scheduled.before).ok()) return;
  // Without CAP_SYS_NICE, a greater nice value stays.
  Scheduling rest = scheduled.before;
  rest.nice = std::max(rest.nice, now.value().nice);
  (void)change_scheduling(tid, now.value(), rest);
}

// Gives a thread its choice within `pool`, else the whole pool.
void ThreadPins::restore(pid_t tid, const CpuSet& before, bool is_asked, const CpuSet& pool,
                         PinOutcome& outcome) {
  CpuSet wanted = before & pool;
  if (wanted.empty()) wanted = pool;
  std::optional<ThreadMove> move = move_thread(tid, wanted);
  // Its cpuset has none of it at present.
  const bool is_refused = move && move->errno_value == EINVAL && wanted != pool;
  if (is_refused && !is_asked) {
    wanted = pool;
    move = move_thread(tid, wanted);
  }
  if (!move) return;
  move->earlier = before;
  if (is_refused && is_asked) move->errno_value = 0;
  // Only a choice that differs from the request could be mistaken for that of another thread.
  choices_.set(tid, {before, wanted, before == wanted ? 0 : start_of(tid)});
  add(outcome, *std::move(move), wanted);
}

// The mask before the thread moved into another cgroup.
Result<CpuSet> ThreadPins::mask_of(pid_t tid) const {
  auto earlier = earlier_.find(tid);
  return earlier == earlier_.end() ? get_affinity(tid) : Result<CpuSet>(earlier->second);
}

// A thread that has chosen other CPUs since stays there. It does not stay if it is on CPUs that the
// grant gives back, or may not have chosen them: it was parked, or the kernel let it out when CPUs
// went offline.
bool ThreadPins::is_on(const CpuSet& granted, const Result<CpuSet>& now, const Pin& pin,
                       const OfflineAmong& offline) {
  const bool is_out = pin.parked || !offline(pin.cpus).empty();
  return now.ok() && (is_out || now.value().intersects(granted));
}

Result<Undone> ThreadPins::share(const std::string& grant, const CpuSet& granted,
                                 const std::vector<pid_t>& tids, const CpuSet& pool) {
  std::lock_guard lock(mutex_);
  const ClearAtEnd clear{earlier_};
  forget_ended();
  PinOutcome outcome;
  Departure left;
  for (auto& [target, all] : granted_) {
    if (target.grant != grant) continue;
    if (std::exchange(all.whole_process, false)) left.whole_process = target;
  }
  // The choice of a thread that is on a grant.
  const OfflineAmong offline = offline_now();
  auto choice_on_grant = [&](pid_t tid, const Result<CpuSet>& now) -> std::optional<CpuSet> {
    if (auto pin = pins_.find(tid); pin != pins_.end()) {
      auto all = granted_.find(pin->second.target);
      const CpuSet own = all == granted_.end() ? pin->second.cpus : pin->second.cpus | all->second.cpus;
      return is_on(own, now, pin->second, offline) ? std::optional(pin->second.before) : std::nullopt;
    }
    if (!now.ok() || now.value().empty()) return std::nullopt;
    if (const Granted* born = born_on(now.value())) return born->before;
    // The process was started on the grant.
    return now.value().is_subset_of(granted) ? std::optional(now.value()) : std::nullopt;
  };
  for (pid_t tid : tids) {
    if (pinned_for_part(tid, grant)) continue;
    const Result<CpuSet> now = mask_of(tid);
    const std::optional<CpuSet> before = choice_on_grant(tid, now);
    auto pin = pins_.find(tid);
    const Pin* own = pin == pins_.end() ? nullptr : &pin->second;
    if (before) {
      if (auto scheduled = scheduled_.find(tid); scheduled != scheduled_.end()) {
        unschedule(tid, scheduled->second);
        left.scheduled.insert(scheduled_.extract(scheduled));
      }
      leave(tid, now, *before, own, pool, outcome, left);
    }
    if (own) left.pins.insert(pins_.extract(pin));
  }
  relax();
  return Undone{std::move(outcome), [this, left = std::move(left)] { come_back(left); }};
}

// Restores a thread, whose pin this is, if it has one.
void ThreadPins::leave(pid_t tid, const Result<CpuSet>& mask, const CpuSet& before, const Pin* pin,
                       const CpuSet& pool, PinOutcome& outcome, Departure& left) {
  if (mask.ok()) left.masks.push_back({tid, pin ? pin->start : start_of(tid), mask.value()});
  restore(tid, before, pin && pin->asked, pool, outcome);
}

bool ThreadPins::has_threads(const std::string& grant) const {
  const auto any = [](const auto& entries, const auto& is_of_grant) {
    return std::ranges::any_of(entries, is_of_grant);
  };
  return any(granted_, [&](const auto& entry) { return entry.first.grant == grant; }) ||
         any(pins_, [&](const auto& entry) { return entry.second.target.grant == grant; }) ||
         any(scheduled_, [&](const auto& entry) { return entry.second.grant == grant; });
}

Result<Undone> ThreadPins::undo(const std::string& grant, const CpuSet& pool) {
  std::lock_guard lock(mutex_);
  const ClearAtEnd clear{earlier_};
  if (!has_threads(grant)) return Undone{};
  forget_ended();
  // Before anything changes: without it, threads without a pin cannot be found.
  Result<std::vector<pid_t>> threads = this->threads();
  if (!threads.ok()) return threads.error();
  PinOutcome outcome;
  Departure left;
  for (auto entry = scheduled_.begin(); entry != scheduled_.end();) {
    if (entry->second.grant != grant) {
      ++entry;
      continue;
    }
    unschedule(entry->first, entry->second);
    left.scheduled.insert(scheduled_.extract(entry++));
  }

  CpuSet granted;
  std::vector<Granted> of_grant;  // first the CPUs of no part
  for (auto entry = granted_.begin(); entry != granted_.end();) {
    if (entry->first.grant != grant) {
      ++entry;
      continue;
    }
    granted |= entry->second.cpus;
    of_grant.push_back(entry->second);
    left.granted.insert(granted_.extract(entry++));
  }
  const OfflineAmong offline = offline_now();
  for (auto pin = pins_.begin(); pin != pins_.end();) {
    if (pin->second.target.grant != grant) {
      ++pin;
      continue;
    }
    granted |= pin->second.cpus;
    const Result<CpuSet> now = mask_of(pin->first);
    if (is_on(granted, now, pin->second, offline))
      leave(pin->first, now, pin->second.before, &pin->second, pool, outcome, left);
    left.pins.insert(pins_.extract(pin++));
  }

  // Threads born under the pin have its mask and no entry.
  if (!of_grant.empty()) {
    for (pid_t tid : threads.value()) {
      if (pins_.contains(tid) || left.pins.contains(tid)) continue;
      Result<CpuSet> now = mask_of(tid);
      if (!now.ok() || now.value().empty() || !now.value().is_subset_of(granted)) continue;
      auto born = std::ranges::find_if(
          of_grant, [&](const Granted& each) { return now.value().is_subset_of(each.cpus); });
      const Granted& from = born == of_grant.end() ? of_grant.front() : *born;
      leave(tid, now, from.before, nullptr, pool, outcome, left);
    }
  }
  return Undone{std::move(outcome), [this, left = std::move(left)] { come_back(left); }};
}

void ThreadPins::come_back(const Departure& left) {
  std::lock_guard lock(mutex_);
  forget_ended();
  granted_.insert(left.granted.begin(), left.granted.end());
  if (left.whole_process) holds_whole_process(*left.whole_process);
  ThreadStarts starts;
  for (const auto& [tid, start, mask] : left.masks) {
    if (starts.are_of_one(tid, start) && !pins_.contains(tid)) (void)move_thread(tid, mask);
  }
  pins_.insert(left.pins.begin(), left.pins.end());
  for (const auto& [tid, scheduled] : left.scheduled) {
    if (!starts.are_of_one(tid, scheduled.start)) continue;
    Result<Scheduling> now = get_scheduling(tid);
    if (now.ok() && change_scheduling(tid, now.value(), scheduled.now).ok())
      scheduled_.try_emplace(tid, scheduled);
  }
  // Threads may have ended or started meanwhile.
  forget_ended();
  relax();
}

Result<PinOutcome> ThreadPins::follow(const PinTarget& target, const CpuSet& cpus) {
  std::lock_guard lock(mutex_);
  forget_ended();
  PinOutcome outcome;
  auto entry = granted_.find(target);
  if (entry == granted_.end()) return outcome;
  const CpuSet granted = std::exchange(entry->second.cpus, cpus);
  const CpuSet lost = granted - cpus;
  const bool has_offline = !offline_among(granted).empty();
  std::set<pid_t> seen;
  for (int pass = 0, clean = 0; pass < kMaxPasses && clean < kCleanPasses; pass++) {
    Result<std::vector<pid_t>> list = threads();
    if (!list.ok()) return list.error();
    bool found_new = false;
    for (pid_t tid : list.value()) {
      auto pin = pins_.find(tid);
      const bool is_pinned = pin != pins_.end();
      if (is_pinned && pin->second.target != target) continue;
      Result<CpuSet> now = has_offline ? get_whole_mask(tid) : get_affinity(tid);
      if (!now.ok() || now.value().empty()) continue;
      const bool is_inside = now.value().is_subset_of(granted);
      // The kernel lets a thread run anywhere once none of its CPUs is online.
      const bool is_out = is_pinned && (pin->second.parked || (has_offline && !is_inside));
      // Pinned, and on other CPUs too by its own choice: it must still leave the lost ones.
      const bool is_on_both = is_pinned && now.value().intersects(lost);
      if (!is_inside && !is_on_both && !is_out) continue;
      if (!seen.insert(tid).second) continue;
      // A thread placed on some of them stays there, as far as these are left.
      CpuSet stays = is_pinned ? pin->second.cpus - lost : cpus;
      if (stays.empty() || (is_pinned && pin->second.cpus == granted)) stays = cpus;
      const bool is_as_given = is_pinned && now.value() == pin->second.given;
      CpuSet wanted = now.value() == granted ? cpus : now.value() - lost;
      if (is_out || is_as_given) wanted = stays;
      if (wanted.empty()) wanted = cpus;
      // Set again, its mask would lose the CPUs that are offline.
      if (has_offline && wanted == now.value()) {
        if (is_pinned) pin->second.cpus = stays;
        continue;
      }
      std::optional<ThreadMove> move = move_thread(tid, wanted);
      if (!move) continue;
      found_new = true;
      if (is_pinned && move->errno_value == 0) {
        pin->second.cpus = stays;
        pin->second.given = wanted == stays ? move->now : CpuSet();
        pin->second.parked = false;
      }
      add(outcome, *std::move(move), wanted);
    }
    clean = found_new ? 0 : clean + 1;
  }
  relax();
  return outcome;
}

Result<PinOutcome> ThreadPins::park(const PinTarget& target, const CpuSet& pool) {
  std::lock_guard lock(mutex_);
  forget_ended();
  PinOutcome outcome;
  for (auto& [tid, pin] : pins_) {
    if (pin.target != target) continue;
    std::optional<ThreadMove> move = move_thread(tid, pool);
    if (!move) continue;
    pin.parked = true;
    add(outcome, *std::move(move), pool);
  }
  return outcome;
}

std::vector<pid_t> ThreadPins::threads_for(const PinTarget& target, const std::vector<pid_t>& threads) {
  std::vector<pid_t> found;
  auto granted = granted_.find(target);
  if (granted == granted_.end()) return found;
  auto is_born_for_another = [&](pid_t tid) {
    Result<CpuSet> now = get_affinity(tid);
    return now.ok() && std::ranges::any_of(granted_, [&](const auto& entry) {
             return entry.first != target && now.value().is_subset_of(entry.second.cpus);
           });
  };
  for (pid_t tid : threads) {
    auto pin = pins_.find(tid);
    const bool is_for_it = pin != pins_.end() ? pin->second.target == target
                                              : granted->second.whole_process && !is_born_for_another(tid);
    if (is_for_it) found.push_back(tid);
  }
  return found;
}

Result<std::vector<pid_t>> ThreadPins::threads_for(const PinTarget& target) {
  std::lock_guard lock(mutex_);
  if (!granted_.contains(target)) return std::vector<pid_t>();
  forget_ended();
  Result<std::vector<pid_t>> threads = process_threads();
  if (!threads.ok()) return threads;
  return threads_for(target, threads.value());
}

// Where threads are, and where they should be.
std::vector<ThreadMove> ThreadPins::places_of(const PinTarget& target, const CpuSet& cpus,
                                              const std::vector<pid_t>& threads) {
  const CpuSet offline = offline_among(cpus);
  std::vector<ThreadMove> places;
  if (cpus.is_subset_of(offline)) return places;
  for (pid_t tid : threads_for(target, threads)) {
    auto pin = pins_.find(tid);
    if (pin != pins_.end() && pin->second.parked) continue;
    Result<CpuSet> now = get_affinity(tid);
    if (!now.ok()) continue;
    CpuSet place = pin == pins_.end() ? cpus : pin->second.cpus & cpus;
    if (place.is_subset_of(offline)) place = cpus;
    places.push_back({tid, std::move(now).value(), std::move(place)});
  }
  return places;
}

Result<std::vector<ThreadMove>> ThreadPins::strays(const PinTarget& target, const CpuSet& cpus) {
  std::lock_guard lock(mutex_);
  if (!granted_.contains(target)) return std::vector<ThreadMove>();
  forget_ended();
  Result<std::vector<pid_t>> threads = process_threads();
  if (!threads.ok()) return threads.error();
  std::vector<pid_t> out;
  for (pid_t tid : threads.value()) {
    Result<CpuSet> now = get_affinity(tid);
    if (now.ok() && !now.value().is_subset_of(cpus)) out.push_back(tid);
  }
  return out.empty() ? std::vector<ThreadMove>() : places_of(target, cpus, out);
}

Result<PinOutcome> ThreadPins::recall(const PinTarget& target, const CpuSet& cpus,
                                      const std::vector<pid_t>& tids) {
  std::lock_guard lock(mutex_);
  forget_ended();
  PinOutcome outcome;
  for (const ThreadMove& place : places_of(target, cpus, tids)) {
    std::optional<ThreadMove> move = move_thread(place.tid, place.now);
    if (!move) continue;
    const bool is_back = move->errno_value == 0 && move->now.is_subset_of(cpus);
    (is_back ? outcome.moved : outcome.unmovable).push_back(*std::move(move));
  }
  if (!outcome.moved.empty()) relax();
  return outcome;
}

Result<Done> ThreadPins::remember_masks() {
  std::lock_guard lock(mutex_);
  Result<std::map<pid_t, CpuSet>> masks = masks_of_all();
  if (!masks.ok()) return masks.error();
  earlier_.merge(std::move(masks).value());
  return Done{};
}

void ThreadPins::restore_masks() {
  std::lock_guard lock(mutex_);
  const ClearAtEnd clear{earlier_};
  for (const auto& [tid, mask] : earlier_) {
    Result<CpuSet> now = get_affinity(tid);
    if (now.ok() && now.value() != mask) (void)move_thread(tid, mask);
  }
}

Result<Done> ThreadPins::learn_choices(const CpuSet& limit, const CpuSet& all,
                                       const std::vector<MemberThread>& known) {
  std::lock_guard lock(mutex_);
  forget_ended();
  Result<std::map<pid_t, CpuSet>> found = masks_of_all();
  if (!found.ok()) return found.error();
  std::map<pid_t, CpuSet> masks = std::move(found).value();
  std::vector<pid_t> others;
  for (const auto& [tid, mask] : masks) {
    const bool is_elsewhere = !limit.empty() && !mask.is_subset_of(limit);
    if (is_elsewhere || pins_.contains(tid) || born_on(mask)) others.push_back(tid);
  }
  for (pid_t tid : others) masks.erase(tid);
  choices_.learn(masks, others, limit, all, known);
  return Done{};
}

std::vector<MemberThread> ThreadPins::choices() {
  std::lock_guard lock(mutex_);
  forget_ended();
  std::vector<MemberThread> known;
  for (const auto& [tid, choice] : choices_.all()) {
    if (!pins_.contains(tid)) known.push_back({tid, choice.chosen, choice.asked, choice.asked});
  }
  return known;
}

std::map<pid_t, PinnedThread> ThreadPins::pinned() {
  std::lock_guard lock(mutex_);
  std::map<pid_t, PinnedThread> threads;
  for (const auto& [tid, pin] : pins_) {
    if (pin.start > 0) threads.emplace(tid, PinnedThread{pin.start, pin.cpus});
  }
  return threads;
}

bool ThreadPins::holds_for(std::string_view owner, pid_t except) {
  std::lock_guard lock(mutex_);
  forget_ended();
  return std::ranges::any_of(pins_, [&](const auto& entry) {
    if (entry.first == except || entry.second.owner != owner) return false;
    Result<CpuSet> now = get_affinity(entry.first);
    return now.ok() && now.value() == entry.second.cpus;
  });
}

}  // namespace numalign
