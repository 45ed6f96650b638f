#include "platform/threads/member_masks.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "platform/threads/affinity.h"

namespace numalign {
namespace {

constexpr int kCleanPasses = 2;
// A limit for a process that starts threads faster than they can be moved.
constexpr int kMaxPasses = 64;

class Confiner {
 public:
  explicit Confiner(const ConfinementRequest& request)
      : request_(request), known_(request.known, request.unpinned, request.grants, request.limit) {}

  // REQUIRES: not called before with this thread.
  void look_at(pid_t tid) {
    Result<CpuSet> mask = get_affinity(tid);
    // The thread has ended.
    if (!mask.ok() || mask.value().empty()) return;
    // A thread born of a confined one has its mask and no entry.
    const MemberThread* entry = known_.find(tid, mask.value());
    const bool was_reset = entry && is_reset(*entry, mask.value());
    if (!entry) entry = known_.parent_of(tid, mask.value());
    const bool has_place = was_reset && restore_place(*entry, mask.value());
    if (has_place || known_.is_in_grant(mask.value())) {
      // The mask applied then shows if the mask before the pin was the thread's own choice.
      if (entry) remember({tid, entry->chosen, entry->applied, entry->asked}, entry->chosen);
      return;
    }
    const CpuSet chosen = entry ? entry->chosen : mask.value();
    const CpuSet to_be = request_.only_narrow ? narrowed(mask.value()) : wanted(chosen);
    CpuSet now = mask.value();
    const bool has_it = to_be == now || (entry && entry->asked == to_be && cut(to_be) == now);
    int refused = 0;
    if (!has_it && request_.dry_run) {
      refused = refusal(tid);
      if (refused == 0) result_.moved++;
      if (refused == 0) now = cut(to_be);
    } else if (!has_it) {
      Result<Done> set = set_mask(tid, to_be);
      const bool is_set = set.ok();
      // Its cpuset has none of what it has chosen.
      if (!is_set && set.error().errno_value == EINVAL && !request_.only_narrow)
        set = set_mask(tid, request_.pool);
      if (!set.ok() && set.error().errno_value == ESRCH) return;
      if (!set.ok()) refused = set.error().errno_value;
      // A cpuset clips nothing off a part of the thread's present mask.
      const bool is_part = is_set && to_be.is_subset_of(mask.value());
      Result<CpuSet> after = is_part && obeys_ ? Result<CpuSet>(to_be) : get_affinity(tid);
      if (!after.ok()) return;
      if (is_part) obeys_ = after.value() == to_be;
      if (after.value() != now) note_move({tid, now, after.value()});
      now = std::move(after).value();
    }
    const bool is_stuck = now.intersects(request_.taken);
    if (is_stuck) result_.stuck.push_back({tid, refused, now});
    if (request_.dry_run && (is_stuck || !has_it)) {
      add_place(was_reset ? entry->place : mask.value());
    }
    remember({tid, chosen, now, to_be}, now);
  }

  // Threads started faster than they could be checked: some may be anywhere.
  void give_up(pid_t pid) {
    if (!request_.taken.empty()) result_.stuck.push_back({pid, EAGAIN, request_.taken});
  }

  bool has_plan() const { return request_.dry_run && (result_.moved > 0 || result_.is_refused); }

  // `listed`: the threads that it has looked at.
  Confinement finish(std::vector<pid_t> listed) && {
    if (request_.dry_run) result_.listed = std::move(listed);
    // A thread that itself chooses a mask that others were given must not count as born of them.
    if (!remembered_.empty()) {
      for (pid_t tid : own_choices_) remembered_.push_back({tid, {}, {}, {}});
    }
    std::ranges::sort(remembered_, {}, &MemberThread::tid);
    result_.threads = std::move(remembered_);
    return std::move(result_);
  }

 private:
  // Before Linux 6.2, a change of its cpuset gives a thread all CPUs in it.
  bool is_reset(const MemberThread& thread, const CpuSet& now) const {
    const CpuSet& place = thread.place;
    return known_.is_unpinned(thread.tid) && !place.empty() && place != now && place.is_subset_of(now);
  }

  // Puts a thread whose mask the kernel has reset back on its CPUs in a grant.
  bool restore_place(const MemberThread& thread, const CpuSet& now) {
    if (!known_.is_in_grant(thread.place)) return false;
    if (request_.dry_run) {
      if (refusal(thread.tid) != 0) return false;
      result_.moved++;
      return true;
    }
    if (!set_mask(thread.tid, thread.place).ok()) return false;
    note_move({thread.tid, now, thread.place});
    return true;
  }

  // Its id may belong to another process by now, which root could move too.
  Result<Done> set_mask(pid_t tid, const CpuSet& cpus) const {
    if (is_thread_of(request_.pid, tid)) return set_affinity(tid, cpus);
    return syscall_error("sched_setaffinity", "cannot move thread " + std::to_string(tid), ESRCH);
  }

  void note_move(MaskChange change) {
    result_.moved++;
    result_.changes.push_back(std::move(change));
  }

  // What the kernel leaves of a mask: the part in the cpuset, or the pool if there is none.
  CpuSet cut(const CpuSet& mask) const {
    CpuSet left = known_.within_limit(mask);
    return left.empty() ? known_.within_limit(request_.pool) : left;
  }

  CpuSet wanted(const CpuSet& chosen) const {
    CpuSet left = chosen - request_.taken;
    return left.empty() ? request_.pool : left;
  }

  CpuSet narrowed(const CpuSet& mask) const { return mask.intersects(request_.taken) ? wanted(mask) : mask; }

  void add_place(const CpuSet& mask) {
    if (std::ranges::find(result_.places, mask) == result_.places.end()) result_.places.push_back(mask);
  }

  // Checks the first thread for all, because the threads of a process have the same user. If one
  // does not, the kernel refuses when it is moved.
  int refusal(pid_t tid) {
    if (!may_move_) may_move_ = may_move(tid);
    if (!*may_move_) result_.is_refused = true;
    return *may_move_ ? 0 : EPERM;
  }

  void remember(MemberThread thread, const CpuSet& now) {
    if (thread.chosen != now || thread.applied != thread.chosen)
      remembered_.push_back(std::move(thread));
    else
      own_choices_.push_back(thread.tid);
  }

  const ConfinementRequest& request_;
  const KnownThreads known_;
  // Each thread is looked at once.
  std::vector<MemberThread> remembered_;
  std::vector<pid_t> own_choices_;
  std::optional<bool> may_move_;
  // The kernel did what it was asked, so no filter or sandbox stands in for it.
  bool obeys_ = false;
  Confinement result_;
};

}  // namespace

bool may_move(pid_t tid) {
  Result<Done> set = set_affinity(tid, CpuSet{});
  return set.ok() || set.error().errno_value != EPERM;
}

bool put_back(pid_t pid, const std::vector<MaskChange>& changes) {
  bool has_moved = false;
  for (const auto& [tid, before, now] : changes) {
    Result<CpuSet> mask = get_affinity(tid);
    if (mask.ok() && mask.value() == now && is_thread_of(pid, tid))
      has_moved |= set_affinity(tid, before).ok();
  }
  return has_moved;
}

Result<Confinement> confine_member(const ConfinementRequest& request) {
  Confiner confiner(request);
  std::vector<pid_t> seen;  // ascending
  // Returns how many are new.
  const auto look_at_all = [&](const std::vector<pid_t>& threads) {
    const size_t known = seen.size();
    for (pid_t tid : threads) {
      if (std::binary_search(seen.begin(), seen.begin() + static_cast<ptrdiff_t>(known), tid)) continue;
      seen.push_back(tid);
      confiner.look_at(tid);
    }
    std::ranges::inplace_merge(seen, seen.begin() + static_cast<ptrdiff_t>(known));
    return seen.size() - known;
  };
  int clean = 0;
  Result<ThreadList> found = ThreadList::open(request.pid);
  if (!found.ok()) return found.error();
  ThreadList list = std::move(found).value();
  look_at_all(request.listed);
  for (int pass = 0; pass < kMaxPasses && clean < kCleanPasses; pass++) {
    Result<std::vector<pid_t>> threads = list.threads();
    const bool has_ended = !threads.ok() && threads.error().errno_value == ESRCH;
    if (has_ended || (seen.empty() && !threads.ok())) return threads.error();
    // What has moved must be known.
    if (!threads.ok()) break;
    clean = look_at_all(threads.value()) == 0 ? clean + 1 : 0;
    // The caller that moves them looks at all of them again.
    if (confiner.has_plan()) return std::move(confiner).finish(std::move(seen));
  }
  if (clean < kCleanPasses) confiner.give_up(request.pid);
  return std::move(confiner).finish(std::move(seen));
}

}  // namespace numalign
