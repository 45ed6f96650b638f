#include "platform/threads/pool_barrier.h"

#include "platform/threads/affinity.h"

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
    : threads_(threads), deadline_(Clock::now() + timeout) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  // The clock of steady_clock.
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&changed_, &attributes);
  pthread_condattr_destroy(&attributes);
}

PoolBarrier::~PoolBarrier() { pthread_cond_destroy(&changed_); }

PoolThreads PoolBarrier::arrive() {
  std::unique_lock lock(mutex_);
  arrived_.insert(current_thread_id());
  pthread_cond_broadcast(&changed_);
  using std::chrono::seconds, std::chrono::nanoseconds;
  const auto since_boot = deadline_.time_since_epoch();
  const auto whole = std::chrono::duration_cast<seconds>(since_boot);
  const timespec deadline{static_cast<time_t>(whole.count()),
                          static_cast<long>(nanoseconds(since_boot - whole).count())};
  while (arrived_.size() < threads_ && Clock::now() < deadline_) {
    pthread_cond_timedwait(&changed_, mutex_.native_handle(), &deadline);
  }
  return {arrived_, arrived_.size() >= threads_};
}

}  // namespace numalign
