#include "platform/pool_barrier.h"

#include "platform/affinity.h"

namespace numalign {

std::shared_ptr<PoolBarrier> PoolBarrier::open_for(size_t threads, std::chrono::milliseconds timeout) {
  // Never destroyed: pool threads may still run while the process exits.
  static auto& mutex = *new std::mutex;
  static auto& latest = *new std::weak_ptr<PoolBarrier>;
  std::lock_guard lock(mutex);
  if (std::shared_ptr<PoolBarrier> barrier = latest.lock()) {
    std::lock_guard inner(barrier->mutex_);
    const bool is_open = barrier->arrived_.size() < barrier->threads_ && Clock::now() < barrier->deadline_;
    if (is_open && barrier->threads_ == threads) return barrier;
  }
  auto barrier = std::make_shared<PoolBarrier>(threads, timeout);
  latest = barrier;
  return barrier;
}

PoolBarrier::PoolBarrier(size_t threads, std::chrono::milliseconds timeout)
    : threads_(threads), deadline_(Clock::now() + timeout) {}

PoolThreads PoolBarrier::arrive() {
  std::unique_lock lock(mutex_);
  arrived_.insert(current_thread_id());
  changed_.notify_all();
  changed_.wait_until(lock, deadline_, [&] { return arrived_.size() >= threads_; });
  return {arrived_, arrived_.size() >= threads_};
}

}  // namespace numalign
