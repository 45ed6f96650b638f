// ThreadPins: which threads of this process are pinned for which grant, and their masks and
// scheduling classes before. One object serves the whole process, because affinity belongs to
// threads and any Worker can pin any thread. Thread-safety: all members may be called from any
// thread; a mutex serialises them.
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

// The result for one thread.
struct ThreadMove {
  pid_t tid;
  CpuSet before;
  CpuSet now;           // read back
  int errno_value = 0;  // why it could not be moved; 0 if it was, or if the kernel clipped the mask
  CpuSet earlier = {};  // for undo(): its choice before the pin, of which it gets the part in the pool
};

struct PinOutcome {
  std::vector<ThreadMove> moved;      // `now` is what was requested
  std::vector<ThreadMove> unmovable;  // refused, or clipped by a cpuset
};

// The threads of a grant that have left it.
struct Undone {
  PinOutcome outcome;
  // Everything of the grant is as before again, for threads that have not ended, and that no other
  // grant has taken. Needs no file. Empty if no thread was on it.
  std::function<void()> come_back;
};

// What threads are pinned for: a grant, or a part of it that none of its other threads may use.
struct PinTarget {
  std::string grant;
  std::string part = {};  // empty: the CPUs of no part
  auto operator<=>(const PinTarget&) const = default;
};

// The thread is already pinned for another grant.
struct AlreadyPinned {
  pid_t tid;
  std::string grant;
};

// Where the threads of one role go.
struct ThreadPlace {
  CpuSet cpus;
  bool one_each;          // each thread on the least used one of these CPUs
  CpuSet granted;         // all CPUs of the part, or all of the grant in no part
  std::string part = {};  // the part of the grant that has these CPUs
};
using Placement = std::array<std::optional<ThreadPlace>, kThreadRoles>;  // by ThreadRole
using PlacementOutcome = std::array<PinOutcome, kThreadRoles>;           // by ThreadRole

// A pinned thread as it was just after its pin.
struct PinnedThread {
  uint64_t start;  // in clock ticks since boot
  CpuSet cpus;     // its mask
};

// The thread could run only on the CPUs of real-time threads.
struct Starved {
  pid_t tid;
  CpuSet cpus;
};

class ThreadPins {
 public:
  static ThreadPins& of_this_process();

  // Pins one thread, or every thread of the process with tid -1: passes over /proc/self/task until
  // two passes in a row find nothing to do, because threads may start in between. Leaves out
  // threads that end meanwhile. With an empty grant, nothing is remembered and nothing protects the
  // pin from a later one. `replace` takes over a pin for another grant; the mask from before the
  // first pin is kept for undo(). A pin of the whole process leaves threads that are pinned for a
  // part of the grant where they belong.
  Result<std::variant<PinOutcome, AlreadyPinned>> pin(pid_t tid, const CpuSet& cpus, const PinTarget& target,
                                                      const std::string& owner, bool replace);

  // The one of these threads (as for pin()) that is pinned for another grant, if any.
  Result<std::optional<AlreadyPinned>> other_pin(pid_t tid, const std::string& grant);

  // Pins every thread of the process whose role has a place, and leaves the others alone; makes
  // passes like pin(). Threads pinned for a part stay, unless their role has a place on one.
  Result<std::variant<PlacementOutcome, AlreadyPinned>> place(const Placement& placement,
                                                              const std::string& grant,
                                                              const std::string& owner, bool replace);

  // Adopts threads that the calling thread started on CPUs of the grant; undo() gives them the
  // calling thread's choice. `tid`: its present mask counts (0 if unknown). `granted`: all CPUs of
  // the target.
  void adopt(pid_t tid, const CpuSet& granted, const PinTarget& target, const std::string& owner);

  // What to request for the calling thread to get its present mask back, wherever its cpuset clips
  // that.
  Result<CpuSet> asked_mask();

  // What the main thread has chosen, whatever numalign made of it: the mask before it was pinned or
  // clipped.
  Result<CpuSet> chosen_mask();

  // Requests it for the calling thread. False if its cpuset has none of these CPUs.
  Result<bool> ask(const CpuSet& cpus);

  // Notes that the calling thread has chosen `chosen`, which could not be requested: it gets all of
  // its cpuset until settle_choices(). `all`: what to request then.
  Result<Done> ask_later(const CpuSet& chosen, const CpuSet& all);

  // The threads pinned for `grant` are about to leave its cpuset: requests their choices, as far as
  // it has some of them. The kernel refuses a mask that has nothing of the cpuset they go to, but
  // since Linux 6.2 it keeps one that it accepted.
  void ask_choices(const std::string& grant);

  // Gives threads their choice that could not be requested when they left a grant, because their
  // cpuset had none of it. `limit`: their cpuset now. Returns how many; with `dry_run`, changes
  // nothing.
  Result<int> settle_choices(const CpuSet& limit, bool dry_run);

  // Gives a thread another scheduling class until undo(), and reads it back. Refused if threads of
  // this process could then run only on the CPUs of real-time threads. EPERM, ESRCH as
  // set_scheduling().
  Result<std::variant<Scheduling, Starved>> schedule(pid_t tid, const Scheduling& wanted,
                                                     const std::string& grant);

  // Gives the threads pinned for `grant`, and those born since with its mask, their earlier mask
  // within `pool`, else the whole pool, and their earlier scheduling class. `pool` must be free of
  // exclusive CPUs.
  Result<Undone> undo(const std::string& grant, const CpuSet& pool);

  // Like undo(), for some threads, whichever grant they are pinned for. `grant` no longer has the
  // whole process: unpinned threads are not its own. Threads of its parts stay. `granted`: its
  // CPUs, which may have threads that were never pinned, because their process was started there.
  Result<Undone> share(const std::string& grant, const CpuSet& granted, const std::vector<pid_t>& tids,
                       const CpuSet& pool);

  // Moves the threads pinned for `target`, and those born since with its mask, to `cpus`, after its
  // CPUs have changed. A thread that has chosen some of them keeps the part of its choice that is
  // left. Parked threads come back; so do threads that the kernel let out because their CPUs went
  // offline. Passes over the threads until two passes in a row find nothing to do. Wherever threads
  // are moved, takes back real-time classes that would starve others.
  Result<PinOutcome> follow(const PinTarget& target, const CpuSet& cpus);

  // None of the target's CPUs is online: makes the threads pinned for it wait on `pool`. They stay
  // pinned, and follow() brings them back.
  Result<PinOutcome> park(const PinTarget& target, const CpuSet& pool);

  // The threads that should run on a target: those pinned for it; if the whole process was, all but
  // those pinned for another target, or born of such.
  Result<std::vector<pid_t>> threads_for(const PinTarget& target);

  // Those of threads_for() that may run on CPUs other than `cpus`, the target's, and where they
  // should be (`now`). A thread that has chosen some of these CPUs is where it should be. Empty if
  // none of them is online. Changes nothing.
  Result<std::vector<ThreadMove>> strays(const PinTarget& target, const CpuSet& cpus);

  // Moves those of threads_for() that are in `tids` back to their place; `cpus` as for strays().
  Result<PinOutcome> recall(const PinTarget& target, const CpuSet& cpus, const std::vector<pid_t>& tids);

  // Remembers the masks of all threads that it does not remember yet, because moving them into a
  // cgroup changes masks. The next pin(), place(), share() or undo() that succeeds uses and forgets
  // them.
  Result<Done> remember_masks();

  // There will be none: gives threads the remembered masks, and forgets them.
  void restore_masks();

  // Learns the choices of threads that run on no grant, for later pins; see ThreadChoices::learn().
  Result<Done> learn_choices(const CpuSet& limit, const CpuSet& all, const std::vector<MemberThread>& known);

  // The known choices of threads that are not pinned, with the last request to the kernel.
  std::vector<MemberThread> choices();

  // The pinned threads whose start is known.
  std::map<pid_t, PinnedThread> pinned();

  // True if threads other than `except` are pinned for a grant of `owner`.
  bool holds_for(std::string_view owner, pid_t except);

 private:
  struct Pin {
    PinTarget target;
    std::string owner;
    CpuSet before;  // its choice
    CpuSet cpus;
    CpuSet given = {};  // its mask when it was last moved to `cpus`, without offline CPUs
    bool parked = false;
    bool asked = false;  // see ask_choices()
    uint64_t start = 0;  // of the thread, in clock ticks: another thread may get its id; 0: unknown
  };

  // What concerns all threads of a target, even those without a pin because they were born with the
  // mask of another.
  struct Granted {
    CpuSet before;  // the choice of the main thread, else of its first thread, before the first pin
    CpuSet cpus;    // where they were put
    bool whole_process = false;
  };

  struct Scheduled {
    std::string grant;
    Scheduling before;
    Scheduling now;
    uint64_t start;
  };

  // What undo() has taken away.
  struct Departure {
    struct Mask {
      pid_t tid;
      uint64_t start;
      CpuSet cpus;
    };
    std::vector<Mask> masks;
    std::map<pid_t, Pin> pins;
    std::map<PinTarget, Granted> granted;
    std::map<pid_t, Scheduled> scheduled;
    std::optional<PinTarget> whole_process = {};  // no longer has it
  };

  Result<std::variant<PinOutcome, AlreadyPinned>> pin_for_nobody(pid_t tid, const CpuSet& cpus);

  // Where a thread goes.
  struct Destination {
    CpuSet cpus;
    std::string part;
    CpuSet granted;  // all CPUs of the part, else all in no part
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
  // True if undo() may have something to do.
  bool has_threads(const std::string& grant) const;
  void forget_ended();
  void forget_ended(pid_t tid);
  Result<std::vector<pid_t>> list_threads(std::optional<ThreadList>& list);
  Result<std::vector<pid_t>> threads();
  void come_back(const Departure& left);
  void leave(pid_t tid, const Result<CpuSet>& mask, const CpuSet& before, const Pin* pin, const CpuSet& pool,
             PinOutcome& outcome, Departure& left);
  void restore(pid_t tid, const CpuSet& before, bool is_asked, const CpuSet& pool, PinOutcome& outcome);
  Result<CpuSet> mask_of(pid_t tid) const;
  // The CPUs among some that are offline, as far as known.
  using OfflineAmong = std::function<CpuSet(const CpuSet&)>;
  static bool is_on(const CpuSet& granted, const Result<CpuSet>& now, const Pin& pin,
                    const OfflineAmong& offline);
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
  std::vector<pid_t> listed_;        // see threads()
  ThreadChoices choices_;
};

}  // namespace numalign
