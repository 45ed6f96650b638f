#include "platform/threads/member_choices.h"

#include <algorithm>
#include <utility>

#include "platform/threads/affinity.h"

namespace numalign {

KnownThreads::KnownThreads(std::vector<MemberThread> threads, std::vector<pid_t> unpinned,
                           std::vector<CpuSet> grants, CpuSet limit)
    : threads_(std::move(threads)),
      unpinned_(std::move(unpinned)),
      grants_(std::move(grants)),
      limit_(std::move(limit)) {
  if (!std::ranges::is_sorted(threads_, {}, &MemberThread::tid))
    std::ranges::stable_sort(threads_, {}, &MemberThread::tid);
  std::ranges::sort(unpinned_);
}

std::span<const MemberThread> KnownThreads::of(pid_t tid) const {
  const auto is_before = [](const MemberThread& each, pid_t tid) { return each.tid < tid; };
  const auto is_other = [tid](const MemberThread& each) { return each.tid != tid; };
  const auto begin = std::lower_bound(threads_.begin(), threads_.end(), tid, is_before);
  const auto end = std::find_if(begin, threads_.end(), is_other);
  return {threads_.data() + (begin - threads_.begin()), static_cast<size_t>(end - begin)};
}

bool KnownThreads::is_in_grant(const CpuSet& mask) const {
  return std::any_of(grants_.begin(), grants_.end(),
                     [&](const CpuSet& cpus) { return mask.is_subset_of(cpus); });
}

const MemberThread* KnownThreads::find(pid_t tid, const CpuSet& mask) const {
  const auto entries = of(tid);
  // There are two if a crash came between the old mask and the new one.
  auto stands = std::ranges::find(entries, mask, &MemberThread::applied);
  // The applied mask may have been clipped again since: a CPU went offline, or a partition came.
  if (stands == entries.end()) {
    stands = std::ranges::find_if(entries,
                                  [&](const MemberThread& each) { return within_limit(each.asked) == mask; });
  }
  if (stands != entries.end()) return &*stands;
  if (!is_unpinned(tid) && !is_in_grant(mask)) return nullptr;
  auto entry = std::ranges::find_if(entries, [](const MemberThread& each) { return !each.applied.empty(); });
  return entry == entries.end() ? nullptr : &*entry;
}

const MemberThread* KnownThreads::parent_of(pid_t tid, const CpuSet& mask) const {
  if (!of(tid).empty()) return nullptr;
  auto parent = std::ranges::find(threads_, mask, &MemberThread::applied);
  return parent == threads_.end() ? nullptr : &*parent;
}

MemberChoice choice_of(pid_t tid, const CpuSet& mask, const KnownThreads& known, const CpuSet& limit,
                       const CpuSet& all) {
  const bool has_all = !limit.empty() && limit.is_subset_of(mask);
  MemberThread thread{tid, mask, mask, mask, mask};
  if (const MemberThread* entry = known.find(tid, mask)) {
    thread = *entry;
    thread.place = mask;
  } else if (has_all) {
    thread.chosen = all;
  } else if (const MemberThread* parent = known.parent_of(tid, mask)) {
    thread.chosen = parent->chosen;
  }
  const bool is_free = has_all && mask.is_subset_of(all) && all.is_subset_of(thread.chosen);
  return {std::move(thread), is_free};
}

Result<std::vector<MemberChoice>> member_choices(const MemberChoicesRequest& request) {
  Result<std::vector<pid_t>> threads = threads_of(request.pid);
  if (!threads.ok()) return threads.error();
  const KnownThreads known(request.known, request.unpinned, request.grants, request.limit);
  std::vector<MemberChoice> choices;
  for (pid_t tid : threads.value()) {
    Result<CpuSet> mask = get_affinity(tid);
    // The thread has ended.
    if (!mask.ok() || mask.value().empty()) continue;
    choices.push_back(choice_of(tid, mask.value(), known, request.limit, request.all));
  }
  return choices;
}

}  // namespace numalign
