#include "platform/thread_pins.h"

#include <gtest/gtest.h>

#include <atomic>
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

  PinOutcome pin_or_die(pid_t tid, const CpuSet& cpus, const std::string& grant, bool replace = false) {
    auto result = pins_.pin(tid, cpus, grant, "owner", replace);
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
  PinOutcome outcome = pin_or_die(0, first_, "grant");
  ASSERT_EQ(outcome.moved.size(), 1u);
  EXPECT_EQ(outcome.moved[0].before, all_);
  EXPECT_EQ(mask(), first_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(), all_);
}

TEST_F(ThreadPinsTest, NeverRestoresCpusOutsideTheSharedPool) {
  pin_or_die(0, first_, "grant");
  ASSERT_TRUE(pins_.undo("grant", second_).ok());
  EXPECT_EQ(mask(), second_);
  (void)set_affinity(0, first_);
  pin_or_die(0, first_, "grant");
  ASSERT_TRUE(pins_.undo("grant", second_).ok());
  EXPECT_EQ(mask(), second_) << "nothing of the old mask is left in the pool: the pool it is";
}

TEST_F(ThreadPinsTest, LeavesAThreadAloneThatHasChosenOtherCpusSince) {
  pin_or_die(0, first_, "grant");
  (void)set_affinity(0, second_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(), second_);
}

TEST_F(ThreadPinsTest, TakesThreadsBornUnderThePinOffTheCpusToo) {
  pin_or_die(0, first_, "grant");
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
  stop = true;
  thread.join();
}

TEST_F(ThreadPinsTest, ProtectsAPinFromAnotherGrantUnlessToldToReplace) {
  pin_or_die(0, first_, "one");
  auto refused = pins_.pin(0, second_, "two", "owner", false);
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(std::get<AlreadyPinned>(refused.value()).grant, "one");
  EXPECT_EQ(mask(), first_);
  pin_or_die(0, second_, "two", true);
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
  PinOutcome outcome = pin_or_die(-1, first_, "grant");
  EXPECT_GE(outcome.moved.size(), 9u);
  for (pid_t tid : process_threads().value()) EXPECT_EQ(mask(tid), first_);
  EXPECT_TRUE(pins_.holds_for("owner", current_thread_id()));
  EXPECT_FALSE(pins_.holds_for("somebody else", current_thread_id()));
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  for (pid_t tid : process_threads().value()) EXPECT_EQ(mask(tid), all_);
  EXPECT_FALSE(pins_.holds_for("owner", 0));
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ThreadPinsTest, EndsUnderThreadsThatAreBornAllTheTime) {
  std::atomic<bool> stop = false;
  std::thread breeder([&] {
    while (!stop) std::thread([] {}).join();
  });
  for (int i = 0; i < 20; i++) {
    pin_or_die(-1, i % 2 == 0 ? first_ : second_, "grant", true);
  }
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  stop = true;
  breeder.join();
}

TEST_F(ThreadPinsTest, SaysWhatTheKernelClipped) {
  CpuSet wanted = first_ | CpuSet{8191};
  PinOutcome outcome = pin_or_die(0, wanted, "grant");
  EXPECT_TRUE(outcome.moved.empty());
  ASSERT_EQ(outcome.unmovable.size(), 1u);
  EXPECT_EQ(outcome.unmovable[0].errno_value, 0);
  EXPECT_EQ(outcome.unmovable[0].now, first_);
  ASSERT_TRUE(pins_.undo("grant", all_).ok());
  EXPECT_EQ(mask(), all_);
}

TEST(Affinity, FindsTheCpusetWhateverTheMask) {
  CpuSet all = get_affinity(0).value();
  ASSERT_TRUE(set_affinity(0, CpuSet{all.first()}).ok());
  Result<CpuSet> limit = cpuset_limit(all | CpuSet{16'383});
  EXPECT_EQ(limit.value(), all);
  EXPECT_EQ(mask(), CpuSet{all.first()}) << "the calling thread is not touched";
  ASSERT_TRUE(set_affinity(0, all).ok());
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
