// Open-file-description locks (fcntl F_OFD_SETLK). The kernel drops them when the last copy of the
// descriptor is closed, also at death, in any pid namespace. Descriptors are close-on-exec; a copy
// passed to a child keeps the lock for the child. Thread-safety: LockFile and LockQueue may be used
// from any thread; the free functions touch only their argument.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/result.h"
#include "platform/files/folder.h"

namespace numalign {

// The bytes of a file that a lock covers; they need not exist. A length of 0 reaches to the end of
// any file. /proc/locks shows them even for a removed file, so that its lock can be recognized. An
// owner's range ends below 2^62, where seals begin.
struct LockRange {
  int64_t start = 0;
  int64_t length = 0;
};

// True if the lock was taken, false if another holds it. EINVAL: the file system has no such locks.
Result<bool> try_lock(int fd, LockRange range = {});

// The device in the lines of /proc/locks about files of this folder, like 08:01. On btrfs and
// overlayfs stat(2) tells another, so it is learnt from a lock. ENOLCK if the kernel lists none.
Result<std::string> listed_device(const Folder& folder);

// Puts a new file with this text in the place of `name`, locked before any process can see it, and
// with a `generation` sealed: see seal(). A failure changes nothing. ENOLCK if the kernel does not
// list the lock of a range.
Result<UniqueFd> create_locked_file(const Folder& folder, const std::string& name, std::string_view text,
                                    LockRange range = {}, std::optional<uint64_t> generation = {});

// True if another open file description holds a lock on any of these bytes (F_OFD_GETLK). The
// descriptor may be read-only.
Result<bool> is_locked_elsewhere(int fd, LockRange range = {});

// Locks a byte range that shows the checksum of what a locked file says, and a generation. Other
// programs can put an earlier text back, but not its seal. /proc/locks shows it as a shared lock from
// 2^62 + checksum on, of 1 + generation bytes. `last`: the range of the seal before, if it is known; gets
// that of this one.
Result<Done> seal(int fd, uint32_t checksum, uint64_t generation, LockRange* last = nullptr);

// The checksum that a file's seal shows; nullopt without a seal.
Result<std::optional<uint32_t>> sealed_checksum(int fd);

// Shows that this process knows a generation of what the file says: a shared lock of 1 + generation
// bytes. Other programs can put an earlier text into the same file, but not shorten the lock.
void show_generation(int fd, uint64_t generation);

// The highest generation above `least` that another open file description shows; else `least`.
uint64_t shown_generation(int fd, uint64_t least);

// True if the name still leads to the open file. A lock on a removed file protects nothing.
bool is_file_of(const Folder& folder, const std::string& name, int fd);

class LockFile;

// A time of a folder's last change, see Folder::changed_ns().
using UnchangedSince = std::optional<int64_t>;

// An open lock file. Two holders never share an open file description, because both would have its
// locks. `forks`: identifies the process, among those that forked from one another, that opened it.
struct LockDescriptor {
  UniqueFd fd;
  uint64_t inode = 0;
  unsigned forks = 0;
};

// How long a turn is, see LockTurn.
struct TurnLimits {
  int steps = 32;
  // Enough for all steps, so that turns are alike.
  std::chrono::steady_clock::duration time = std::chrono::milliseconds(25);
  // It ends if its process does not take the lock for this long, though it has a CPU.
  std::chrono::steady_clock::duration idle = std::chrono::milliseconds(1);
};

// A process's turn at a lock that a crowd wants: it may take the lock again before all that wait.
// Without turns, each step begins in another process, which has to be woken and whose caches are
// cold. Begins where others waited before; used on the waiting thread.
class LockTurn {
 public:
  explicit LockTurn(TurnLimits limits = {}) : limits_(limits) {}
  LockTurn(const LockTurn&) = delete;
  LockTurn& operator=(const LockTurn&) = delete;
  ~LockTurn() { end(); }
  bool is_on() const;
  // When the process has not used its turn for too long, unless it does meanwhile. REQUIRES: is_on()
  std::chrono::steady_clock::time_point idle_at() const;
  std::chrono::steady_clock::time_point until() const { return until_; }
  // Lets others go on. In a forked child, closes only the child's copy.
  void end();

 private:
  friend class LockFile;

  const TurnLimits limits_;
  LockDescriptor open_;  // has the bytes of the turnstile and of the turn, never that of the lock
  bool has_waited_ = false;
  std::shared_ptr<LockFile> file_;  // once the turn has begun
  std::chrono::steady_clock::time_point until_;
};

// The exclusive lock on one file of a folder, held until released or destroyed. Movable between
// threads.
class HeldLock {
 public:
  HeldLock(HeldLock&&) = default;
  HeldLock& operator=(HeldLock&& other) {
    release();
    file_ = std::move(other.file_);
    open_ = std::move(other.open_);
    number_ = other.number_;
    names_ = other.names_;
    return *this;
  }
  ~HeldLock() { release(); }
  // ESTALE if the file was removed or replaced meanwhile: another process may hold the lock of the
  // new one.
  Result<Done> check() const;
  // Reads the number, and writes this process into the file as the holder.
  void sign();
  // The number in the file; 0 if there is none, or before sign().
  uint64_t number() const { return number_; }
  uint64_t inode() const { return open_.inode; }
  // The holder has seen where names in the folder lead, with this time of its last change, and each change
  // since has another time.
  void note_names(int64_t changed_ns) { names_ = changed_ns; }
  // That time, if no name has changed since; else nullopt.
  UnchangedSince names() const;
  // Writes another number. On a full disk, the file keeps the number before, which does no harm.
  void set_number(uint64_t number);
  // Leaves the file open for the next holder in this process. In a forked child, closes only the
  // child's copy: the lock is the parent's.
  void release();

 private:
  friend class LockFile;
  HeldLock(std::shared_ptr<LockFile> file, LockDescriptor open)
      : file_(std::move(file)), open_(std::move(open)) {}

  std::shared_ptr<LockFile> file_;
  LockDescriptor open_;
  uint64_t number_ = 0;
  UnchangedSince names_;
};

// The number in the lock file of this name, read without the lock; 0 if there is none or it cannot
// be read.
uint64_t number_in_lock_file(const Folder& folder, const std::string& name);

// A folder's lock file. Its first line is a 16-digit number that its holders keep there; the rest
// is a note of the last holder, for people. What is behind that note has no meaning. The file stays
// open between holders, so that taking the lock costs only the lock itself.
class LockFile : public std::enable_shared_from_this<LockFile> {
 public:
  LockFile(std::shared_ptr<const Folder> folder, std::string name, std::string note)
      : folder_(std::move(folder)), name_(std::move(name)), note_(std::move(note)) {}

  // Takes the lock if it is free, and no other process waits or has its turn, unless this one has.
  // With `past_turnstile`, even then: a stopped process would keep all others from a free lock.
  Result<std::optional<HeldLock>> try_lock(bool past_turnstile = false) {
    return attempt(past_turnstile, true);
  }
  // The same of a file that exists, but leaves check() and sign() of the lock to the caller.
  Result<std::optional<HeldLock>> try_lock_unchecked() { return attempt(false, false); }
  // How often this process may still take the lock in its turn.
  int steps_left() const { return steps_left_; }
  bool is_held() const { return is_held_; }
  // Called on the waiting thread when it is next in line, if others were before it.
  using OnNext = std::function<void()>;
  // Blocks until the lock is free, behind earlier waiters unless the turn is on. If there were some,
  // the turn begins, in which try_lock() passes those that wait.
  Result<HeldLock> wait(LockTurn& turn, const OnNext& on_next = {});

  const std::string& name() const { return name_; }

 private:
  friend class HeldLock;
  friend class LockTurn;

  Result<std::optional<HeldLock>> attempt(bool past_turnstile, bool checks);
  // Enters the line, and waits there for the turn.
  Result<Done> enter(LockTurn& turn, const OnNext& on_next);
  Result<LockDescriptor> open_another(bool create = true) const;
  HeldLock hold(LockDescriptor file);
  Error lock_error(const Error& error) const;
  Result<LockDescriptor> open(bool create = true);
  // True if the name leads to this inode.
  bool leads_to(uint64_t inode) const;
  void keep(LockDescriptor spare);

  const std::shared_ptr<const Folder> folder_;
  const std::string name_;
  const std::string note_;
  std::mutex mutex_;
  LockDescriptor spare_;  // not locked; guarded by the mutex
  std::atomic<int> steps_left_ = 0;
  std::atomic<bool> is_held_ = false;
  // When it was released last.
  std::atomic<std::chrono::steady_clock::time_point> released_{};
};

// Waits for the lock of one file, behind earlier waiters. A thread blocks in the kernel, or sleeps
// in a turn, at most one per queue; requests are served in order. Giving up a request costs nothing: the
// thread goes on waiting for the next one, or releases the lock.
class LockQueue {
 public:
  // Called on the waiting thread, once for each request that was not given up.
  using Deliver = std::function<void(Result<HeldLock>)>;

  explicit LockQueue(std::shared_ptr<LockFile> file, TurnLimits limits = {});
  // Gives up all waiting requests.
  ~LockQueue();

  // Returns the number of the request. kSyscall (EAGAIN) if no thread can be started to wait.
  Result<uint64_t> wait(Deliver deliver, LockFile::OnNext on_next = {});
  // After it returns, neither function of the request is running or will be called. False if it was
  // called already.
  bool give_up(uint64_t request);
  // As try_lock() of the file. The last step of a turn ends it, so that the next process gets ready.
  Result<std::optional<HeldLock>> try_lock(bool past_turnstile = false);
  // As try_lock_unchecked() of the file.
  Result<std::optional<HeldLock>> try_lock_unchecked();

 private:
  struct Request {
    uint64_t number;
    Deliver deliver;
    LockFile::OnNext on_next;
  };
  struct State;
  void end_turn();
  template <class Attempt>
  Result<std::optional<HeldLock>> in_turn(Attempt attempt);
  static void run(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace numalign
