#include "platform/threads/thread_birth.h"

#include <sys/prctl.h>

#include <atomic>
#include <utility>
#include <vector>

#include "platform/threads/affinity.h"
#include "platform/threads/thread_roles.h"

namespace numalign {
namespace {

// A read of /proc/self/task ends early if the thread that it has reached ends. Several reads are as
// good as complete.
constexpr int kReadings = 3;

Result<Done> add_threads(std::set<pid_t>& threads) {
  Result<std::vector<pid_t>> list = process_threads();
  if (!list.ok()) return list.error();
  threads.insert(list.value().begin(), list.value().end());
  return Done{};
}

// A new name each time, within the 15 characters of a thread's name.
std::string next_marker() {
  static std::atomic<unsigned> births = 0;
  return "na-born-" + std::to_string(births++ % 1'000'000);
}

}  // namespace

Result<ThreadBirth> ThreadBirth::on(const CpuSet& cpus, CpuSet after) {
  std::set<pid_t> threads;
  for (int reading = 0; reading < kReadings; reading++) {
    if (Result<Done> added = add_threads(threads); !added.ok()) return added.error();
  }
  if (Result<Done> set = set_affinity(0, cpus); !set.ok()) return set.error();
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  std::string marker = next_marker();
  prctl(PR_SET_NAME, marker.c_str());
  return ThreadBirth(std::move(after), name, std::move(marker), std::move(threads));
}

ThreadBirth::ThreadBirth(CpuSet after, std::string name, std::string marker, std::set<pid_t> threads)
    : after_(std::move(after)),
      name_(std::move(name)),
      marker_(std::move(marker)),
      threads_(std::move(threads)) {}

ThreadBirth::ThreadBirth(ThreadBirth&& other) noexcept
    : active_(std::exchange(other.active_, false)),
      after_(std::move(other.after_)),
      name_(std::move(other.name_)),
      marker_(std::move(other.marker_)),
      threads_(std::move(other.threads_)) {}

ThreadBirth::~ThreadBirth() {
  if (!active_) return;
  prctl(PR_SET_NAME, name_.c_str());
  // Refused only if the cpuset has none of these CPUs. Either the thread is about to leave it, or
  // it has changed since; the mask inside the new one is then as good.
  (void)set_affinity(0, after_);
}

std::optional<pid_t> ThreadBirth::newborn() const {
  std::set<pid_t> now, named;
  for (int reading = 0; reading < kReadings; reading++) {
    if (!add_threads(now).ok()) return std::nullopt;
    named.clear();
    for (pid_t tid : now) {
      if (threads_.contains(tid)) continue;
      const std::string name = thread_name(tid);
      if (name == marker_) return tid;
      // The thread named itself. A thread with its starter's name was not started here.
      if (!name.empty() && name != name_) named.insert(tid);
    }
  }
  return named.size() == 1 ? std::optional(*named.begin()) : std::nullopt;
}

}  // namespace numalign
