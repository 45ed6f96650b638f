#include "platform/files/file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <set>
#include <thread>

#include "core/crc32.h"
#include "support/temporary_folder.h"

namespace numalign {
namespace {

using namespace std::chrono_literals;
using test::TemporaryFolder;

std::shared_ptr<const Folder> open(const TemporaryFolder& temporary) {
  return std::make_shared<const Folder>(std::move(Folder::open(temporary.path(), {})).value());
}

// As another manager of the process has it.
std::shared_ptr<LockFile> lock_file(std::shared_ptr<const Folder> folder,
                                    const std::string& note = "a test") {
  return std::make_shared<LockFile>(std::move(folder), "lock", note);
}

// Takes the lock if it is free.
std::optional<HeldLock> try_lock_or_die(LockFile& file, bool past_turnstile = false) {
  Result<std::optional<HeldLock>> lock = file.try_lock(past_turnstile);
  EXPECT_TRUE(lock.ok());
  return std::move(lock).value();
}
std::optional<HeldLock> try_lock_or_die(const std::shared_ptr<const Folder>& folder,
                                        const std::string& note = "a test") {
  return try_lock_or_die(*lock_file(folder, note));
}

// Byte 1, which the first who waits for the lock has.
struct flock turnstile() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 1;
  lock.l_len = 1;
  return lock;
}

// Returns once a process waits for the lock.
void wait_for_turnstile(const Folder& folder) {
  UniqueFd file = std::move(folder.open_file("lock", false, false)).value();
  for (;;) {
    struct flock lock = turnstile();
    ASSERT_EQ(fcntl(file.get(), F_OFD_GETLK, &lock), 0);
    if (lock.l_type != F_UNLCK) return;
    std::this_thread::sleep_for(1ms);
  }
}

TEST(FileLock, KnowsWhetherItsFileWasRemoved) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> lock = try_lock_or_die(folder);
  ASSERT_TRUE(lock);
  EXPECT_TRUE(lock->check().ok());
  ASSERT_TRUE(folder->remove("lock").ok());
  EXPECT_EQ(lock->check().error().errno_value, ESTALE);
  // Another process has it now, in another file.
  std::optional<HeldLock> other = try_lock_or_die(folder);
  ASSERT_TRUE(other);
  EXPECT_EQ(lock->check().error().errno_value, ESTALE);
  EXPECT_TRUE(other->check().ok());
}

TEST(FileLock, IsHeldByOneAtATimeEvenWithinAProcess) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> first = try_lock_or_die(folder, "the first");
  ASSERT_TRUE(first);
  EXPECT_FALSE(try_lock_or_die(folder, "the second"));
  EXPECT_EQ(*folder->read("lock", 100).value(), "0000000000000000\nthe first");
  first->release();
  EXPECT_TRUE(try_lock_or_die(folder));
}

TEST(FileLock, IsDroppedByTheKernelWhenItsProcessIsKilled) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    std::optional<HeldLock> lock = std::move(lock_file(folder, "the child")->try_lock()).value();
    if (write(ready[1], lock ? "y" : "n", 1) == 1) pause();
    _exit(1);
  }
  char taken = 0;
  ASSERT_EQ(read(ready[0], &taken, 1), 1);
  close(ready[0]);
  close(ready[1]);
  EXPECT_EQ(taken, 'y');
  EXPECT_FALSE(try_lock_or_die(folder));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(try_lock_or_die(folder));
}

TEST(FileLock, OfAFileThatWasRemovedIsListedOnTheDeviceOfItsFolder) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  UniqueFd file = std::move(create_locked_file(*folder, "owner", "text", {0x412345, 7})).value();
  ASSERT_TRUE(folder->remove("owner").ok());
  Result<std::string> device = listed_device(*folder);
  ASSERT_TRUE(device.ok());
  const std::string range = " 4268869 4268875\n";
  std::string all;
  size_t end = std::string::npos;
  // The kernel lists locks a page at a time and may miss one between pages.
  for (const auto last = std::chrono::steady_clock::now() + 30s; end == std::string::npos;) {
    ASSERT_LT(std::chrono::steady_clock::now(), last);
    std::ifstream locks("/proc/locks");
    all.assign(std::istreambuf_iterator<char>(locks), {});
    end = all.find(range);
  }
  const size_t begin = all.rfind("WRITE -1 ", end) + strlen("WRITE -1 ");
  EXPECT_EQ(all.substr(begin, device.value().size() + 1), device.value() + ":");
}

TEST(FileLock, HasASealThatOutlivesOtherTexts) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  UniqueFd file = std::move(create_locked_file(*folder, "owner", "text", {0x412345, 7})).value();
  UniqueFd look = std::move(folder->open_to_look("owner")).value();
  const auto agrees = [&](uint32_t checksum) {
    return sealed_checksum(look.get()).value().value_or(checksum) == checksum;
  };
  EXPECT_TRUE(agrees(1));
  ASSERT_TRUE(seal(file.get(), 5, 1'000'000).ok());
  EXPECT_TRUE(agrees(5));
  EXPECT_FALSE(agrees(6));
  // A later seal replaces it, also where the two overlap.
  ASSERT_TRUE(seal(file.get(), 6, 1).ok());
  EXPECT_FALSE(agrees(5));
  EXPECT_TRUE(agrees(6));
  ASSERT_TRUE(seal(file.get(), 0xffffffff, (uint64_t{1} << 52) - 1).ok());
  EXPECT_TRUE(agrees(0xffffffff));
  EXPECT_TRUE(is_locked_elsewhere(look.get(), {0x412345, 7}).value());
}

TEST(FileLock, HasASealBeforeItHasItsName) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  const LockRange range = {0x412345, 7};
  UniqueFd file = std::move(create_locked_file(*folder, "owner", "text", range, 5)).value();
  UniqueFd look = std::move(folder->open_to_look("owner")).value();
  EXPECT_EQ(sealed_checksum(look.get()).value(), crc32("text"));
  // The kernel refuses a lock that ends so far behind.
  const auto refused = create_locked_file(*folder, "owner", "another", range, uint64_t{1} << 62);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().errno_value, EOVERFLOW);
  EXPECT_EQ(folder->read("owner", 100).value(), "text");
  EXPECT_EQ(folder->list().value(), std::vector<std::string>{"owner"});
}

TEST(FileLock, HasASealAtAllTimes) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  UniqueFd file = std::move(create_locked_file(*folder, "owner", "text", {0x412345, 7})).value();
  UniqueFd look = std::move(folder->open_to_look("owner")).value();
  ASSERT_TRUE(seal(file.get(), 1, 1).ok());
  std::atomic<bool> ended = false;
  std::thread sealing([&] {
    for (uint32_t i = 0; i < 20'000; i++) (void)seal(file.get(), i % 2 * 1000, 5);
    ended = true;
  });
  int missing = 0;
  while (!ended) missing += is_locked_elsewhere(look.get(), {int64_t{1} << 62, 0}).value() ? 0 : 1;
  sealing.join();
  EXPECT_EQ(missing, 0);
}

TEST(FileLock, GoesToThoseWhoWaitUnlessTheyArePassed) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  // As a waiting process does.
  UniqueFd waiting = std::move(folder->open_file("lock", true, false)).value();
  struct flock taken = turnstile();
  ASSERT_EQ(fcntl(waiting.get(), F_OFD_SETLK, &taken), 0);
  EXPECT_FALSE(try_lock_or_die(folder));
  std::optional<HeldLock> passed = try_lock_or_die(*lock_file(folder), true);
  EXPECT_TRUE(passed);
  waiting.reset();
  EXPECT_FALSE(try_lock_or_die(folder));
  passed->release();
  EXPECT_TRUE(try_lock_or_die(folder));
}

TEST(FileLock, KeepsOutVersionsThatLockTheWholeFileAndIsKeptOutByThem) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> lock = try_lock_or_die(folder);
  ASSERT_TRUE(lock);
  UniqueFd earlier = std::move(folder->open_file("lock", false, false)).value();
  EXPECT_FALSE(try_lock(earlier.get()).value());
  lock->release();
  EXPECT_TRUE(try_lock(earlier.get()).value());
  EXPECT_FALSE(try_lock_or_die(folder));
  EXPECT_FALSE(try_lock_or_die(*lock_file(folder), true));
}

TEST(FileLock, StaysOneFileFromHolderToHolderAndIsHeldByOneAtATime) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  const auto file = lock_file(folder);
  for (int round = 0; round < 3; round++) {
    std::optional<HeldLock> lock = try_lock_or_die(*file);
    ASSERT_TRUE(lock);
    EXPECT_FALSE(try_lock_or_die(*file));
    EXPECT_FALSE(try_lock_or_die(*file, true));
    EXPECT_FALSE(try_lock_or_die(folder));
    lock->release();
    std::optional<HeldLock> other = try_lock_or_die(folder);
    ASSERT_TRUE(other);
    EXPECT_FALSE(try_lock_or_die(*file));
  }
  EXPECT_TRUE(try_lock_or_die(*file));
}

TEST(FileLock, IsTakenOfTheFileThatHasTheNameThoughAnotherStayedOpen) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  const auto file = lock_file(folder);
  try_lock_or_die(*file)->release();
  ASSERT_TRUE(folder->remove("lock").ok());
  std::optional<HeldLock> other = try_lock_or_die(folder);
  ASSERT_TRUE(other);
  EXPECT_FALSE(try_lock_or_die(*file));
  other->release();
  LockTurn turn;
  std::optional<HeldLock> lock = std::move(file->wait(turn)).value();
  EXPECT_TRUE(lock->check().ok());
  EXPECT_FALSE(try_lock_or_die(folder));
}

TEST(FileLock, GoesWithItsHolderThoughAChildHasACopyOfItsDescriptor) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  const auto file = lock_file(folder);
  std::optional<HeldLock> lock = try_lock_or_die(*file);
  ASSERT_TRUE(lock);
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  lock->release();
  EXPECT_TRUE(try_lock_or_die(folder));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// The status with which a child ends that runs this.
int status_of_child(const std::function<int()>& run) {
  pid_t child = fork();
  if (child == 0) _exit(run());
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(FileLock, IsNotReleasedByAChildThatWasForkedWhileItWasHeld) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> lock = try_lock_or_die(folder);
  ASSERT_TRUE(lock);
  EXPECT_EQ(status_of_child([&] {
              lock->release();
              return 7;
            }),
            7);
  EXPECT_FALSE(try_lock_or_die(folder));
}

TEST(FileLock, IsNotSharedWithAChildByTheFileThatStayedOpen) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  const auto file = lock_file(folder);
  try_lock_or_die(*file)->release();
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    const bool is_told = read(go[0], &byte, 1) == 1;
    Result<std::optional<HeldLock>> taken = file->try_lock();
    _exit(is_told && taken.ok() && !std::move(taken).value() ? 7 : 1);
  }
  std::optional<HeldLock> lock = try_lock_or_die(*file);
  ASSERT_TRUE(lock);
  ASSERT_EQ(write(go[1], "x", 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  close(go[0]);
  close(go[1]);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(FileLock, HasTheNumberThatItsHoldersKeepThere) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  EXPECT_EQ(number_in_lock_file(*folder, "lock"), 0u);
  std::optional<HeldLock> first = try_lock_or_die(folder, "the first, with a long note\n");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->number(), 0u);
  first->set_number(42);
  EXPECT_EQ(first->number(), 42u);
  first->release();
  std::optional<HeldLock> second = try_lock_or_die(folder, "the second\n");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->number(), 42u);
  EXPECT_EQ(number_in_lock_file(*folder, "lock"), 42u);
  EXPECT_EQ(folder->read("lock", 100).value()->substr(0, 28), "0000000000000042\nthe second\n");
}

TEST(FileLock, HasNoNumberWhereSomebodyElseHasWrittenTheFile) {
  for (const std::string text : {"", "4711 a holder of an earlier version", "000000000000004\n",
                                 "-000000000000042\n", "00000000000000042\n", "9999999999999999\n"}) {
    TemporaryFolder temporary;
    auto folder = open(temporary);
    ASSERT_TRUE(folder->replace("lock", text).ok());
    EXPECT_EQ(number_in_lock_file(*folder, "lock"), 0u) << text;
    std::optional<HeldLock> lock = try_lock_or_die(folder);
    ASSERT_TRUE(lock);
    EXPECT_EQ(lock->number(), 0u) << text;
    lock->set_number(5);
    EXPECT_EQ(number_in_lock_file(*folder, "lock"), 5u) << text;
  }
}

TEST(FileLock, IsSeenAsHeldElsewhereThroughEveryOtherDescription) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  UniqueFd owner = std::move(folder->open_file("owner", true, true)).value();
  ASSERT_TRUE(try_lock(owner.get()).value());
  EXPECT_FALSE(is_locked_elsewhere(owner.get()).value());
  UniqueFd other = std::move(folder->open_file("owner", false, false)).value();
  EXPECT_TRUE(is_locked_elsewhere(other.get()).value());
  EXPECT_FALSE(try_lock(other.get()).value());
  // A copy, as a child would have it, keeps the lock.
  UniqueFd copy(dup(owner.get()));
  owner.reset();
  EXPECT_TRUE(is_locked_elsewhere(other.get()).value());
  copy.reset();
  EXPECT_FALSE(is_locked_elsewhere(other.get()).value());
}

// Returns once as many processes are blocked, at the turnstile, the turn or the lock.
void wait_for_blocked(const Folder& folder, size_t count) {
  const std::string file = ":" + std::to_string(folder.version("lock").value()->inode) + " ";
  const auto end = std::chrono::steady_clock::now() + 30s;
  // Without their numbers: the kernel may list one twice, with two numbers.
  for (std::set<std::string> found; found.size() < count;) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    found.clear();
    std::ifstream locks("/proc/locks");
    for (std::string line; std::getline(locks, line);) {
      const size_t begin = line.find("->");
      if (begin != std::string::npos && line.find(file) != std::string::npos)
        found.insert(line.substr(begin));
    }
    std::this_thread::sleep_for(1ms);
  }
}

// Two processes that wait for a lock, the second behind the first, and so with a turn; and what
// waits behind them.
class LockTurnTest : public testing::Test {
 protected:
  using Taken = std::promise<HeldLock>;
  static constexpr TurnLimits kEndless = {.steps = 16, .time = 1h, .idle = 1h};
  static LockQueue::Deliver deliver(Taken& taken) {
    return [&](Result<HeldLock> lock) { taken.set_value(std::move(lock).value()); };
  }

  // Ends with the lock free, the turn of `turn_`, and `later_` waiting for the end of it.
  void begin(TurnLimits limits = kEndless) { begin_holding(limits).release(); }
  // Ends with the lock held instead.
  HeldLock begin_holding(TurnLimits limits) {
    std::optional<HeldLock> holder = try_lock_or_die(folder_);
    turn_file_ = lock_file(open(temporary_));
    turn_ = std::make_unique<LockQueue>(turn_file_, limits);
    Taken first, second;
    (void)first_.wait(deliver(first));
    wait_for_blocked(*folder_, 1);
    (void)turn_->wait(deliver(second));
    wait_for_blocked(*folder_, 2);
    holder->release();
    first.get_future().get().release();
    HeldLock lock = second.get_future().get();
    (void)later_.wait(deliver(taken_later_), [this] { is_next_.set_value(); });
    wait_for_blocked(*folder_, 1);
    return lock;
  }
  bool is_taken_later(std::chrono::milliseconds within) {
    return later_result_.wait_for(within) == std::future_status::ready;
  }

  TemporaryFolder temporary_;
  std::shared_ptr<const Folder> folder_ = open(temporary_);
  std::shared_ptr<LockFile> turn_file_;
  Taken taken_later_;
  std::promise<void> is_next_;
  std::future<HeldLock> later_result_ = taken_later_.get_future();
  // Last, as they must not outlive what they deliver to.
  LockQueue first_{lock_file(open(temporary_))};
  LockQueue later_{lock_file(open(temporary_))};
  std::unique_ptr<LockQueue> turn_;
};

TEST_F(LockTurnTest, LetsAProcessTakeTheLockAgainBeforeThoseThatWait) {
  begin();
  for (int step = 1; step < kEndless.steps; step++) {
    EXPECT_FALSE(is_taken_later(0ms)) << step;
    ASSERT_TRUE(turn_->try_lock().value()) << step;
  }
  EXPECT_TRUE(is_taken_later(30s));
  EXPECT_FALSE(turn_->try_lock().value());
}

TEST_F(LockTurnTest, CountsRequestsThatWaitAsSteps) {
  begin({.steps = 3, .time = 1h, .idle = 1h});
  std::optional<HeldLock> passed = try_lock_or_die(*lock_file(folder_), true);
  Taken taken;
  (void)turn_->wait(deliver(taken));
  passed->release();
  taken.get_future().get().release();
  EXPECT_FALSE(is_taken_later(20ms));
  EXPECT_TRUE(turn_->try_lock().value());
  EXPECT_TRUE(is_taken_later(30s));
}

TEST_F(LockTurnTest, EndsWithItsTime) {
  begin({.steps = 16, .time = 1ms, .idle = 1h});
  EXPECT_TRUE(is_taken_later(30s));
}

TEST_F(LockTurnTest, EndsIfItsProcessDoesNotUseIt) {
  begin({.steps = 16, .time = 1h, .idle = 1ms});
  EXPECT_TRUE(is_taken_later(30s));
}

TEST_F(LockTurnTest, StaysWhileItsProcessHoldsTheLock) {
  HeldLock lock = begin_holding({.steps = 16, .time = 1h, .idle = 1ms});
  std::this_thread::sleep_for(50ms);
  EXPECT_GT(turn_file_->steps_left(), 0);
}

TEST_F(LockTurnTest, IsUnusedOnlyFromTheReleaseOn) {
  HeldLock lock = begin_holding({.steps = 16, .time = 1h, .idle = 50ms});
  std::this_thread::sleep_for(75ms);
  const auto released = std::chrono::steady_clock::now();
  lock.release();
  EXPECT_TRUE(is_taken_later(30s));
  EXPECT_GE(std::chrono::steady_clock::now() - released, 50ms);
}

TEST_F(LockTurnTest, EndsIfItsProcessIsBusyWithSomethingElse) {
  begin({.steps = 16, .time = 1h, .idle = 1ms});
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!is_taken_later(0ms)) ASSERT_LT(std::chrono::steady_clock::now(), end);
}

TEST_F(LockTurnTest, StaysWhileItsProcessIsReadyButHasNoCpu) {
  cpu_set_t allowed, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  std::atomic<bool> is_over = false;
  std::promise<void> has_turn;
  const auto spin = [&] {
    while (!is_over) continue;
  };
  // Gets next to nothing of the CPU beside the other one.
  std::thread asker([&] {
    begin({.steps = 16, .time = 1h, .idle = 40ms});
    const sched_param none{};
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
    has_turn.set_value();
    spin();
  });
  std::thread other([&] {
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    spin();
  });
  has_turn.get_future().get();
  EXPECT_FALSE(is_taken_later(200ms));
  is_over = true;
  asker.join();
  other.join();
}

TEST_F(LockTurnTest, IsWhenTheNextInLineGetsReady) {
  begin();
  EXPECT_EQ(is_next_.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_FALSE(is_taken_later(0ms));
}

TEST_F(LockTurnTest, EndsThoughAChildHasACopyOfItsDescriptor) {
  begin();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    (void)!read(pipe_ends[0], &byte, 1);
    _exit(0);
  }
  turn_.reset();
  EXPECT_TRUE(is_taken_later(30s));
  ASSERT_EQ(write(pipe_ends[1], "x", 1), 1);
  waitpid(child, nullptr, 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(LockTurnTest, EndsWithItsQueue) {
  begin();
  turn_.reset();
  EXPECT_TRUE(is_taken_later(30s));
}

TEST_F(LockTurnTest, LetsOthersPassToTheFreeLock) {
  begin();
  EXPECT_TRUE(try_lock_or_die(*lock_file(folder_), true));
  EXPECT_FALSE(is_taken_later(0ms));
}

TEST_F(LockTurnTest, ServesItsProcessFirstWhereAnotherHasPassed) {
  begin();
  std::optional<HeldLock> passed = try_lock_or_die(*lock_file(folder_), true);
  EXPECT_FALSE(turn_->try_lock().value());
  Taken taken;
  (void)turn_->wait(deliver(taken));
  passed->release();
  EXPECT_EQ(taken.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_FALSE(is_taken_later(0ms));
}

TEST(LockQueue, GivesNoTurnWhereOnlyTheHolderWasBefore) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> holder = try_lock_or_die(folder);
  LockQueue queue(lock_file(folder), {.steps = 16, .time = 1h, .idle = 1h});
  std::promise<HeldLock> taken;
  (void)queue.wait([&](Result<HeldLock> lock) { taken.set_value(std::move(lock).value()); });
  wait_for_turnstile(*folder);
  holder->release();
  taken.get_future().get().release();
  EXPECT_TRUE(try_lock_or_die(folder));
}

TEST(LockQueue, ServesRequestsInOrderOneAtATime) {
  TemporaryFolder temporary;
  LockQueue queue(lock_file(open(temporary)));
  std::atomic<int> inside = 0;
  std::atomic<int> served = 0;
  std::promise<void> done;
  for (int i = 0; i < 20; i++) {
    (void)queue.wait([&, i](Result<HeldLock> lock) {
      EXPECT_TRUE(lock.ok());
      EXPECT_EQ(inside++, 0);
      EXPECT_EQ(served++, i);
      inside--;
      if (i == 19) done.set_value();
    });
  }
  EXPECT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
}

TEST(LockQueue, TellsARequestThatItIsNextIfOthersWereBeforeIt) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> holder = try_lock_or_die(folder);
  std::promise<HeldLock> first, second;
  std::promise<void> is_next;
  LockQueue queue(lock_file(folder)), later(lock_file(open(temporary)));
  (void)queue.wait([&](Result<HeldLock> lock) { first.set_value(std::move(lock).value()); },
                   [] { ADD_FAILURE() << "only the holder was before it"; });
  wait_for_turnstile(*folder);
  (void)later.wait([&](Result<HeldLock> lock) { second.set_value(std::move(lock).value()); },
                   [&] { is_next.set_value(); });
  std::future<void> next = is_next.get_future();
  EXPECT_EQ(next.wait_for(50ms), std::future_status::timeout);
  holder->release();
  std::optional<HeldLock> lock = first.get_future().get();
  EXPECT_EQ(next.wait_for(30s), std::future_status::ready);
  std::future<HeldLock> taken = second.get_future();
  EXPECT_EQ(taken.wait_for(0ms), std::future_status::timeout);
  lock.reset();
  EXPECT_EQ(taken.wait_for(30s), std::future_status::ready);
}

TEST(LockQueue, CallsNoRequestThatWasGivenUp) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> holder = try_lock_or_die(folder);
  LockQueue queue(lock_file(folder));
  std::atomic<bool> given_up_was_called = false;
  std::promise<void> served;
  const auto give_up = [&] { given_up_was_called = true; };
  uint64_t first = queue.wait([&](Result<HeldLock>) { give_up(); }, give_up).value();
  (void)queue.wait([&](Result<HeldLock>) { served.set_value(); });
  EXPECT_TRUE(queue.give_up(first));
  EXPECT_FALSE(queue.give_up(first));
  holder->release();
  EXPECT_EQ(served.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_FALSE(given_up_was_called);
}

TEST(LockQueue, LetsTheLockGoWhenNobodyWaitsAnyMore) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> holder = try_lock_or_die(folder);
  {
    LockQueue queue(lock_file(folder));
    (void)queue.wait([](Result<HeldLock>) { ADD_FAILURE() << "the queue is gone"; });
  }
  holder->release();
  auto end = std::chrono::steady_clock::now() + 30s;
  std::optional<HeldLock> again;
  while (!(again = try_lock_or_die(folder)) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(again);
}

TEST(LockQueue, KeepsManyThreadsApart) {
  TemporaryFolder temporary;
  int counter = 0;  // guarded by the file's lock alone
  constexpr int kThreads = 4, kRounds = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&] {
      LockQueue queue(lock_file(open(temporary)));
      for (int i = 0; i < kRounds; i++) {
        std::promise<HeldLock> taken;
        (void)queue.wait([&](Result<HeldLock> lock) { taken.set_value(std::move(lock).value()); });
        HeldLock lock = taken.get_future().get();
        std::atomic_ref(counter).fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, kThreads * kRounds);
}

TEST(LockQueue, IsNotFooledByAReplacedFile) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> old_lock = try_lock_or_die(folder);
  std::promise<void> served;
  LockQueue queue(lock_file(folder));
  (void)queue.wait([&](Result<HeldLock>) { served.set_value(); });
  // One that is only in the turnstile may open the new file, and take its lock.
  wait_for_blocked(*folder, 1);
  ASSERT_TRUE(folder->remove("lock").ok());
  std::optional<HeldLock> new_lock = try_lock_or_die(folder);
  ASSERT_TRUE(new_lock);
  old_lock->release();
  std::future<void> future = served.get_future();
  EXPECT_EQ(future.wait_for(100ms), std::future_status::timeout)
      << "the removed file's lock counts for nothing";
  new_lock->release();
  EXPECT_EQ(future.wait_for(30s), std::future_status::ready);
}

}  // namespace
}  // namespace numalign
