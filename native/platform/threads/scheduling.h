// The scheduling class of threads: the only file that calls sched_setattr(2) and sched_getattr(2).
// Thread-safety: every function may be called from any thread. A thread id of 0 means the calling
// thread.
#pragma once

#include <sys/types.h>

#include "core/result.h"
#include "platform/syscall.h"

namespace numalign {

struct Scheduling {
  int policy = 0;    // SCHED_OTHER, SCHED_FIFO, ... as <sched.h> numbers them
  int priority = 0;  // 1 to 99 with SCHED_FIFO and SCHED_RR, else 0
  int nice = 0;      // -20 to 19; ignored with a real-time policy
  bool reset_on_fork =
      false;  // threads and processes that it starts are SCHED_OTHER with nice 0 (a greater one stays)
  friend bool operator==(const Scheduling&, const Scheduling&) = default;

  // True for SCHED_FIFO, SCHED_RR and SCHED_DEADLINE: the thread runs before all ordinary threads
  // of its CPU, without a limit.
  bool is_real_time() const;
};

// ESRCH: no such thread.
Result<Scheduling> get_scheduling(pid_t tid);

// For SCHED_OTHER and SCHED_FIFO only. EPERM: RLIMIT_RTPRIO or RLIMIT_NICE is too low without
// CAP_SYS_NICE, or the control group may not run real-time threads; ESRCH: no such thread.
Result<Done> set_scheduling(pid_t tid, const Scheduling& wanted);

}  // namespace numalign
