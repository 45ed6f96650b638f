// Open-file-description locks (fcntl F_OFD_SETLK): the kernel drops them when the last copy of the descriptor
// is closed, at death too, whatever the pid namespace. Descriptors are close-on-exec; a copy handed to a
// child keeps the lock for the child. Thread-safety: LockQueue may be used from any thread; the free
// functions touch only their argument.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/result.h"
#include "platform/files/folder.h"

namespace numalign {

// The bytes of a file that a lock covers; they need not exist. A length of 0 reaches to the end of any file.
// /proc/locks shows them, also where the file has been removed: by them its lock can still be recognized.
struct LockRange {
  int64_t start = 0;
  int64_t length = 0;
};

// True where the lock was taken, false where somebody else holds it. EINVAL: the file system has no such
// locks.
Result<bool> try_lock(int fd, LockRange range = {});

// Puts a new file with this text in place of whatever has the name, locked before anybody can see it. Where
// that fails nothing has changed.
Result<UniqueFd> create_locked_file(const Folder& folder, const std::string& name, std::string_view text,
                                    LockRange range = {});

// Whether another open file description holds a lock on any byte: F_OFD_GETLK. The descriptor may be
// read-only.
Result<bool> is_locked_elsewhere(int fd);

// Whether the open file is still the one that the name leads to; a lock on a removed file protects nothing.
bool is_file_of(const Folder& folder, const std::string& name, int fd);

// The exclusive lock on one file of a folder, held until destroyed. The file says who holds it, for people.
class HeldLock {
 public:
  HeldLock(UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}
  // ESTALE where the file was removed or replaced meanwhile: somebody else may hold the lock of the new one.
  Result<Done> check(const Folder& folder) const;
  void release() { fd_.reset(); }

 private:
  UniqueFd fd_;
  std::string name_;
};

// Takes the lock of `name` if it is free and nobody waits for it. `note` is written into the file. With
// `past_turnstile` also if somebody waits: should he be stopped, he would keep everybody from a free lock.
Result<std::optional<HeldLock>> try_lock_file(const Folder& folder, const std::string& name,
                                              const std::string& note, bool past_turnstile = false);

// Waits for the lock of one file, behind those who wait already. A thread of its own blocks in the kernel, at
// most one for a queue; requests are served in order. A request that was given up costs nothing: the thread
// goes on waiting for the next one, or lets the lock go.
class LockQueue {
 public:
  // Called once for each request that was not given up, on the waiting thread.
  using Deliver = std::function<void(Result<HeldLock>)>;

  LockQueue(std::shared_ptr<const Folder> folder, std::string name, std::string note);
  // Gives up what is still waiting.
  ~LockQueue();

  // Answers the number of the request. kSyscall (EAGAIN) where no thread can be started to wait.
  Result<uint64_t> wait(Deliver deliver);
  // After it returns the request's Deliver is not running and will not be called. False where it was called
  // already.
  bool give_up(uint64_t request);

 private:
  struct State;
  static void run(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace numalign
