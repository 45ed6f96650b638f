// ThreadPins: which threads of this process are pinned for which grant, and what their masks and scheduling
// classes were before. One object serves the whole process, since affinity belongs to threads and any Worker
// can pin any thread. Thread-safety: all members may be called from any thread; a mutex serialises them.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "platform/threads/affinity.h"
#include "platform/threads/member_masks.h"
#include "platform/threads/scheduling.h"
#include "platform/threads/thread_choices.h"
#include "platform/threads/thread_roles.h"

namespace numalign {

// What became of one thread.
struct ThreadMove {
  pid_t tid;
  CpuSet before;
  CpuSet now;           // read back
  int errno_value = 0;  // why it could not be moved; 0 where it was, or where the kernel clipped the mask
  CpuSet earlier =
      {};  // by undo(): what it had chosen before it was pinned, of which it gets what lies in the pool
};

struct PinOutcome {
  std::vector<ThreadMove> moved;      // `now` is what was asked for
  std::vector<ThreadMove> unmovable;  // refused, or clipped by a cpuset
};

// What threads are pinned for: a grant, or a part of it, which is for none of its other threads.
struct PinTarget {
  std::string grant;
  std::string part = {};  // empty: what no part has
  auto operator<=>(const PinTarget&) const = default;
};

// The thread is pinned for another grant already.
struct AlreadyPinned {
  pid_t tid;
  std::string grant;
};

// Where the threads of one role go.
struct ThreadPlace {
  CpuSet cpus;
  bool one_each;          // every thread on one CPU of them, the least used
  CpuSet granted;         // all CPUs of the part, else all of the grant that no part has
  std::string part = {};  // of the grant, whose CPUs these are
};
using Placement = std::array<std::optional<ThreadPlace>, kThreadRoles>;  // by ThreadRole
using PlacementOutcome = std::array<PinOutcome, kThreadRoles>;           // by ThreadRole

// The thread would have nowhere to run but on the CPUs of real-time threads.
struct Starved {
  pid_t tid;
  CpuSet cpus;
};

class ThreadPins {
 public:
  static ThreadPins& of_this_process();

  // Pins one thread, or with tid -1 every thread of the process: passes over /proc/self/task until two in a
  // row find nothing to do, because threads may be born in between. Threads that end meanwhile are left out.
  // The grant may be empty: then nothing is remembered and nothing protects the pin from a later one. With
  // `replace` a pin for another grant is taken over; the mask from before the first pin is kept for undo().
  // A pin of the whole process leaves those threads where they belong that are pinned for a part of the
  // grant.
  Result<std::variant<PinOutcome, AlreadyPinned>> pin(pid_t tid, const CpuSet& cpus, const PinTarget& target,
                                                      const std::string& owner, bool replace);

  // Which of these threads (as pin()) is pinned for another grant, if one is.
  Result<std::optional<AlreadyPinned>> other_pin(pid_t tid, const std::string& grant);

  // Pins every thread of the process whose role has a place, and leaves the others alone; passes as pin()
  // does. Threads that are pinned for a part stay, unless their role has a place on one.
  Result<std::variant<PlacementOutcome, AlreadyPinned>> place(const Placement& placement,
                                                              const std::string& grant,
                                                              const std::string& owner, bool replace);

  // Threads have been born on CPUs of the grant by the calling thread, whose choice undo() is to give them:
  // `tid` (or 0 where it is not known) on its present mask. `granted`: all CPUs of the target.
  void adopt(pid_t tid, const CpuSet& granted, const PinTarget& target, const std::string& owner);

  // What to tell the kernel for the calling thread to have again what it has now, wherever its cpuset cuts
  // that.
  Result<CpuSet> asked_mask();

  // Tells the kernel so, for the calling thread. False where its cpuset has none of these CPUs.
  Result<bool> ask(const CpuSet& cpus);

  // The calling thread has chosen `chosen`, which could not be asked for: it gets all of its cpuset until
  // settle_choices(). `all`: what to ask for then.
  Result<Done> ask_later(const CpuSet& chosen, const CpuSet& all);

  // The threads that are pinned for `grant` are about to leave its cpuset: asks for what they have chosen as
  // far as it has some of that. The kernel refuses a mask of which the cpuset that they go to has nothing,
  // but from Linux 6.2 on it keeps one that it has taken.
  void ask_choices(const std::string& grant);

  // Threads get what they have chosen that could not be asked for when they left a grant, because their
  // cpuset had none of it. `limit`: what it has now. Answers how many; with `dry_run` it changes nothing.
  Result<int> settle_choices(const CpuSet& limit, bool dry_run);

  // Gives a thread another scheduling class until undo(), and reads it back. Refused where threads of this
  // process would have nowhere else to run than on the CPUs of real-time threads. EPERM, ESRCH as
  // set_scheduling().
  Result<std::variant<Scheduling, Starved>> schedule(pid_t tid, const Scheduling& wanted,
                                                     const std::string& grant);

  // Gives the threads pinned for `grant`, and those born since with its mask, their earlier mask as far as it
  // lies in `pool`, else the whole pool, and their earlier scheduling class. `pool` must be free of exclusive
  // CPUs.
  Result<PinOutcome> undo(const std::string& grant, const CpuSet& pool);

  // As undo(), of some threads, whichever grant they are pinned for. `grant` is no longer that of the whole
  // process: threads that are not pinned are not its own. Those of its parts stay. `granted`: its CPUs, on
  // which threads may be that were never pinned, since their process was started there.
  Result<PinOutcome> share(const std::string& grant, const CpuSet& granted, const std::vector<pid_t>& tids,
                           const CpuSet& pool);

  // Moves the threads pinned for `target`, and those born since with its mask, to `cpus`: its own have
  // changed. A thread that has chosen some of them for itself keeps those of its choice that are left. Those
  // that were parked come back; so do those that the kernel has let out because their CPUs went offline.
  // Passes over the threads until two in a row find nothing to do. Wherever threads are moved, real-time
  // classes that would starve others from now on are taken back.
  Result<PinOutcome> follow(const PinTarget& target, const CpuSet& cpus);

  // None of the target's CPUs is online: has the threads pinned for it wait on `pool`. They stay pinned, and
  // come back by follow().
  Result<PinOutcome> park(const PinTarget& target, const CpuSet& pool);

  // The threads that are to run on a target: those pinned for it; where the whole process was, all but those
  // that are pinned for another, or were born of such.
  Result<std::vector<pid_t>> threads_for(const PinTarget& target);

  // Of threads_for() those that may run on other CPUs than `cpus`, which are the target's, and where they
  // should be (`now`). One that has chosen some of these CPUs is where it should be. None where none of them
  // is online. Changes nothing.
  Result<std::vector<ThreadMove>> strays(const PinTarget& target, const CpuSet& cpus);

  // Moves those of threads_for() that are in `tids` to where they were put; `cpus` as for strays().
  Result<PinOutcome> recall(const PinTarget& target, const CpuSet& cpus, const std::vector<pid_t>& tids);

  // Remembers the masks of all threads: a cgroup into which they are moved changes them, and the next pin(),
  // place() or undo() is to go by what they were.
  Result<Done> remember_masks();

  // What the threads that run on no grant have chosen, for pins from now on; as ThreadChoices::learn().
  Result<Done> learn_choices(const CpuSet& limit, const CpuSet& all, const std::vector<MemberThread>& known);

  // What is known of the choices of threads that are not pinned, and what the kernel was told last.
  std::vector<MemberThread> choices();

  // Whether threads other than `except` are pinned for a grant of `owner`.
  bool holds_for(std::string_view owner, pid_t except);

 private:
  struct Pin {
    PinTarget target;
    std::string owner;
    CpuSet before;  // its choice
    CpuSet cpus;
    CpuSet given = {};  // its mask when it was last moved to `cpus`: the kernel leaves out those offline
    bool parked = false;
    bool asked = false;  // see ask_choices()
    uint64_t start = 0;  // of the thread, in clock ticks: its id may be another's by now
  };

  // What concerns all threads of a target, also those that have no pin of their own because they were born
  // with the mask of another.
  struct Granted {
    CpuSet before;  // the choice of the main thread, else of its first thread, before the first pin
    CpuSet cpus;    // where they were put
    bool whole_process = false;
  };

  struct Scheduled {
    std::string grant;
    Scheduling before;
    Scheduling now;
  };

  Result<std::variant<PinOutcome, AlreadyPinned>> pin_for_nobody(pid_t tid, const CpuSet& cpus);

  // Where a thread goes.
  struct Destination {
    CpuSet cpus;
    std::string part;
    CpuSet granted;  // all CPUs of the part, else all that no part has
  };

  // Which threads to move, and where to.
  struct Moves {
    std::function<Result<std::vector<pid_t>>()> threads;
    std::function<Destination(pid_t)> destination_of;
    std::function<void(ThreadMove, const CpuSet& wanted)> done;
    bool whole_process;
  };

  Result<std::optional<AlreadyPinned>> move(const Moves& moves, const std::string& grant,
                                            const std::string& owner, bool replace);
  const Pin* pinned_for_part(pid_t tid, const std::string& grant);
  std::vector<pid_t> threads_for(const PinTarget& target, const std::vector<pid_t>& threads);
  void holds_whole_process(const PinTarget& target);
  Result<Done> restore(pid_t tid, const CpuSet& before, bool is_asked, const CpuSet& pool,
                       PinOutcome& outcome);
  Result<CpuSet> mask_of(pid_t tid) const;
  bool is_on(const CpuSet& granted, pid_t tid, const Pin& pin) const;
  void note_choice(pid_t tid, const CpuSet& cpus);
  const Granted* born_on(const CpuSet& mask) const;
  CpuSet choice_of(pid_t tid, const CpuSet& mask) const;
  std::vector<ThreadMove> places_of(const PinTarget& target, const CpuSet& cpus,
                                    const std::vector<pid_t>& threads);
  const Pin* pinned_for_another(pid_t tid, const std::string& grant);
  std::optional<Starved> starved(pid_t real_time_too);
  void relax();
  void unschedule(pid_t tid, const Scheduled& scheduled);

  std::mutex mutex_;
  std::map<pid_t, Pin> pins_;
  std::map<PinTarget, Granted> granted_;
  std::map<pid_t, Scheduled> scheduled_;
  std::map<pid_t, CpuSet> earlier_;  // see remember_masks()
  ThreadChoices choices_;
};

}  // namespace numalign
