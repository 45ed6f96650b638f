#include "platform/member_masks.h"

#include <algorithm>
#include <map>
#include <set>

#include "platform/affinity.h"

namespace numalign {
namespace {

constexpr int kCleanPasses = 2;
// Bounds a process that makes threads faster than they can be moved.
constexpr int kMaxPasses = 64;

class Confiner {
 public:
  explicit Confiner(const ConfinementRequest& request) : request_(request) {
    for (const MemberThread& thread : request.known) known_.emplace(thread.tid, thread);
    unpinned_.insert(request.unpinned.begin(), request.unpinned.end());
  }

  void look_at(pid_t tid) {
    Result<CpuSet> mask = get_affinity(tid);
    // It has ended.
    if (!mask.ok() || mask.value().empty()) return;
    const MemberThread* entry = entry_of(tid, mask.value());
    if (runs_in_grant(mask.value())) {
      if (entry) restore_place(*entry, mask.value());
      if (entry) remember({tid, entry->chosen, wanted(entry->chosen)}, entry->chosen);
      return;
    }
    const CpuSet chosen = entry ? entry->chosen : mask.value();
    const CpuSet to_be = request_.only_narrow ? narrowed(mask.value()) : wanted(chosen);
    CpuSet now = mask.value();
    int refused = 0;
    if (to_be != now && request_.dry_run) {
      result_.moved++;
      now = to_be;
    } else if (to_be != now) {
      Result<Done> set = set_affinity(tid, to_be);
      if (!set.ok() && set.error().errno_value == ESRCH) return;
      if (!set.ok()) refused = set.error().errno_value;
      Result<CpuSet> read_back = get_affinity(tid);
      if (!read_back.ok()) return;
      if (read_back.value() != now) result_.moved++;
      now = std::move(read_back).value();
    }
    if (now.intersects(request_.taken)) result_.stuck.push_back({tid, refused, now});
    remember({tid, chosen, now}, now);
  }

  Confinement finish() && {
    for (auto& [tid, thread] : remembered_) result_.threads.push_back(std::move(thread));
    return std::move(result_);
  }

 private:
  // Where it was on the grant's CPUs, as far as it is known; the kernel may have reset that.
  void restore_place(const MemberThread& thread, const CpuSet& now) {
    const CpuSet& place = thread.applied;
    if (place == now || place.empty() || !place.is_subset_of(now) || !unpinned_.contains(thread.tid)) return;
    if (request_.dry_run || set_affinity(thread.tid, place).ok()) result_.moved++;
  }

  CpuSet wanted(const CpuSet& chosen) const {
    CpuSet left = chosen - request_.taken;
    return left.empty() ? request_.pool : left;
  }

  CpuSet narrowed(const CpuSet& mask) const { return mask.intersects(request_.taken) ? wanted(mask) : mask; }

  bool runs_in_grant(const CpuSet& mask) const {
    return std::any_of(request_.grants.begin(), request_.grants.end(),
                       [&](const CpuSet& cpus) { return mask.is_subset_of(cpus); });
  }

  // What is known of a thread. One that was born of a confined thread has its mask and no entry of its own.
  const MemberThread* entry_of(pid_t tid, const CpuSet& mask) const {
    auto own = known_.find(tid);
    if (own != known_.end()) {
      const bool stands = own->second.applied == mask || unpinned_.contains(tid) || runs_in_grant(mask);
      return stands ? &own->second : nullptr;
    }
    for (const auto& [other, thread] : known_) {
      if (thread.applied == mask) return &thread;
    }
    return nullptr;
  }

  void remember(MemberThread thread, const CpuSet& now) {
    if (thread.chosen != now || thread.applied != thread.chosen) remembered_.emplace(thread.tid, thread);
  }

  const ConfinementRequest& request_;
  std::map<pid_t, MemberThread> known_;
  std::map<pid_t, MemberThread> remembered_;
  std::set<pid_t> unpinned_;
  Confinement result_;
};

}  // namespace

Result<Confinement> confine_member(const ConfinementRequest& request) {
  Confiner confiner(request);
  std::set<pid_t> seen;
  for (int pass = 0, clean = 0; pass < kMaxPasses && clean < kCleanPasses; pass++) {
    Result<std::vector<pid_t>> threads = threads_of(request.pid);
    if (!threads.ok()) return threads.error();
    bool found_new = false;
    for (pid_t tid : threads.value()) {
      if (!seen.insert(tid).second) continue;
      found_new = true;
      confiner.look_at(tid);
    }
    clean = found_new ? 0 : clean + 1;
  }
  return std::move(confiner).finish();
}

}  // namespace numalign
