#include "platform/threads/thread_choices.h"

#include <algorithm>
#include <utility>

#include "platform/threads/affinity.h"

namespace numalign {
namespace {

// What the kernel makes of a mask: a thread whose mask has none of its cpuset gets all of it.
CpuSet cut(const CpuSet& asked, const CpuSet& limit) {
  if (limit.empty()) return asked;
  CpuSet left = asked & limit;
  return left.empty() ? limit : left;
}

}  // namespace

const ThreadChoice* ThreadChoices::find(pid_t tid) const {
  auto found = choices_.find(tid);
  return found == choices_.end() ? nullptr : &found->second;
}

std::map<pid_t, CpuSet> ThreadChoices::unsettled(const CpuSet& limit) const {
  std::map<pid_t, CpuSet> found;
  for (const auto& [tid, choice] : choices_) {
    const bool is_cut = choice.chosen.intersects(limit) && !limit.is_subset_of(choice.chosen);
    if (is_cut && choice.chosen != choice.asked) found[tid] = choice.chosen;
  }
  return found;
}

void ThreadChoices::learn(const std::map<pid_t, CpuSet>& masks, const std::vector<pid_t>& others,
                          const CpuSet& limit, const CpuSet& all, const std::vector<MemberThread>& known) {
  std::map<pid_t, ThreadChoice> learned;
  auto made_of = [&](pid_t tid, const CpuSet& mask) -> std::optional<ThreadChoice> {
    auto row = std::ranges::find_if(known, [&](const MemberThread& each) {
      return each.tid == tid && (each.applied == mask || cut(each.asked, limit) == mask);
    });
    if (row != known.end()) return ThreadChoice{row->chosen, row->asked};
    const ThreadChoice* choice = find(tid);
    if (choice && cut(choice->asked, limit) == mask) return *choice;
    return std::nullopt;
  };
  auto inherited = [&](const CpuSet& mask) -> std::optional<ThreadChoice> {
    if (std::optional<ThreadChoice> main = made_of(own_process_id(), mask)) return main;
    if (mask == limit) return std::nullopt;
    for (const MemberThread& row : known) {
      if (row.applied == mask) return ThreadChoice{row.chosen, row.asked};
    }
    for (const auto& [tid, choice] : choices_) {
      if (cut(choice.asked, limit) == mask) return choice;
    }
    return std::nullopt;
  };
  for (const auto& [tid, mask] : masks) {
    std::optional<ThreadChoice> choice = made_of(tid, mask);
    if (!choice && !find(tid)) {
      choice = inherited(mask);
      if (choice) choice->start = 0;
    }
    const CpuSet& own = mask == limit ? all : mask;
    learned[tid] = choice ? *std::move(choice) : ThreadChoice{own, own};
  }
  for (pid_t tid : others) {
    if (const ThreadChoice* choice = find(tid)) learned[tid] = *choice;
  }
  choices_ = std::move(learned);
}

}  // namespace numalign
