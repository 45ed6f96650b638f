#include "platform/threads/member_masks.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include "platform/threads/affinity.h"
#include "support/waiting_process.h"

namespace numalign {
namespace {

CpuSet mask(pid_t tid) { return get_affinity(tid).value(); }

// A sanitizer may have one of its own.
int threads_of_this_process() { return static_cast<int>(process_threads().value().size()); }

// Threads of this process: one that others know, beside the test's own.
class Other {
 public:
  explicit Other(const CpuSet& cpus)
      : thread_([this, cpus] {
          (void)set_affinity(0, cpus);
          tid_ = current_thread_id();
          while (!stop_) {
            if (to_bear_ > 0) {
              to_bear_--;
              children_.emplace_back([this] {
                born_ = current_thread_id();
                while (!stop_) std::this_thread::yield();
              });
            }
            std::this_thread::yield();
          }
          for (std::thread& child : children_) child.join();
        }) {
    while (tid_ == 0) std::this_thread::yield();
  }
  ~Other() {
    stop_ = true;
    thread_.join();
  }

  pid_t tid() const { return tid_; }

  // The number of a thread that it starts.
  pid_t bear() {
    born_ = 0;
    to_bear_++;
    while (born_ == 0) std::this_thread::yield();
    return born_;
  }

 private:
  std::atomic<pid_t> tid_ = 0;
  std::atomic<pid_t> born_ = 0;
  std::atomic<int> to_bear_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> children_;
  std::thread thread_;
};

// Tests that need two CPUs are skipped on a machine with one. Masks are restored after each.
class MemberMasksTest : public testing::Test {
 protected:
  void SetUp() override {
    if (all_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  }
  void TearDown() override { (void)set_affinity(0, all_); }

  ConfinementRequest off(const CpuSet& taken) const {
    ConfinementRequest request{};
    request.pid = getpid();
    request.known = known_;
    request.taken = taken;
    request.pool = all_ - taken;
    return request;
  }

  // As a caller does: what is answered is given the next time.
  Confinement confine(const ConfinementRequest& request) {
    Result<Confinement> result = confine_member(request);
    EXPECT_TRUE(result.ok());
    known_ = result.value().threads;
    return std::move(result).value();
  }

  std::optional<MemberThread> known_of(pid_t tid) const {
    auto found =
        std::find_if(known_.begin(), known_.end(), [&](const auto& each) { return each.tid == tid; });
    return found == known_.end() ? std::nullopt : std::optional(*found);
  }

  // A thread that was put onto what it has chosen, but which its cpuset has cut: a partition has the first
  // CPU.
  void gets_back_after_a_partition(const CpuSet& chosen) const {
    Other other(all_ - first_);
    ConfinementRequest request = off({});
    request.known = {{other.tid(), chosen, all_ - first_, chosen}};
    request.limit = all_ - first_;
    EXPECT_EQ(confine_member(request).value().moved, 0);
    EXPECT_EQ(mask(other.tid()), all_ - first_);
    // The partition has ended.
    request.limit = all_;
    EXPECT_EQ(confine_member(request).value().moved, 1);
    EXPECT_EQ(mask(other.tid()), chosen);
  }

  // The thread ran on the first CPU, and a change of its cpuset gave it all. Before its grant it had
  // `applied`.
  ConfinementRequest off_after_reset(const Other& thread, const CpuSet& applied) const {
    ConfinementRequest request = off(first_);
    request.known = {{thread.tid(), all_, applied, applied, first_}};
    request.unpinned = {thread.tid()};
    return request;
  }

  CpuSet all_ = get_affinity(0).value();
  CpuSet first_{all_.first()};
  CpuSet second_{all_.next(all_.first() + 1)};
  pid_t self_ = current_thread_id();
  std::vector<MemberThread> known_;
};

TEST_F(MemberMasksTest, TakesEveryThreadOffAndGivesBackWhatItHad) {
  Other wide(all_), narrow(first_);
  Confinement done = confine(off(first_));
  EXPECT_TRUE(done.stuck.empty());
  EXPECT_EQ(done.moved, threads_of_this_process());
  for (pid_t tid : {self_, wide.tid(), narrow.tid()}) EXPECT_EQ(mask(tid), all_ - first_);
  EXPECT_EQ(known_of(narrow.tid()), (MemberThread{narrow.tid(), first_, all_ - first_, all_ - first_}));
  done = confine(off({}));
  EXPECT_EQ(mask(self_), all_);
  EXPECT_EQ(mask(wide.tid()), all_);
  EXPECT_EQ(mask(narrow.tid()), first_);
  EXPECT_TRUE(done.threads.empty()) << "each thread has the mask that it had chosen";
}

TEST_F(MemberMasksTest, PutsBackTheMasksThatHaveNotChangedSince) {
  Other wide(all_), narrow(first_), chooser(all_);
  const Confinement done = confine(off(first_));
  ASSERT_TRUE(set_affinity(chooser.tid(), all_).ok());
  EXPECT_FALSE(put_back(1, done.changes)) << "threads of another process";
  EXPECT_EQ(mask(wide.tid()), all_ - first_);
  EXPECT_TRUE(put_back(getpid(), done.changes));
  for (pid_t tid : {self_, wide.tid(), chooser.tid()}) EXPECT_EQ(mask(tid), all_);
  EXPECT_EQ(mask(narrow.tid()), first_);
  EXPECT_FALSE(put_back(getpid(), done.changes));
}

TEST_F(MemberMasksTest, DoesNothingTheSecondTime) {
  Other wide(all_);
  confine(off(first_));
  const std::vector<MemberThread> before = known_;
  Confinement again = confine(off(first_));
  EXPECT_EQ(again.moved, 0);
  EXPECT_EQ(again.threads, before);
}

TEST_F(MemberMasksTest, KeepsANewChoice) {
  Other other(all_);
  confine(off(first_));
  (void)set_affinity(other.tid(), all_);
  confine(off(first_));
  EXPECT_EQ(mask(other.tid()), all_ - first_) << "it must leave again";
  (void)set_affinity(other.tid(), first_);
  confine(off(first_));
  EXPECT_EQ(mask(other.tid()), all_ - first_);
  confine(off({}));
  EXPECT_EQ(mask(other.tid()), first_) << "the last that it has chosen";
}

TEST_F(MemberMasksTest, LeavesAloneWhoHasChosenByHimselfWhatOthersAreGiven) {
  Other chooser(all_ - first_);
  confine(off(first_));
  EXPECT_EQ(mask(self_), mask(chooser.tid()));
  confine(off({}));
  EXPECT_EQ(mask(self_), all_);
  EXPECT_EQ(mask(chooser.tid()), all_ - first_);
}

TEST_F(MemberMasksTest, TakesNoThreadThatWasThereForAChildOfAnother) {
  Other other(all_ - first_);
  known_ = {{1, all_, all_ - first_, all_ - first_}, {other.tid(), {}, {}, {}}};
  confine(off({}));
  EXPECT_EQ(mask(other.tid()), all_ - first_);
}

TEST_F(MemberMasksTest, RemembersWhoWasThereWhileAnotherIsConfined) {
  Other other(all_ - first_);
  confine(off(first_));
  ASSERT_TRUE(known_of(other.tid()));
  EXPECT_TRUE(known_of(other.tid())->applied.empty());
  EXPECT_FALSE(known_of(current_thread_id())->applied.empty());
  confine(off({}));
  EXPECT_FALSE(known_of(other.tid()));
}

TEST_F(MemberMasksTest, WidensThreadsThatWereBornConfined) {
  Other mother(all_);
  confine(off(first_));
  const pid_t child = mother.bear();
  EXPECT_EQ(mask(child), all_ - first_);
  confine(off({}));
  EXPECT_EQ(mask(child), all_);
}

TEST_F(MemberMasksTest, LeavesThreadsInAGrantOfTheirs) {
  Other holder(first_), escaped(all_);
  ConfinementRequest request = off(first_);
  request.grants = {first_};
  confine(request);
  EXPECT_EQ(mask(holder.tid()), first_);
  EXPECT_EQ(mask(escaped.tid()), all_ - first_);
  EXPECT_FALSE(known_of(holder.tid()).has_value());
}

TEST_F(MemberMasksTest, KnowsWhatThreadsInAGrantHadChosenBefore) {
  Other holder(all_);
  confine(off(first_));
  (void)set_affinity(holder.tid(), first_);
  ConfinementRequest request = off(first_);
  request.grants = {first_};
  confine(request);
  EXPECT_EQ(known_of(holder.tid())->chosen, all_);
  // It leaves the grant for the pool by other hands than ours.
  (void)set_affinity(holder.tid(), all_ - first_);
  request = off({});
  request.unpinned = {holder.tid()};
  confine(request);
  EXPECT_EQ(mask(holder.tid()), all_);
}

TEST_F(MemberMasksTest, OnlyNarrowsWhereItIsTold) {
  Other other(all_);
  confine(off(first_));
  ConfinementRequest request = off({});
  request.only_narrow = true;
  Confinement done = confine(request);
  EXPECT_EQ(done.moved, 0);
  EXPECT_EQ(mask(other.tid()), all_ - first_);
  EXPECT_EQ(known_of(other.tid())->chosen, all_);
}

TEST_F(MemberMasksTest, TellsInADryRunWhatItWouldDo) {
  Other other(all_);
  ConfinementRequest request = off(first_);
  request.dry_run = true;
  Confinement plan = confine_member(request).value();
  EXPECT_EQ(plan.moved, threads_of_this_process());
  EXPECT_EQ(plan.places, std::vector<CpuSet>{all_});
  EXPECT_EQ(mask(other.tid()), all_);
  request.dry_run = false;
  EXPECT_EQ(confine_member(request).value().threads, plan.threads);
}

TEST_F(MemberMasksTest, LooksAtListedThreadsFirstAndThenAtAllOthers) {
  Other other(all_);
  ConfinementRequest request = off(first_);
  request.dry_run = true;
  const std::vector<pid_t> listed = confine_member(request).value().listed;
  EXPECT_EQ(listed, process_threads().value());
  const pid_t child = other.bear();
  request.dry_run = false;
  // The last one has started after the list, which may name threads of other processes by now.
  test::WaitingProcess foreign;
  request.listed = {other.tid(), foreign.pid()};
  Confinement done = confine(request);
  EXPECT_EQ(done.moved, threads_of_this_process());
  EXPECT_EQ(done.changes.front().tid, other.tid());
  EXPECT_EQ(mask(child), all_ - first_);
  EXPECT_EQ(mask(foreign.pid()), all_);
  EXPECT_TRUE(done.listed.empty());
}

TEST_F(MemberMasksTest, PutsAThreadBackOnItsGrantAfterTheKernelHasResetItsMask) {
  Other other(all_);
  ConfinementRequest request = off_after_reset(other, second_);
  request.grants = {first_};
  Confinement done = confine(request);
  EXPECT_EQ(mask(other.tid()), first_);
  EXPECT_TRUE(done.stuck.empty());
  EXPECT_EQ(known_of(other.tid())->chosen, all_);
}

TEST_F(MemberMasksTest, TakesOtherThreadsWithTheSameMaskOffTheGrantOfAThreadWhoseMaskWasReset) {
  Other other(all_);
  ConfinementRequest request = off_after_reset(other, all_);
  request.grants = {first_};
  confine(request);
  EXPECT_EQ(mask(self_), all_ - first_);
}

TEST_F(MemberMasksTest, TakesAThreadWhoseMaskWasResetOffTheGrantOfAnother) {
  Other other(all_);
  confine(off_after_reset(other, second_));
  EXPECT_EQ(mask(other.tid()), all_ - first_);
}

TEST_F(MemberMasksTest, ReportsInADryRunWhereThreadsWereBeforeTheKernelResetTheirMasks) {
  Other other(all_);
  ConfinementRequest request = off_after_reset(other, second_);
  request.dry_run = true;
  EXPECT_EQ(confine_member(request).value().places, (std::vector<CpuSet>{all_, first_}));
}

TEST_F(MemberMasksTest, TellsInADryRunWhereThreadsAreThatItWouldMove) {
  Other other(first_);
  ConfinementRequest request = off(first_);
  request.dry_run = true;
  const std::vector<CpuSet> places = confine_member(request).value().places;
  EXPECT_EQ(places, (std::vector<CpuSet>{all_, first_}));
  request.grants = {first_};
  EXPECT_EQ(confine_member(request).value().places, std::vector<CpuSet>{all_});
  request.taken = CpuSet();
  EXPECT_TRUE(confine_member(request).value().places.empty());
}

TEST_F(MemberMasksTest, TellsInADryRunWhomItMayNotMove) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  Other other(all_);
  ConfinementRequest request = off(first_);
  request.dry_run = true;
  EXPECT_FALSE(confine_member(request).value().is_refused);
  Confinement plan;
  // The system call changes the user of one thread, the library's function that of all.
  std::thread([&] {
    ASSERT_EQ(syscall(SYS_setresuid, 65534, 65534, 65534), 0);
    EXPECT_TRUE(may_move(current_thread_id()));
    plan = confine_member(request).value();
  }).join();
  EXPECT_TRUE(plan.is_refused);
  const bool is_stuck = std::ranges::any_of(plan.stuck, [&](const StuckThread& each) {
    return each.tid == other.tid() && each.errno_value == EPERM && each.cpus == all_;
  });
  EXPECT_TRUE(is_stuck);
}

TEST_F(MemberMasksTest, LeavesMasksWhereItAsksWhoMayBeMoved) {
  Other other(first_);
  EXPECT_TRUE(may_move(other.tid()));
  EXPECT_EQ(mask(other.tid()), first_);
}

TEST_F(MemberMasksTest, LeavesWhatTheCpusetHasCutUntilItHasMore) { gets_back_after_a_partition(all_); }

TEST_F(MemberMasksTest, GivesBackWhatTheCpusetHadNothingOf) { gets_back_after_a_partition(first_); }

TEST_F(MemberMasksTest, KnowsWhatAThreadHasChosenAfterACpuHasGone) {
  Other other(all_ - first_);
  ConfinementRequest request = off({});
  request.known = {{other.tid(), all_, all_, all_}};
  request.limit = all_ - first_;
  Confinement done = confine_member(request).value();
  const auto found =
      std::ranges::find_if(done.threads, [&](const auto& each) { return each.tid == other.tid(); });
  ASSERT_NE(found, done.threads.end());
  EXPECT_EQ(found->chosen, all_);
}

TEST_F(MemberMasksTest, AsksAgainForAThreadThatWasRefused) {
  Other other(all_);
  ConfinementRequest request = off(first_);
  // It could not be moved the last time.
  request.known = {{other.tid(), all_, all_, all_ - first_}};
  request.limit = all_;
  request.dry_run = true;
  EXPECT_GT(confine_member(request).value().moved, 0);
  request.dry_run = false;
  EXPECT_TRUE(confine_member(request).value().stuck.empty());
  EXPECT_EQ(mask(other.tid()), all_ - first_);
}

TEST_F(MemberMasksTest, MovesEveryThreadOfAnotherProcess) {
  test::WaitingProcess other;
  const pid_t child = other.pid();
  ConfinementRequest request = off(first_);
  request.pid = child;
  Confinement done = confine(request);
  EXPECT_EQ(done.moved, static_cast<int>(threads_of(child).value().size()));
  EXPECT_EQ(mask(child), all_ - first_);
  EXPECT_EQ(mask(self_), all_);
  other.end();
  EXPECT_EQ(confine_member(request).error().errno_value, ESRCH);
}

TEST_F(MemberMasksTest, TellsWhoIsStuck) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a process of another user";
  test::WaitingProcess other;
  const pid_t child = other.pid();
  // As one that may move its own user's processes only.
  std::thread([&] {
    ASSERT_EQ(syscall(SYS_setresuid, -1, 65534, -1), 0);
    ConfinementRequest request = off(first_);
    request.pid = child;
    Confinement done = confine_member(request).value();
    ASSERT_EQ(done.stuck.size(), threads_of(child).value().size());
    for (const StuckThread& thread : done.stuck) {
      EXPECT_EQ(thread.errno_value, EPERM);
      EXPECT_EQ(thread.cpus, all_);
    }
    EXPECT_EQ(done.moved, 0);
  }).join();
  other.end();
}

// For the calling thread, until it ends. False where the kernel has no such filters.
bool fake_setaffinity() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(MemberMasksTest, TellsWhoIsStuckWhereASandboxOnlySaysThatItMovesThreads) {
  bool is_faked = false;
  std::thread([&] {
    is_faked = fake_setaffinity();
    if (!is_faked) return;
    Confinement done = confine_member(off(first_)).value();
    EXPECT_EQ(done.stuck.size(), threads_of_this_process());
    for (const StuckThread& thread : done.stuck) EXPECT_EQ(thread.errno_value, 0);
    EXPECT_EQ(done.moved, 0);
  }).join();
  if (!is_faked) GTEST_SKIP() << "needs filters of system calls";
}

TEST_F(MemberMasksTest, MissesNobodyWhileThreadsAreBornAllTheTime) {
  std::atomic<bool> stop = false;
  std::thread breeder([&] {
    while (!stop) std::thread([] {}).join();
  });
  for (int i = 0; i < 50; i++) {
    confine(off(first_));
    // No thread is left that could have a child there.
    for (pid_t tid : process_threads().value()) {
      Result<CpuSet> now = get_affinity(tid);
      if (now.ok()) {
        EXPECT_FALSE(now.value().intersects(first_));
      }
    }
    confine(off({}));
  }
  stop = true;
  breeder.join();
}

}  // namespace
}  // namespace numalign
