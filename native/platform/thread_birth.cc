#include "platform/thread_birth.h"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>

#include "platform/affinity.h"
#include "platform/thread_roles.h"

namespace numalign {
namespace {

Result<std::vector<pid_t>> sorted_threads() {
  Result<std::vector<pid_t>> threads = process_threads();
  if (!threads.ok()) return threads;
  std::vector<pid_t> list = std::move(threads).value();
  std::ranges::sort(list);
  return list;
}

// Another one each time, in the 15 characters of a thread's name.
std::string next_marker() {
  static std::atomic<unsigned> births = 0;
  return "na-born-" + std::to_string(births++ % 1'000'000);
}

}  // namespace

Result<ThreadBirth> ThreadBirth::on(const CpuSet& cpus) {
  Result<std::vector<pid_t>> threads = sorted_threads();
  if (!threads.ok()) return threads.error();
  Result<CpuSet> before = get_affinity(0);
  if (!before.ok()) return before.error();
  if (Result<Done> set = set_affinity(0, cpus); !set.ok()) return set.error();
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  std::string marker = next_marker();
  prctl(PR_SET_NAME, marker.c_str());
  return ThreadBirth(std::move(before).value(), name, std::move(marker), std::move(threads).value());
}

ThreadBirth::ThreadBirth(CpuSet before, std::string name, std::string marker, std::vector<pid_t> threads)
    : before_(std::move(before)),
      name_(std::move(name)),
      marker_(std::move(marker)),
      threads_(std::move(threads)) {}

ThreadBirth::ThreadBirth(ThreadBirth&& other) noexcept
    : active_(std::exchange(other.active_, false)),
      before_(std::move(other.before_)),
      name_(std::move(other.name_)),
      marker_(std::move(other.marker_)),
      threads_(std::move(other.threads_)) {}

ThreadBirth::~ThreadBirth() {
  if (!active_) return;
  prctl(PR_SET_NAME, name_.c_str());
  // Refused only where the cpuset has changed since; the mask inside the new one is then as good.
  (void)set_affinity(0, before_);
}

std::optional<pid_t> ThreadBirth::newborn() const {
  Result<std::vector<pid_t>> now = sorted_threads();
  if (!now.ok()) return std::nullopt;
  std::vector<pid_t> born;
  std::ranges::set_difference(now.value(), threads_, std::back_inserter(born));
  std::vector<pid_t> marked;
  std::ranges::copy_if(born, std::back_inserter(marked),
                       [&](pid_t tid) { return thread_name(tid) == marker_; });
  if (marked.size() == 1) return marked.front();
  if (born.size() == 1) return born.front();
  return std::nullopt;
}

}  // namespace numalign
