// ThreadPins: which threads of this process are pinned for which grant, and what their masks were before. One
// object serves the whole process, since affinity belongs to threads and any Worker can pin any thread.
// Thread-safety: all members may be called from any thread; a mutex serialises them.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "platform/affinity.h"

namespace numalign {

// What became of one thread.
struct ThreadMove {
  pid_t tid;
  CpuSet before;
  CpuSet now;           // read back
  int errno_value = 0;  // why it could not be moved; 0 where it was, or where the kernel clipped the mask
};

struct PinOutcome {
  std::vector<ThreadMove> moved;      // `now` is what was asked for
  std::vector<ThreadMove> unmovable;  // refused, or clipped by a cpuset
};

// The thread is pinned for another grant already.
struct AlreadyPinned {
  pid_t tid;
  std::string grant;
};

class ThreadPins {
 public:
  static ThreadPins& of_this_process();

  // Pins one thread, or with tid -1 every thread of the process: passes over /proc/self/task until two in a
  // row find nothing to do, because threads may be born in between. Threads that end meanwhile are left out.
  // `grant` may be empty: then nothing is remembered and nothing protects the pin from a later one. With
  // `replace` a pin for another grant is taken over; the mask from before the first pin is kept for undo().
  Result<std::variant<PinOutcome, AlreadyPinned>> pin(pid_t tid, const CpuSet& cpus, const std::string& grant,
                                                      const std::string& owner, bool replace);

  // Gives the threads pinned for `grant`, and those born since with its mask, their earlier mask as far as it
  // lies in `pool`, else the whole pool. `pool` must be free of exclusive CPUs.
  Result<PinOutcome> undo(const std::string& grant, const CpuSet& pool);

  // Moves the threads pinned for `grant`, and those born since with its mask, to `cpus`: the grant's own have
  // changed. A thread that has chosen some of them for itself keeps those of its choice that are left. Those
  // that were parked come back; so do those that the kernel has let out because their CPUs went offline.
  // Passes over the threads until two in a row find nothing to do.
  Result<PinOutcome> follow(const std::string& grant, const CpuSet& cpus);

  // None of the grant's CPUs is online: has the threads pinned for it wait on `pool`. They stay pinned, and
  // come back by follow().
  Result<PinOutcome> park(const std::string& grant, const CpuSet& pool);

  // Whether threads other than `except` are pinned for a grant of `owner`.
  bool holds_for(std::string_view owner, pid_t except);

 private:
  struct Pin {
    std::string grant;
    std::string owner;
    CpuSet before;
    CpuSet cpus;
    CpuSet given = {};  // its mask when it was last given all of `cpus`: the kernel leaves out those offline
    bool parked = false;
  };

  const Pin* pinned_for_another(pid_t tid, const std::string& grant);

  std::mutex mutex_;
  std::map<pid_t, Pin> pins_;
  std::map<std::string, CpuSet> before_;  // by grant: the mask of its first thread before the first pin
};

}  // namespace numalign
