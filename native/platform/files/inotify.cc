#include "platform/files/inotify.h"

#include <poll.h>
#include <sys/inotify.h>

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace numalign {
namespace {

// A look takes a microsecond, and a commit that replaces a file a hundred.
constexpr int kMostLooks = 64;

// The instances that threads are closing.
struct Closings {
  std::mutex mutex;
  std::condition_variable ended;
  size_t count = 0;
  size_t total_ended = 0;

  static Closings& of_this_process() {
    // Threads may outlive static objects.
    static auto* all = new Closings;
    return *all;
  }
  void begin() {
    std::lock_guard lock(mutex);
    count++;
  }
  void end() {
    std::lock_guard lock(mutex);
    count--;
    total_ended++;
    ended.notify_all();
  }
  size_t ended_so_far() {
    std::lock_guard lock(mutex);
    return total_ended;
  }
  // Waits until another has ended than those before. False if there is none.
  bool wait_past(size_t before) {
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return total_ended != before || count == 0; });
    return total_ended != before;
  }
};

}  // namespace

Result<Inotify> Inotify::open() {
  Closings& closings = Closings::of_this_process();
  UniqueFd fd;
  size_t ended;
  do {
    ended = closings.ended_so_far();
    fd.reset(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  } while (!fd.valid() && errno == EMFILE && closings.wait_past(ended));
  if (!fd.valid()) return syscall_error("inotify_init1", "cannot watch folders");
  return Inotify(std::move(fd));
}

// The kernel looks the path up before the watch is in place. What the path leads to may be replaced
// between the two, and no event tells: the watch is of the old file for good. The second look that finds
// the same comes after the watch. Without IN_MASK_ADD it would also replace what others watch for.
Result<int> Inotify::add(const std::string& path, uint32_t mask) {
  int watch = -1;
  for (int looks = 0; looks < kMostLooks; looks++) {
    const int found = inotify_add_watch(fd_.get(), path.c_str(), mask);
    const int refused = found < 0 ? errno : 0;
    if (found >= 0 && (found == watch || !(mask & IN_MASK_ADD))) {
      watches_.insert(found);
      return found;
    }
    const bool is_stale = watch >= 0 && !watches_.contains(watch);
    if (is_stale) inotify_rm_watch(fd_.get(), watch);
    // It may have been the last that the user can have.
    if (refused && !(refused == ENOSPC && is_stale))
      return syscall_error("inotify_add_watch", "cannot watch " + path, refused);
    watch = found;
  }
  if (watch >= 0 && !watches_.contains(watch)) inotify_rm_watch(fd_.get(), watch);
  return syscall_error("inotify_add_watch", "cannot watch " + path + ", which is replaced all the time",
                       EAGAIN);
}

void Inotify::close() {
  if (!fd_.valid()) return;
  Closings& closings = Closings::of_this_process();
  closings.begin();
  const int fd = fd_.release();
  const auto end = [&closings, fd] {
    ::close(fd);
    closings.end();
  };
  try {
    std::thread(end).detach();
  } catch (const std::system_error&) {
    end();
  }
}

void Inotify::remove(int watch) {
  if (watches_.erase(watch)) inotify_rm_watch(fd_.get(), watch);
}

bool Inotify::has_unread() const {
  // FIONREAD adds up the sizes of all events, under the lock of the queue.
  pollfd queue{fd_.get(), POLLIN, 0};
  return poll(&queue, 1, 0) != 0;
}

Result<std::vector<FolderEvent>> Inotify::read() {
  std::vector<FolderEvent> events;
  alignas(inotify_event) char buffer[4096];
  for (;;) {
    ssize_t size = ::read(fd_.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return events;
    if (size < 0) return syscall_error("read", "cannot read the events of watched folders");
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      if (event->mask & IN_IGNORED) watches_.erase(event->wd);
      // The name is padded with zeros.
      events.push_back({event->wd, event->mask, event->len > 0 ? std::string(event->name) : std::string()});
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
}

}  // namespace numalign
