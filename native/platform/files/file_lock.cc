#include "platform/files/file_lock.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

namespace numalign {
namespace {

struct flock write_lock(LockRange range) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = range.start;
  lock.l_len = range.length;
  return lock;
}

// The byte that is the lock, and the one that those who wait for it pass one after the other. Earlier
// versions lock the whole file, and so both.
constexpr off_t kLockByte = 0;
constexpr off_t kTurnstileByte = 1;

// True where the byte was locked (or with F_UNLCK let go), false where it is taken and `block` is false.
Result<bool> lock_byte(int fd, off_t byte, short type, bool block) {
  struct flock lock = write_lock({byte, 1});
  lock.l_type = type;
  while (fcntl(fd, block ? F_OFD_SETLKW : F_OFD_SETLK, &lock) != 0) {
    if (errno == EINTR) continue;
    if (!block && (errno == EAGAIN || errno == EACCES)) return false;
    return syscall_error("fcntl", "cannot lock the file");
  }
  return true;
}

// Through the turnstile to the lock: whoever has just let it go finds the next one there already.
Result<bool> lock_in_turn(int fd, bool block) {
  Result<bool> entered = lock_byte(fd, kTurnstileByte, F_WRLCK, block);
  if (!entered.ok() || !entered.value()) return entered;
  Result<bool> locked = lock_byte(fd, kLockByte, F_WRLCK, block);
  if (!locked.ok() || !locked.value()) return locked;
  if (Result<bool> left = lock_byte(fd, kTurnstileByte, F_UNLCK, false); !left.ok()) return left;
  return true;
}

enum class Manner { kTry, kTryPastTurnstile, kWait };

// The lock of the file that `name` leads to now; an invalid descriptor where it is taken and not waited for.
Result<UniqueFd> lock_file(const Folder& folder, const std::string& name, const std::string& note,
                           Manner manner) {
  for (;;) {
    Result<UniqueFd> file = folder.open_file(name, true, false);
    if (!file.ok()) return file;
    int fd = file.value().get();
    Result<bool> locked = manner == Manner::kTryPastTurnstile ? lock_byte(fd, kLockByte, F_WRLCK, false)
                                                              : lock_in_turn(fd, manner == Manner::kWait);
    if (!locked.ok()) {
      return syscall_error("fcntl", "cannot lock " + name + " in " + folder.path(),
                           locked.error().errno_value);
    }
    if (!locked.value()) return UniqueFd();
    if (!is_file_of(folder, name, fd)) continue;
    // For people only, so a full disk does not matter.
    (void)overwrite(fd, note);
    return file;
  }
}

}  // namespace

bool is_file_of(const Folder& folder, const std::string& name, int fd) {
  struct stat here;
  Result<std::optional<FileVersion>> there = folder.version(name);
  return fstat(fd, &here) == 0 && there.ok() && there.value() && there.value()->inode == here.st_ino;
}

Result<bool> try_lock(int fd, LockRange range) {
  struct flock lock = write_lock(range);
  if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  return syscall_error("fcntl", "cannot lock the file");
}

Result<UniqueFd> create_locked_file(const Folder& folder, const std::string& name, std::string_view text,
                                    LockRange range) {
  const std::string beside = name + ".new";
  Result<Done> done = folder.remove(beside);
  if (!done.ok()) return done.error();
  Result<UniqueFd> file = folder.open_file(beside, true, true);
  if (!file.ok()) return file;
  int fd = file.value().get();
  Result<bool> locked = try_lock(fd, range);
  if (!locked.ok()) {
    done = locked.error();
  } else if (!locked.value()) {
    done = syscall_error("fcntl", "cannot lock " + name + " in " + folder.path(), EAGAIN);
  } else {
    done = overwrite(fd, text);
    if (done.ok()) done = folder.move(beside, folder, name);
  }
  if (done.ok()) return file;
  (void)folder.remove(beside);
  return done.error();
}

Result<bool> is_locked_elsewhere(int fd) {
  struct flock lock = write_lock({});
  if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
    return syscall_error("fcntl", "cannot ask for the lock of the file");
  return lock.l_type != F_UNLCK;
}

Result<std::optional<HeldLock>> try_lock_file(const Folder& folder, const std::string& name,
                                              const std::string& note, bool past_turnstile) {
  Result<UniqueFd> fd =
      lock_file(folder, name, note, past_turnstile ? Manner::kTryPastTurnstile : Manner::kTry);
  if (!fd.ok()) return fd.error();
  if (!fd.value().valid()) return std::optional<HeldLock>();
  return std::optional<HeldLock>(HeldLock(std::move(fd).value(), name));
}

Result<Done> HeldLock::check(const Folder& folder) const {
  if (is_file_of(folder, name_, fd_.get())) return Done{};
  return syscall_error(
      "fcntl", "the file " + name_ + " in " + folder.path() + " was removed while it was locked", ESTALE);
}

struct LockQueue::State {
  std::shared_ptr<const Folder> folder;
  std::string name;
  std::string note;
  std::mutex mutex;
  std::deque<std::pair<uint64_t, Deliver>> requests;
  bool running = false;
};

LockQueue::LockQueue(std::shared_ptr<const Folder> folder, std::string name, std::string note)
    : state_(std::make_shared<State>()) {
  state_->folder = std::move(folder);
  state_->name = std::move(name);
  state_->note = std::move(note);
}

LockQueue::~LockQueue() {
  std::lock_guard lock(state_->mutex);
  state_->requests.clear();
}

Result<uint64_t> LockQueue::wait(Deliver deliver) {
  std::lock_guard lock(state_->mutex);
  if (!state_->running) {
    try {
      std::thread(run, state_).detach();
    } catch (const std::system_error& refused) {
      return syscall_error("clone", "cannot start a thread to wait for " + state_->name,
                           refused.code().value());
    }
    state_->running = true;
  }
  // No two queues of a process have the same number: a folder's may be replaced while a request waits.
  static std::atomic<uint64_t> last_request = 0;
  uint64_t request = ++last_request;
  // The new thread cannot look for it before the mutex is free.
  state_->requests.emplace_back(request, std::move(deliver));
  return request;
}

bool LockQueue::give_up(uint64_t request) {
  std::lock_guard lock(state_->mutex);
  return std::erase_if(state_->requests, [&](const auto& r) { return r.first == request; }) > 0;
}

void LockQueue::run(std::shared_ptr<State> state) {
  for (;;) {
    Result<UniqueFd> fd = lock_file(*state->folder, state->name, state->note, Manner::kWait);
    // Delivered under the mutex, so that give_up() cannot return while it happens.
    std::lock_guard lock(state->mutex);
    if (!state->requests.empty()) {
      Deliver deliver = std::move(state->requests.front().second);
      state->requests.pop_front();
      deliver(fd.ok() ? Result<HeldLock>(HeldLock(std::move(fd).value(), state->name))
                      : Result<HeldLock>(fd.error()));
    }
    if (state->requests.empty()) {
      state->running = false;
      return;
    }
  }
}

}  // namespace numalign
