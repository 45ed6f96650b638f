#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "platform/threads/affinity.h"
#include "platform/threads/clock_ticks.h"
#include "platform/threads/cpu_activity.h"
#include "platform/threads/task_activity.h"
#include "support/waiting_process.h"

namespace numalign {
namespace {

CpuSet mask() { return get_affinity(0).value(); }

TEST(TaskActivity, TellsOfThisProcessWhatItsThreadsHaveDone) {
  const pid_t pid = getpid();
  auto threads = thread_activity({&pid, 1}, mask(), ThreadsOn::kTheseOnly);
  auto main = std::ranges::find(threads, pid, &ThreadActivity::tid);
  ASSERT_NE(main, threads.end());
  EXPECT_EQ(main->cpus, mask());
  EXPECT_TRUE(mask().contains(main->processor));
  EXPECT_LE(main->start_ns, boot_time_ns());
  ASSERT_TRUE(main->schedstat);
  EXPECT_GT(main->schedstat->run_ns, 0u);
  EXPECT_TRUE(main->switches.voluntary);
  EXPECT_TRUE(main->switches.involuntary);
}

TEST(TaskActivity, DoesNotReadAgainWhatIsKnownOfAThreadThatWasJustPinned) {
  const pid_t pid = getpid();
  const auto threads = thread_activity({&pid, 1}, mask(), ThreadsOn::kTheseOnly, {{pid, {7, mask()}}});
  auto main = std::ranges::find(threads, pid, &ThreadActivity::tid);
  ASSERT_NE(main, threads.end());
  EXPECT_EQ(main->start_ns, ticks_to_ns(7));
  EXPECT_EQ(main->processor, -1);
  EXPECT_EQ(main->cpus, mask());
  EXPECT_TRUE(main->schedstat);
}

TEST(TaskActivity, LeavesOutThreadsThatMayRunElsewhereTooUnlessTheyAreWanted) {
  const CpuSet all = mask();
  if (all.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const pid_t pid = getpid();
  const CpuSet first{all.first()};
  auto tids = [&](ThreadsOn which = ThreadsOn::kTheseOnly) {
    std::vector<pid_t> found;
    for (const auto& thread : thread_activity({&pid, 1}, first, which)) found.push_back(thread.tid);
    return found;
  };
  EXPECT_EQ(tids(), std::vector<pid_t>{});
  EXPECT_EQ(tids(ThreadsOn::kTheseToo).size(), process_threads().value().size());
  std::thread([&] {
    ASSERT_TRUE(set_affinity(0, first).ok());
    EXPECT_EQ(tids(), std::vector<pid_t>{current_thread_id()});
  }).join();
}

TEST(TaskActivity, TellsNothingOfAProcessThatIsNot) {
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  EXPECT_TRUE(thread_activity({&gone, 1}, mask(), ThreadsOn::kTheseToo).empty());
}

TEST(TaskScan, FindsATaskAndWhoseChildItIs) {
  test::WaitingProcess waiting;
  const pid_t child = waiting.pid();
  TaskScan scan = scan_tasks(online_cpus().value());
  auto found = std::ranges::find(scan.tasks, child, &ScannedTask::tid);
  ASSERT_NE(found, scan.tasks.end());
  EXPECT_EQ(found->pid, child);
  EXPECT_EQ(found->parent, getpid());
  EXPECT_FALSE(found->is_kernel_thread);
  EXPECT_TRUE(found->is_confined);
  auto own = std::ranges::find(scan.tasks, getpid(), &ScannedTask::tid);
  ASSERT_NE(own, scan.tasks.end());
  EXPECT_TRUE(own->is_runnable);
  EXPECT_EQ(own->command, found->command);
  EXPECT_TRUE(std::ranges::count(scan.parents, std::pair(getpid(), getppid())) == 1);
}

TEST(TaskScan, FindsNobodyOnCpusThatAreNot) { EXPECT_TRUE(scan_tasks(CpuSet{CpuSet::kMaxId}).tasks.empty()); }

TEST(CpuActivity, TellsOfEachCpuWhatIsToBeRead) {
  const CpuSet cpus = online_cpus().value();
  auto activity = cpu_activity(cpus, true);
  ASSERT_EQ(activity.size(), static_cast<size_t>(cpus.size()));
  for (const CpuActivity& cpu : activity) {
    ASSERT_TRUE(cpu.interrupts && cpu.numbered_interrupts && cpu.softirqs && cpu.times);
    EXPECT_GE(*cpu.interrupts, *cpu.numbered_interrupts);
    EXPECT_GT(cpu.times->busy_ns + cpu.times->idle_ns, 0u);
  }
  EXPECT_FALSE(cpu_activity(cpus, false)[0].interrupts);
  EXPECT_FALSE(cpu_activity(cpus, true, false)[0].frequency_khz);
}

TEST(CpuActivity, TellsNothingOfACpuThatIsNot) {
  auto activity = cpu_activity(CpuSet{CpuSet::kMaxId}, true);
  ASSERT_EQ(activity.size(), 1u);
  EXPECT_FALSE(activity[0].interrupts || activity[0].softirqs || activity[0].times ||
               activity[0].frequency_khz);
}

}  // namespace
}  // namespace numalign
