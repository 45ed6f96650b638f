// Open-file-description locks (fcntl F_OFD_SETLK): the kernel drops them when the last copy of the descriptor
// is closed, at death too, whatever the pid namespace. Descriptors are close-on-exec; a copy handed to a
// child keeps the lock for the child. Thread-safety: LockFile and LockQueue may be used from any thread; the
// free functions touch only their argument.
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

class LockFile;

// A lock file that is open. A description of the kernel's is never used by two holders at once: both would
// have its locks. `forks`: of which of the processes that have forked from another one it is.
struct LockDescriptor {
  UniqueFd fd;
  uint64_t inode = 0;
  unsigned forks = 0;
};

// The exclusive lock on one file of a folder, held until released or destroyed. Movable between threads.
class HeldLock {
 public:
  HeldLock(HeldLock&&) = default;
  HeldLock& operator=(HeldLock&& other) {
    release();
    file_ = std::move(other.file_);
    open_ = std::move(other.open_);
    number_ = other.number_;
    return *this;
  }
  ~HeldLock() { release(); }
  // ESTALE where the file was removed or replaced meanwhile: another process may hold the lock of the new
  // one.
  Result<Done> check() const;
  // The number that the file has; 0 where it has none.
  uint64_t number() const { return number_; }
  // Writes another number. A full disk does not matter: then the file has the number before.
  void set_number(uint64_t number);
  // Leaves the file open for the next holder of this process. In a child that was forked meanwhile only the
  // child's copy is closed: the lock is the parent's.
  void release();

 private:
  friend class LockFile;
  HeldLock(std::shared_ptr<LockFile> file, LockDescriptor open)
      : file_(std::move(file)), open_(std::move(open)) {}
  // Reads the number, and has the file name this process as the holder.
  void sign();

  std::shared_ptr<LockFile> file_;
  LockDescriptor open_;
  uint64_t number_ = 0;
};

// The number that the lock file of this name has, read without the lock: 0 where it has none, or cannot be
// read.
uint64_t number_in_lock_file(const Folder& folder, const std::string& name);

// The file of a folder that is locked. Its first line is a number in 16 digits that its holders keep there,
// the rest is a note of the last holder, for people; what is behind that note means nothing. It stays open
// from one holder to the next, so that a lock costs no more than the lock.
class LockFile : public std::enable_shared_from_this<LockFile> {
 public:
  LockFile(std::shared_ptr<const Folder> folder, std::string name, std::string note)
      : folder_(std::move(folder)), name_(std::move(name)), note_(std::move(note)) {}

  // The lock if it is free and nobody waits for it. With `past_turnstile` also if a process waits: should
  // that one be stopped, it would keep all others from a free lock.
  Result<std::optional<HeldLock>> try_lock(bool past_turnstile = false);
  // Blocks until the lock is free, behind those that wait already.
  Result<HeldLock> wait();

  const std::string& name() const { return name_; }

 private:
  friend class HeldLock;
  enum class Manner { kTry, kTryPastTurnstile, kWait };

  Result<std::optional<HeldLock>> lock(Manner manner);
  Result<LockDescriptor> open();
  // Whether the name leads to this inode.
  bool leads_to(uint64_t inode) const;
  void keep(LockDescriptor spare);

  const std::shared_ptr<const Folder> folder_;
  const std::string name_;
  const std::string note_;
  std::mutex mutex_;
  LockDescriptor spare_;  // not locked; guarded by the mutex
};

// Waits for the lock of one file, behind those who wait already. A thread of its own blocks in the kernel, at
// most one for a queue; requests are served in order. A request that was given up costs nothing: the thread
// goes on waiting for the next one, or lets the lock go.
class LockQueue {
 public:
  // Called once for each request that was not given up, on the waiting thread.
  using Deliver = std::function<void(Result<HeldLock>)>;

  explicit LockQueue(std::shared_ptr<LockFile> file);
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
