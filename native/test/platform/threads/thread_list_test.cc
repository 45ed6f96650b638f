// What a process has for threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "platform/threads/affinity.h"
#include "support/waiting_process.h"

namespace numalign {
namespace {

// Threads that wait until they are ended.
class Crowd {
 public:
  explicit Crowd(int size) {
    for (int i = 0; i < size; i++) {
      threads_.emplace_back([this] {
        arrived_++;
        end_.wait(false);
      });
    }
    while (arrived_ < size) std::this_thread::yield();
  }
  ~Crowd() {
    end_ = true;
    end_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> end_ = false;
  std::atomic<int> arrived_ = 0;
  std::vector<std::thread> threads_;
};

TEST(ThreadListTest, HasEachThreadOnceAscending) {
  const std::vector<pid_t> threads = threads_of(getpid()).value();
  EXPECT_TRUE(std::ranges::is_sorted(threads));
  EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), threads.size());
  EXPECT_TRUE(std::ranges::binary_search(threads, current_thread_id()));
  EXPECT_EQ(process_threads().value(), threads);
}

// ThreadSanitizer has a thread of its own from the first one on.
void start_first_thread() { Crowd crowd(1); }

TEST(ThreadListTest, HasMoreThreadsThanTheKernelTellsOfAtOnce) {
  start_first_thread();
  const size_t before = process_threads().value().size();
  // 24 bytes each in a buffer of 16 KiB.
  constexpr int kMany = 1000;
  Crowd crowd(kMany);
  EXPECT_EQ(process_threads().value().size(), before + kMany);
}

TEST(ThreadListTest, IsReadAgainFromItsBeginning) {
  start_first_thread();
  ThreadList list = ThreadList::open(0).value();
  const std::vector<pid_t> before = list.threads().value();
  {
    Crowd crowd(3);
    EXPECT_EQ(list.threads().value().size(), before.size() + 3);
  }
  EXPECT_EQ(list.threads().value(), process_threads().value());
}

TEST(ThreadListTest, IsNoneOfAProcessThatHasEnded) {
  test::WaitingProcess other;
  ThreadList list = ThreadList::open(other.pid()).value();
  EXPECT_EQ(list.threads().value().front(), other.pid());
  other.end();
  EXPECT_EQ(list.threads().error().errno_value, ESRCH);
  EXPECT_EQ(ThreadList::open(other.pid()).error().errno_value, ESRCH);
}

}  // namespace
}  // namespace numalign
