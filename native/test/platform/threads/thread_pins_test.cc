#include "platform/threads/thread_pins.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <thread>

namespace numalign {
namespace {

// What this process may use, restored after each test; tests that need two CPUs are skipped on a machine with
// one.
class ThreadPinsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (all_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  }
  void TearDown() override { (void)set_affinity(0, all_); }

  PinOutcome pin_or_die(pid_t tid, const CpuSet& cpus, const PinTarget& target, bool replace = false) {
    auto result = pins_.pin(tid, cpus, target, "owner", replace);
    EXPECT_TRUE(result.ok());
    return std::get<PinOutcome>(std::move(result).value());
  }

  CpuSet all_ = get_affinity(0).value();
  CpuSet first_{all_.first()};
  CpuSet second_{all_.next(all_.first() + 1)};
  ThreadPins pins_;
};

CpuSet mask(pid_t tid = 0) { return get_affinity(tid).value(); }

TEST_F(ThreadPinsTest, MovesAThreadAndGivesBackItsMask) {
  PinOutcome outcome = pin_or_die(0, first_, {"grant"});
  ASSERT_EQ(outcome.moved.size(), 1u);
  EXPECT_EQ(outcome.moved[0].before, all_);
  EXPECT_EQ(mask(), first_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(), all_);
}

TEST_F(ThreadPinsTest, NeverRestoresCpusOutsideTheSharedPool) {
  pin_or_die(0, first_, {"grant"});
  ASSERT_TRUE(pins_.undo("grant", second_).ok());
  EXPECT_EQ(mask(), second_);
  (void)set_affinity(0, first_);
  pin_or_die(0, first_, {"grant"});
  ASSERT_TRUE(pins_.undo("grant", second_).ok());
  EXPECT_EQ(mask(), second_) << "nothing of the old mask is left in the pool: the pool it is";
}

TEST_F(ThreadPinsTest, LeavesAThreadAloneThatHasChosenOtherCpusSince) {
  pin_or_die(0, first_, {"grant"});
  (void)set_affinity(0, second_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(), second_);
}

TEST_F(ThreadPinsTest, TakesThreadsBornUnderThePinOffTheCpusToo) {
  pin_or_die(0, first_, {"grant"});
  std::atomic<pid_t> child = 0;
  std::atomic<bool> stop = false;
  std::thread thread([&] {
    child = current_thread_id();
    while (!stop) std::this_thread::yield();
  });
  while (child == 0) std::this_thread::yield();
  EXPECT_EQ(mask(child), first_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(child), all_);
  // Also where it is pinned once more.
  pin_or_die(0, first_, {"grant"});
  ASSERT_TRUE(set_affinity(child, first_).ok());
  pin_or_die(child, first_, {"grant"});
  pins_.adopt(child, first_, {"grant"}, "owner");
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(child), all_);
  // As where the grant has a cgroup, which they leave.
  pin_or_die(0, first_, {"grant"});
  ASSERT_TRUE(set_affinity(child, first_).ok());
  ASSERT_TRUE(pins_.remember_masks().ok());
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(child), all_);
  stop = true;
  thread.join();
}

TEST_F(ThreadPinsTest, ProtectsAPinFromAnotherGrantUnlessToldToReplace) {
  pin_or_die(0, first_, {"one"});
  auto refused = pins_.pin(0, second_, {"two"}, "owner", false);
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(std::get<AlreadyPinned>(refused.value()).grant, "one");
  EXPECT_EQ(mask(), first_);
  pin_or_die(0, second_, {"two"}, true);
  ASSERT_TRUE(pins_.undo("one", all_).ok());
  EXPECT_EQ(mask(), second_) << "the thread belongs to the second grant now";
  ASSERT_TRUE(pins_.undo("two", all_).ok());
  EXPECT_EQ(mask(), all_) << "the mask from before the first pin";
}

TEST_F(ThreadPinsTest, MovesEveryThreadOfTheProcess) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; i++) {
    threads.emplace_back([&] {
      while (!stop) std::this_thread::yield();
    });
  }
  PinOutcome outcome = pin_or_die(-1, first_, {"grant"});
  EXPECT_GE(outcome.moved.size(), 9u);
  for (pid_t tid : process_threads().value()) EXPECT_EQ(mask(tid), first_);
  EXPECT_TRUE(pins_.holds_for("owner", current_thread_id()));
  EXPECT_FALSE(pins_.holds_for("another owner", current_thread_id()));
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  for (pid_t tid : process_threads().value()) EXPECT_EQ(mask(tid), all_);
  EXPECT_FALSE(pins_.holds_for("owner", 0));
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ThreadPinsTest, SharesSomeThreadsOfAGrantAndLeavesTheOthers) {
  std::atomic<bool> stop = false;
  std::atomic<pid_t> tids[2] = {0, 0};
  std::vector<std::thread> threads;
  for (std::atomic<pid_t>& tid : tids) {
    threads.emplace_back([&] {
      tid = current_thread_id();
      while (!stop) std::this_thread::yield();
    });
    while (tid == 0) std::this_thread::yield();
  }
  pin_or_die(-1, first_, {"grant"});
  Result<Undone> shared = pins_.share("grant", first_, {tids[0]}, second_);
  ASSERT_TRUE(shared.ok());
  ASSERT_EQ(shared.value().outcome.moved.size(), 1u);
  EXPECT_EQ(shared.value().outcome.moved[0].earlier, all_) << "its choice";
  EXPECT_EQ(mask(tids[0]), second_);
  EXPECT_EQ(mask(tids[1]), first_);
  const std::vector<pid_t> left = pins_.threads_for({"grant"}).value();
  EXPECT_EQ(std::ranges::count(left, tids[0].load()), 0);
  EXPECT_EQ(std::ranges::count(left, tids[1].load()), 1);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(tids[0]), second_) << "it has left the grant already";
  EXPECT_EQ(mask(tids[1]), all_);
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ThreadPinsTest, SharesThreadsThatTheGrantWasTheBirthplaceOfAndLeavesThoseOfItsParts) {
  ASSERT_TRUE(set_affinity(0, first_).ok());
  const pid_t tid = current_thread_id();
  ASSERT_TRUE(pins_.share("grant", first_, {tid}, second_).ok());
  EXPECT_EQ(mask(), second_) << "the process was started on the grant";
  pin_or_die(0, first_, {"grant", "part"});
  ASSERT_TRUE(pins_.share("grant", all_, {tid}, second_).ok());
  EXPECT_EQ(mask(), first_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
}

TEST_F(ThreadPinsTest, EndsUnderThreadsThatAreBornAllTheTime) {
  std::atomic<bool> stop = false;
  std::thread breeder([&] {
    while (!stop) std::thread([] {}).join();
  });
  for (int i = 0; i < 20; i++) {
    pin_or_die(-1, i % 2 == 0 ? first_ : second_, {"grant"}, true);
  }
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  stop = true;
  breeder.join();
}

// A thread of a role, waiting until it is let go.
class RoleThread {
 public:
  explicit RoleThread(ThreadRole role)
      : thread_([this] {
          tid_ = current_thread_id();
          while (!stop_) std::this_thread::yield();
        }) {
    while (tid_ == 0) std::this_thread::yield();
    ThreadRoles::of_this_process().set(tid_, role);
  }
  ~RoleThread() {
    ThreadRoles::of_this_process().forget(tid_);
    stop_ = true;
    thread_.join();
  }
  pid_t tid() const { return tid_; }

 private:
  std::atomic<pid_t> tid_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_F(ThreadPinsTest, PlacesEveryRoleWhereItIsToBe) {
  const CpuSet both = first_ | second_;
  RoleThread worker(ThreadRole::kWorker), one(ThreadRole::kPool), two(ThreadRole::kPool),
      other(ThreadRole::kOther);
  Placement placement;
  placement.fill(ThreadPlace{second_, false, both});
  placement[static_cast<size_t>(ThreadRole::kMain)] = ThreadPlace{first_, false, both};
  placement[static_cast<size_t>(ThreadRole::kPool)] = ThreadPlace{both, true, both};
  auto placed = pins_.place(placement, "grant", "owner", false);
  ASSERT_TRUE(placed.ok());
  EXPECT_EQ(mask(getpid()), first_);
  EXPECT_EQ(mask(worker.tid()), second_);
  EXPECT_EQ(mask(other.tid()), second_);
  EXPECT_EQ(mask(one.tid()).size(), 1);
  EXPECT_NE(mask(one.tid()), mask(two.tid()));
  const auto& outcome = std::get<PlacementOutcome>(placed.value());
  EXPECT_EQ(outcome[static_cast<size_t>(ThreadRole::kPool)].moved.size(), 2u);

  // Another grant finds them taken, and nothing is moved.
  auto refused = pins_.place(placement, "another", "owner", false);
  EXPECT_EQ(std::get<AlreadyPinned>(refused.value()).grant, "grant");

  // What is lost is left; who was placed on what stays is not moved.
  ASSERT_TRUE(pins_.follow({"grant"}, second_).ok());
  EXPECT_EQ(mask(getpid()), second_);
  EXPECT_EQ(mask(worker.tid()), second_);
  ASSERT_TRUE(pins_.follow({"grant"}, both).ok());
  EXPECT_EQ(mask(getpid()), both) << "its place is gone: now it is all of the grant";

  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  for (pid_t tid : process_threads().value()) EXPECT_EQ(mask(tid), all_);
}

TEST_F(ThreadPinsTest, LeavesRolesAloneThatHaveNoPlace) {
  RoleThread pool(ThreadRole::kPool), other(ThreadRole::kOther);
  Placement placement;
  placement[static_cast<size_t>(ThreadRole::kPool)] = ThreadPlace{first_, false, first_ | second_};
  ASSERT_TRUE(pins_.place(placement, "grant", "owner", false).ok());
  EXPECT_EQ(mask(pool.tid()), first_);
  EXPECT_EQ(mask(other.tid()), all_);
  EXPECT_EQ(mask(), all_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
}

TEST_F(ThreadPinsTest, LeavesAPlacedThreadWhereItIsWhenTheGrantGrows) {
  Placement placement;
  placement.fill(ThreadPlace{first_, false, first_ | second_});
  ASSERT_TRUE(pins_.place(placement, "grant", "owner", false).ok());
  ASSERT_TRUE(pins_.follow({"grant"}, all_ | first_ | second_).ok());
  EXPECT_EQ(mask(), first_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
}

TEST_F(ThreadPinsTest, TakesAPlacedThreadOffOtherCpusOfTheGrantToo) {
  Placement placement;
  placement.fill(ThreadPlace{first_, false, first_ | second_});
  ASSERT_TRUE(pins_.place(placement, "grant", "owner", false).ok());
  (void)set_affinity(0, second_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(), all_);
}

TEST_F(ThreadPinsTest, TakesAdoptedThreadsOffTheCpus) {
  RoleThread worker(ThreadRole::kWorker), unknown(ThreadRole::kOther);
  ASSERT_TRUE(set_affinity(worker.tid(), first_).ok());
  ASSERT_TRUE(set_affinity(unknown.tid(), first_).ok());
  pins_.adopt(worker.tid(), first_, {"grant"}, "owner");
  EXPECT_EQ(
      std::get<AlreadyPinned>(pins_.pin(worker.tid(), second_, {"another"}, "owner", false).value()).grant,
      "grant");
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(worker.tid()), all_);
  EXPECT_EQ(mask(unknown.tid()), all_) << "what it has started";
}

// Threads of a part and of the rest, and what tells them apart.
class PartPinsTest : public ThreadPinsTest {
 protected:
  const PinTarget rest_{"grant"}, part_{"grant", "io"};
};

TEST_F(PartPinsTest, LeavesThreadsOfAPartThereWhenTheProcessIsPinned) {
  RoleThread worker(ThreadRole::kWorker), other(ThreadRole::kOther);
  pin_or_die(worker.tid(), first_, part_);
  PinOutcome outcome = pin_or_die(-1, second_, rest_);
  EXPECT_EQ(mask(worker.tid()), first_);
  EXPECT_EQ(mask(other.tid()), second_);
  for (const ThreadMove& move : outcome.moved) EXPECT_NE(move.tid, worker.tid());
  // As a cgroup does, into which the process has moved.
  ASSERT_TRUE(set_affinity(worker.tid(), all_).ok());
  pin_or_die(-1, second_, rest_, true);
  EXPECT_EQ(mask(worker.tid()), first_);
  EXPECT_EQ(pins_.threads_for(part_).value(), std::vector<pid_t>{worker.tid()});
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  for (pid_t tid : process_threads().value()) EXPECT_EQ(mask(tid), all_);
}

TEST_F(PartPinsTest, MovesAThreadFromTheRestToAPartAndBack) {
  pin_or_die(-1, second_, rest_);
  pin_or_die(0, first_, part_);
  EXPECT_EQ(mask(), first_);
  EXPECT_EQ(std::get<AlreadyPinned>(pins_.pin(0, second_, {"another"}, "owner", false).value()).grant,
            "grant");
  pin_or_die(0, second_, rest_);
  EXPECT_EQ(mask(), second_);
  EXPECT_TRUE(pins_.threads_for(part_).value().empty());
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(), all_) << "the mask from before the first pin";
}

TEST_F(PartPinsTest, MovesThreadsOffAPartThatWereOnlyBornThere) {
  RoleThread born(ThreadRole::kOther);
  pin_or_die(0, first_, part_);
  ASSERT_TRUE(set_affinity(born.tid(), first_).ok());
  EXPECT_EQ(pins_.threads_for(rest_).value(), std::vector<pid_t>{});
  pin_or_die(-1, second_, rest_);
  EXPECT_EQ(mask(born.tid()), second_);
  EXPECT_EQ(mask(), first_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(born.tid()), all_);
}

TEST_F(PartPinsTest, FindsThreadsThatAreNotOnTheirOwn) {
  RoleThread worker(ThreadRole::kWorker), born(ThreadRole::kOther), other(ThreadRole::kOther);
  pin_or_die(worker.tid(), first_, part_);
  pin_or_die(-1, second_, rest_);
  ASSERT_TRUE(set_affinity(born.tid(), first_).ok());
  EXPECT_TRUE(pins_.strays(part_, first_).value().empty());
  // The worker has gone to the rest, another to the part.
  ASSERT_TRUE(set_affinity(worker.tid(), second_).ok());
  std::vector<ThreadMove> strays = pins_.strays(part_, first_).value();
  ASSERT_EQ(strays.size(), 1u);
  EXPECT_EQ(strays[0].tid, worker.tid());
  EXPECT_EQ(strays[0].now, first_);
  strays = pins_.strays(rest_, second_).value();
  ASSERT_EQ(strays.size(), 1u);
  EXPECT_EQ(strays[0].tid, born.tid());
  ASSERT_TRUE(pins_.recall(part_, first_, {worker.tid(), born.tid()}).ok());
  EXPECT_EQ(mask(worker.tid()), first_);
  EXPECT_EQ(mask(born.tid()), first_) << "for the part only the worker is to run";
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
}

TEST_F(PartPinsTest, FollowAndWaitApartFromTheRest) {
  RoleThread worker(ThreadRole::kWorker);
  ASSERT_TRUE(set_affinity(worker.tid(), first_).ok());
  pins_.adopt(worker.tid(), first_, part_, "owner");
  pin_or_die(-1, second_, rest_);
  ASSERT_TRUE(pins_.follow(rest_, all_).ok());
  EXPECT_EQ(mask(worker.tid()), first_);
  EXPECT_EQ(mask(), all_);
  ASSERT_TRUE(pins_.follow(rest_, second_).ok());
  ASSERT_TRUE(pins_.park(part_, second_).ok());
  EXPECT_EQ(mask(worker.tid()), second_);
  pin_or_die(-1, second_, rest_);
  EXPECT_EQ(mask(worker.tid()), second_) << "it waits";
  EXPECT_TRUE(pins_.strays(part_, first_).value().empty());
  ASSERT_TRUE(pins_.follow(part_, first_).ok());
  EXPECT_EQ(mask(worker.tid()), first_);
  EXPECT_EQ(mask(), second_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(worker.tid()), all_);
}

TEST_F(PartPinsTest, LeavesAThreadWhereItIsInAPartOfSeveralCpus) {
  const CpuSet all = first_ | second_;
  Placement placement;
  placement[static_cast<size_t>(ThreadRole::kMain)] = ThreadPlace{first_, false, all, "io"};
  ASSERT_TRUE(pins_.place(placement, "grant", "owner", false).ok());
  ASSERT_TRUE(pins_.follow(part_, all).ok());
  EXPECT_EQ(mask(), first_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
}

TEST_F(PartPinsTest, PlacesARoleOnAPart) {
  RoleThread worker(ThreadRole::kWorker), other(ThreadRole::kOther);
  pin_or_die(other.tid(), first_, part_);
  Placement placement;
  placement.fill(ThreadPlace{second_, false, second_});
  placement[static_cast<size_t>(ThreadRole::kWorker)] = ThreadPlace{first_, false, first_, "io"};
  ASSERT_TRUE(pins_.place(placement, "grant", "owner", false).ok());
  EXPECT_EQ(mask(worker.tid()), first_);
  EXPECT_EQ(mask(other.tid()), first_) << "of the part it was";
  EXPECT_EQ(mask(), second_);
  EXPECT_EQ(pins_.threads_for(part_).value().size(), 2u);
  pin_or_die(-1, second_, rest_);
  EXPECT_EQ(mask(worker.tid()), first_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
}

TEST_F(ThreadPinsTest, GivesARealTimeClassOnlyWhereNobodyStarves) {
  RoleThread victim(ThreadRole::kOther), worker(ThreadRole::kWorker);
  pin_or_die(worker.tid(), first_, {"grant"});
  pin_or_die(victim.tid(), first_, {"grant"});
  const Scheduling ordinary = get_scheduling(0).value();
  const Scheduling fifo{.policy = SCHED_FIFO, .priority = 7, .nice = 0, .reset_on_fork = true};
  auto refused = pins_.schedule(worker.tid(), fifo, "grant");
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(std::get<Starved>(refused.value()).tid, victim.tid());
  EXPECT_FALSE(get_scheduling(worker.tid()).value().is_real_time());

  pin_or_die(victim.tid(), second_, {"grant"});
  auto given = pins_.schedule(worker.tid(), fifo, "grant");
  if (!given.ok()) {
    ASSERT_TRUE(pins_.undo("grant", all_).ok());
    ASSERT_EQ(given.error().errno_value, EPERM);
    GTEST_SKIP() << "needs CAP_SYS_NICE";
  }
  EXPECT_EQ(std::get<Scheduling>(given.value()), fifo);

  // A later move that would starve a thread takes it back.
  pin_or_die(victim.tid(), first_, {"grant"});
  EXPECT_EQ(get_scheduling(worker.tid()).value(), ordinary);
  pin_or_die(victim.tid(), second_, {"grant"});
  ASSERT_TRUE(pins_.schedule(worker.tid(), fifo, "grant").ok());
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(get_scheduling(worker.tid()).value(), ordinary);
}

// Of the calling thread alone, for ever.
void drop_cap_sys_nice() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  ASSERT_EQ(syscall(SYS_capget, &header, data), 0);
  for (auto& word : data) word.inheritable = 0;
  data[0].effective &= ~(1U << CAP_SYS_NICE);
  data[0].permitted &= ~(1U << CAP_SYS_NICE);
  ASSERT_EQ(syscall(SYS_capset, &header, data), 0);
}

TEST_F(ThreadPinsTest, KeepsAFlagThatItMayNotTakeBack) {
  std::thread([&] {
    const Scheduling favoured{.policy = SCHED_OTHER, .priority = 0, .nice = -2, .reset_on_fork = true};
    if (!pins_.schedule(gettid(), favoured, "grant").ok()) GTEST_SKIP() << "needs CAP_SYS_NICE";
    drop_cap_sys_nice();
    Scheduling nicer{.policy = SCHED_OTHER, .priority = 0, .nice = 4, .reset_on_fork = false};
    auto changed = pins_.schedule(gettid(), nicer, "grant");
    ASSERT_TRUE(changed.ok()) << changed.error().message;
    nicer.reset_on_fork = true;
    EXPECT_EQ(std::get<Scheduling>(changed.value()), nicer);
    ASSERT_TRUE(pins_.undo("grant", all_).ok());
    EXPECT_EQ(get_scheduling(0).value(), nicer) << "less would need the right too";
  }).join();
}

TEST_F(ThreadPinsTest, SaysWhatTheKernelClipped) {
  CpuSet wanted = first_ | CpuSet{8191};
  PinOutcome outcome = pin_or_die(0, wanted, {"grant"});
  EXPECT_TRUE(outcome.moved.empty());
  ASSERT_EQ(outcome.unmovable.size(), 1u);
  EXPECT_EQ(outcome.unmovable[0].errno_value, 0);
  EXPECT_EQ(outcome.unmovable[0].now, first_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(), all_);
}

// A thread that waits.
class Waiting {
 public:
  Waiting()
      : thread_([this] {
          tid_ = current_thread_id();
          while (!stop_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }) {
    while (tid_ == 0) std::this_thread::yield();
  }
  ~Waiting() {
    stop_ = true;
    thread_.join();
  }
  pid_t tid() const { return tid_; }

 private:
  std::atomic<pid_t> tid_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Runs a test's body where it alone chooses the ids of threads: in a namespace of its own, with its own
// /proc. Elsewhere other programs on the machine would get ids that have just been used.
template <typename Body>
void in_pid_namespace(Body body) {
  constexpr int kNoRight = 77;
  auto run_forked = [](auto&& run) {
    const pid_t child = fork();
    if (child == 0) _exit(run());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  };
  // A process that has entered such a namespace starts no threads: its child does.
  const int result = run_forked([&] {
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) return kNoRight;
    return run_forked([&] {
      if (mount(nullptr, "/", nullptr, MS_PRIVATE | MS_REC, nullptr) != 0) return kNoRight;
      if (mount("proc", "/proc", "proc", 0, nullptr) != 0) return kNoRight;
      body();
      return testing::Test::HasFailure() ? 1 : 0;
    });
  });
  if (result == kNoRight) GTEST_SKIP() << "needs a namespace of processes";
  EXPECT_EQ(result, 0) << "failed in the namespace, see above";
}

// A thread with the id of one that has ended. REQUIRES: in_pid_namespace.
std::unique_ptr<Waiting> with_id_of(std::unique_ptr<Waiting> ended) {
  const pid_t tid = ended->tid();
  ended.reset();
  // Start times are counted in hundredths of a second.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::ofstream("/proc/sys/kernel/ns_last_pid") << tid - 1 << std::flush;
  auto next = std::make_unique<Waiting>();
  EXPECT_EQ(next->tid(), tid);
  return next;
}

TEST_F(ThreadPinsTest, InheritsNothingFromAnEndedThreadWithItsId) {
  in_pid_namespace([&] {
    auto ended = std::make_unique<Waiting>();
    const pid_t tid = ended->tid();
    ASSERT_TRUE(set_affinity(tid, second_).ok());
    pin_or_die(tid, first_, {"grant"});
    const Scheduling nicer{.policy = SCHED_OTHER, .priority = 0, .nice = 4, .reset_on_fork = false};
    ASSERT_TRUE(pins_.schedule(tid, nicer, "grant").ok());
    std::unique_ptr<Waiting> next = with_id_of(std::move(ended));
    EXPECT_TRUE(pins_.threads_for({"grant"}).value().empty());
    ASSERT_TRUE(set_scheduling(tid, nicer).ok());
    pin_or_die(tid, first_, {"grant"});
    ASSERT_TRUE(pins_.undo("grant", all_).ok());
    EXPECT_EQ(mask(tid), all_) << "its own mask, not what the ended thread had chosen";
    EXPECT_EQ(get_scheduling(tid).value(), nicer) << "its own class";
  });
}

TEST_F(ThreadPinsTest, InheritsNoChoiceThatCouldNotBeRequestedYet) {
  in_pid_namespace([&] {
    auto ended = std::make_unique<Waiting>();
    const pid_t tid = ended->tid();
    ASSERT_TRUE(set_affinity(tid, first_).ok());
    pin_or_die(tid, first_, {"grant"});
    ASSERT_TRUE(pins_.undo("grant", second_).ok()) << "the pool has nothing of its choice";
    std::unique_ptr<Waiting> next = with_id_of(std::move(ended));
    EXPECT_EQ(pins_.settle_choices(all_, true).value(), 0);
  });
}

TEST_F(ThreadPinsTest, BringsThreadsBackThatHaveNotEnded) {
  in_pid_namespace([&] {
    Waiting unpinned;
    auto ended = std::make_unique<Waiting>();
    auto reborn = std::make_unique<Waiting>();
    const PinTarget part{"grant", "io"};
    pin_or_die(-1, first_, {"grant"});
    pin_or_die(0, second_, part);
    const Scheduling nicer{.policy = SCHED_OTHER, .priority = 0, .nice = 4, .reset_on_fork = false};
    ASSERT_TRUE(pins_.schedule(unpinned.tid(), nicer, "grant").ok());
    Waiting born;
    ASSERT_TRUE(set_affinity(born.tid(), first_).ok());
    Result<Undone> undone = pins_.undo("grant", all_);
    ASSERT_TRUE(undone.ok());
    EXPECT_EQ(mask(unpinned.tid()), all_);
    EXPECT_EQ(mask(born.tid()), all_);
    ended.reset();
    reborn = with_id_of(std::move(reborn));
    undone.value().come_back();
    EXPECT_EQ(mask(), second_);
    EXPECT_EQ(mask(unpinned.tid()), first_);
    EXPECT_EQ(mask(born.tid()), first_) << "as it was born there";
    EXPECT_EQ(mask(reborn->tid()), all_) << "another thread with the id";
    EXPECT_EQ(pins_.threads_for(part).value(), std::vector<pid_t>{current_thread_id()});
    const std::vector<pid_t> rest = pins_.threads_for({"grant"}).value();
    EXPECT_EQ(std::ranges::count(rest, unpinned.tid()), 1);
    EXPECT_EQ(std::ranges::count(rest, born.tid()), 1) << "the grant has the whole process again";
    ASSERT_TRUE(pins_.undo("grant", all_).ok());
    for (pid_t tid : {current_thread_id(), unpinned.tid(), born.tid()}) EXPECT_EQ(mask(tid), all_);
  });
}

TEST_F(ThreadPinsTest, BringsASharedThreadBackToItsGrant) {
  Waiting thread;
  pin_or_die(-1, first_, {"grant"});
  Result<Undone> shared = pins_.share("grant", first_, {thread.tid()}, second_);
  ASSERT_TRUE(shared.ok());
  EXPECT_EQ(mask(thread.tid()), second_);
  shared.value().come_back();
  EXPECT_EQ(mask(thread.tid()), first_);
  EXPECT_EQ(std::ranges::count(pins_.threads_for({"grant"}).value(), thread.tid()), 1);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(thread.tid()), all_);
}

TEST_F(ThreadPinsTest, RestoresRememberedMasksOfWhatWasNotPinnedAfterAll) {
  ASSERT_TRUE(set_affinity(0, second_).ok());
  ASSERT_TRUE(pins_.remember_masks().ok());
  // As a cgroup does, which the thread enters and leaves.
  ASSERT_TRUE(set_affinity(0, first_).ok());
  ASSERT_TRUE(pins_.remember_masks().ok());
  pins_.restore_masks();
  EXPECT_EQ(mask(), second_);
  ASSERT_TRUE(set_affinity(0, all_).ok());
  PinOutcome outcome = pin_or_die(0, first_, {"grant"});
  EXPECT_EQ(outcome.moved[0].before, all_) << "they are forgotten";
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
}

TEST_F(ThreadPinsTest, UndoesAPinWhenNoDescriptorIsLeft) {
  Waiting thread;
  pin_or_die(-1, first_, {"grant"});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool can_list = process_threads().ok();
  const bool is_undone = pins_.undo("grant", all_).ok();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(can_list);
  EXPECT_TRUE(is_undone);
  EXPECT_EQ(mask(), all_);
  EXPECT_EQ(mask(thread.tid()), all_);
}

TEST(Affinity, KnowsTheProcessOfAThread) {
  Waiting thread;
  EXPECT_TRUE(is_thread_of(getpid(), thread.tid()));
  EXPECT_TRUE(is_thread_of(1, 1));
  EXPECT_FALSE(is_thread_of(getpid(), 1));
  EXPECT_FALSE(is_thread_of(1, thread.tid()));
}

TEST(Affinity, FindsTheCpusetWhateverTheMask) {
  std::thread([&] {
    CpuSet all = get_affinity(0).value();
    ASSERT_TRUE(set_affinity(0, CpuSet{all.first()}).ok());
    EXPECT_EQ(cpuset_limit().value(), all);
  }).join();
}

TEST(Affinity, ReportsErrnoAndSyscall) {
  Result<Done> nowhere = set_affinity(0, CpuSet{16'383});
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().errno_value, EINVAL);
  EXPECT_EQ(nowhere.error().syscall, "sched_setaffinity");
  EXPECT_EQ(get_affinity((1 << 22) - 1).error().errno_value, ESRCH);
}

}  // namespace
}  // namespace numalign
