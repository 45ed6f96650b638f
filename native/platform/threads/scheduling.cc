#include "platform/threads/scheduling.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace numalign {
namespace {

// struct sched_attr of the kernel; headers that have it contradict <sched.h> on older systems.
struct Attributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;
  uint64_t deadline;
  uint64_t period;
};
constexpr uint64_t kResetOnFork = 1;

}  // namespace

bool Scheduling::is_real_time() const {
  return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

Result<Scheduling> get_scheduling(pid_t tid) {
  Attributes attributes{};
  if (syscall(SYS_sched_getattr, tid, &attributes, sizeof attributes, 0) != 0) {
    return syscall_error("sched_getattr",
                         "cannot read the scheduling class of thread " + std::to_string(tid));
  }
  return Scheduling{static_cast<int>(attributes.policy), static_cast<int>(attributes.priority),
                    attributes.nice, (attributes.flags & kResetOnFork) != 0};
}

Result<Done> set_scheduling(pid_t tid, const Scheduling& wanted) {
  Attributes attributes{};
  attributes.size = sizeof attributes;
  attributes.policy = static_cast<uint32_t>(wanted.policy);
  attributes.priority = static_cast<uint32_t>(wanted.priority);
  attributes.nice = wanted.nice;
  attributes.flags = wanted.reset_on_fork ? kResetOnFork : 0;
  if (syscall(SYS_sched_setattr, tid, &attributes, 0) == 0) return Done{};
  return syscall_error("sched_setattr", "cannot set the scheduling class of thread " + std::to_string(tid));
}

}  // namespace numalign
