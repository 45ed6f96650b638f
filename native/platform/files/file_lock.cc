#include "platform/files/file_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/crc32.h"
#include "core/task_files.h"

namespace numalign {
namespace {

struct flock lock_on(LockRange range, short type = F_WRLCK) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = range.start;
  lock.l_len = range.length;
  return lock;
}

// The byte that is the lock, the turnstile byte that waiters pass one after the other, and the byte
// of the turn. Earlier versions do not respect turns; the earliest lock the whole file, and so all bytes.
constexpr LockRange kLockByte = {0, 1};
constexpr LockRange kTurnstileByte = {1, 1};
constexpr LockRange kTurnByte = {2, 1};
constexpr LockRange kTurnstileAndTurn = {1, 2};
constexpr LockRange kAllBytes = {0, 3};

// True if the bytes were locked (or unlocked with F_UNLCK); false if they are taken and `block` is
// false.
Result<bool> lock_bytes(int fd, LockRange bytes, short type, bool block) {
  struct flock lock = lock_on(bytes, type);
  while (fcntl(fd, block ? F_OFD_SETLKW : F_OFD_SETLK, &lock) != 0) {
    if (errno == EINTR) continue;
    if (!block && (errno == EAGAIN || errno == EACCES)) return false;
    return syscall_error("fcntl", "cannot lock the file");
  }
  return true;
}

// Takes all bytes at once, or nothing: it passes neither waiters nor a turn.
Result<bool> lock_if_free(int fd) {
  Result<bool> locked = lock_bytes(fd, kAllBytes, F_WRLCK, false);
  if (!locked.ok() || !locked.value()) return locked;
  return lock_bytes(fd, kTurnstileAndTurn, F_UNLCK, false);
}

// The first line of the file: a number with this many digits.
constexpr size_t kDigits = 16;
constexpr size_t kLine = kDigits + 1;

// Greater numbers leave no room for more commits: some other program wrote them.
constexpr uint64_t kNumberLimit = 1'000'000'000'000'000;
// A number may be read while it is written. Two equal reads in a row make it valid.
constexpr int kNumberReads = 10;

std::string number_line(uint64_t number) {
  std::string digits = std::to_string(number);
  return std::string(kDigits - std::min(digits.size(), kDigits), '0') + digits + '\n';
}

// 0 if the text does not begin with such a line.
uint64_t number_in(std::string_view text) {
  if (text.size() < kLine || text[kDigits] != '\n') return 0;
  const std::string_view digits = text.substr(0, kDigits);
  if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) return 0;
  const uint64_t number = std::stoull(std::string(digits));
  return number < kNumberLimit ? number : 0;
}

// The bytes behind all owners' ranges.
constexpr LockRange kSeals = {int64_t{1} << 62, 0};

// From the line "lock: 1: OFDLCK ADVISORY WRITE -1 08:01:12 0 EOF" about the descriptor's own lock,
// see proc_pid_fdinfo(5).
Result<std::string> device_listed_for(int fd) {
  errno = 0;
  std::ifstream lines("/proc/self/fdinfo/" + std::to_string(fd));
  // Says nothing about the file system. Without /proc the kernel lists nothing.
  if (!lines && errno != ENOENT) return syscall_error("open", "cannot read what the kernel lists of a lock");
  for (std::string line; std::getline(lines, line);) {
    char device[24];
    if (sscanf(line.c_str(), "lock: %*s %*s %*s %*s %*s %23[0-9a-f:]", device) != 1) continue;
    const std::string text = device;
    if (const size_t end = text.rfind(':'); end != std::string::npos) return text.substr(0, end);
  }
  return syscall_error("fcntl", "the kernel does not list the lock", ENOLCK);
}

// A condition by the monotonic clock. std::condition_variable takes glibc 2.30 for that.
class Condition {
 public:
  Condition() {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition_, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  ~Condition() { pthread_cond_destroy(&condition_); }
  void notify() { pthread_cond_signal(&condition_); }
  // REQUIRES: the mutex is locked by this thread
  void wait_until(std::mutex& mutex, std::chrono::steady_clock::time_point end,
                  const std::function<bool()>& is_met) {
    const auto since_epoch = std::chrono::duration_cast<std::chrono::nanoseconds>(end.time_since_epoch());
    const timespec until = {since_epoch.count() / 1'000'000'000, since_epoch.count() % 1'000'000'000};
    while (!is_met())
      if (pthread_cond_timedwait(&condition_, mutex.native_handle(), &until) == ETIMEDOUT) return;
  }

 private:
  pthread_cond_t condition_;
};

// The thread that asks for a lock, as others see it. It may be ready to run, but without a CPU.
class Asker {
 public:
  Asker() : tid_(static_cast<pid_t>(syscall(SYS_gettid))) {
    if (pthread_getcpuclockid(pthread_self(), &clock_) != 0) clock_ = CLOCK_THREAD_CPUTIME_ID;
  }
  // True if it is ready to run, and has had a CPU for less than this since the first look.
  bool lacks_cpu(std::chrono::nanoseconds least) {
    timespec used{};
    if (!is_ready() || clock_gettime(clock_, &used) != 0) return false;
    const auto run = std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
    if (!first_run_) first_run_ = run;
    return run - *first_run_ < least;
  }
  // The next look is a first one.
  void forget() { first_run_.reset(); }

 private:
  bool is_ready() const {
    std::ifstream file("/proc/self/task/" + std::to_string(tid_) + "/stat");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const std::optional<TaskStat> stat = parse_task_stat(text);
    return stat && stat->state == 'R';
  }

  pid_t tid_;
  clockid_t clock_;
  std::optional<std::chrono::nanoseconds> first_run_;
};

// Counts forks in a child that goes on without exec: its descriptors are copies of its parent's.
std::atomic<unsigned> forks = 0;
[[maybe_unused]] const int kCountsForks = pthread_atfork(nullptr, nullptr, [] { forks++; });

}  // namespace

bool is_file_of(const Folder& folder, const std::string& name, int fd) {
  struct stat here;
  Result<std::optional<FileVersion>> there = folder.version(name);
  return fstat(fd, &here) == 0 && there.ok() && there.value() && there.value()->inode == here.st_ino;
}

Result<bool> try_lock(int fd, LockRange range) {
  struct flock lock = lock_on(range);
  if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  return syscall_error("fcntl", "cannot lock the file");
}

Result<std::string> listed_device(const Folder& folder) {
  Result<UniqueFd> opened = folder.open_again();
  if (!opened.ok()) return opened.error();
  const int fd = opened.value().get();
  // Nothing else locks a folder.
  if (Result<bool> locked = lock_bytes(fd, {}, F_RDLCK, false); !locked.ok()) return locked.error();
  return device_listed_for(fd);
}

Result<UniqueFd> create_locked_file(const Folder& folder, const std::string& name, std::string_view text,
                                    LockRange range, std::optional<uint64_t> generation) {
  const std::string beside = name + ".new";
  Result<Done> done = folder.remove(beside);
  if (!done.ok()) return done.error();
  Result<UniqueFd> file = folder.open_file(beside, true, true);
  if (!file.ok()) return file;
  int fd = file.value().get();
  Result<bool> locked = try_lock(fd, range);
  if (locked.ok() && range.length > 0) {
    if (Result<std::string> listed = device_listed_for(fd); !listed.ok()) locked = listed.error();
  }
  if (!locked.ok()) {
    done = locked.error();
  } else if (!locked.value()) {
    done = syscall_error("fcntl", "cannot lock " + name + " in " + folder.path(), EAGAIN);
  } else {
    done = overwrite(fd, text);
    if (done.ok() && generation) done = seal(fd, crc32(text), *generation);
    if (done.ok()) done = folder.move(beside, folder, name);
  }
  if (done.ok()) return file;
  (void)folder.remove(beside);
  return done.error();
}

Result<bool> is_locked_elsewhere(int fd, LockRange range) {
  struct flock lock = lock_on(range);
  if (fcntl(fd, F_OFD_GETLK, &lock) != 0) return syscall_error("fcntl", "cannot query the lock of the file");
  return lock.l_type != F_UNLCK;
}

// The new seal comes first, so that the file always has one.
Result<Done> seal(int fd, uint32_t checksum, uint64_t generation, LockRange* last) {
  const LockRange range = {kSeals.start + checksum, 1 + static_cast<int64_t>(generation)};
  LockRange unknown;
  LockRange& known = last != nullptr ? *last : unknown;
  const LockRange before = std::exchange(known, {});
  const bool is_apart =
      before.start + before.length <= range.start || range.start + range.length <= before.start;
  Result<bool> locked = lock_bytes(fd, range, F_RDLCK, false);
  if (before.length > 0 && is_apart) {
    if (locked.ok()) locked = lock_bytes(fd, before, F_UNLCK, false);
  } else {
    if (locked.ok() && checksum > 0) locked = lock_bytes(fd, {kSeals.start, checksum}, F_UNLCK, false);
    if (locked.ok()) locked = lock_bytes(fd, {range.start + range.length, 0}, F_UNLCK, false);
  }
  if (!locked.ok()) return locked.error();
  known = range;
  return Done{};
}

Result<std::optional<uint32_t>> sealed_checksum(int fd) {
  struct flock lock = lock_on(kSeals);
  if (fcntl(fd, F_OFD_GETLK, &lock) != 0) return syscall_error("fcntl", "cannot query the seal of the file");
  if (lock.l_type == F_UNLCK) return std::optional<uint32_t>();
  return std::optional(static_cast<uint32_t>(lock.l_start - kSeals.start));
}

// It guards against a rare event, so a kernel without room for a lock does not matter.
void show_generation(int fd, uint64_t generation) {
  (void)lock_bytes(fd, {0, 1 + static_cast<int64_t>(generation)}, F_RDLCK, false);
}

uint64_t shown_generation(int fd, uint64_t least) {
  for (;;) {
    struct flock lock = lock_on({1 + static_cast<int64_t>(least), 0});
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_RDLCK || lock.l_start != 0) return least;
    const auto shown = static_cast<uint64_t>(lock.l_len - 1);
    if (lock.l_len == 0 || shown >= kNumberLimit) return least;
    least = shown;
  }
}

Result<Done> HeldLock::check() const {
  if (file_->leads_to(open_.inode)) return Done{};
  return syscall_error(
      "fcntl",
      "the file " + file_->name_ + " in " + file_->folder_->path() + " was removed while it was locked",
      ESTALE);
}

UnchangedSince HeldLock::names() const {
  return names_ && file_->folder_->changed_ns() == names_ ? names_ : std::nullopt;
}

void HeldLock::sign() {
  std::string text(kLine + file_->note_.size(), '\0');
  const int fd = open_.fd.get();
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  number_ = number_in(text);
  // For people only, so a full disk does not matter.
  if (text.size() < kLine || text[kDigits] != '\n')
    (void)write_at(fd, 0, number_line(0) + file_->note_);
  else if (std::string_view(text).substr(kLine) != file_->note_)
    (void)write_at(fd, kLine, file_->note_);
}

void HeldLock::set_number(uint64_t number) {
  number_ = number;
  (void)write_at(open_.fd.get(), 0, number_line(number));
}

void HeldLock::release() {
  if (!open_.fd.valid()) return;
  file_->released_ = std::chrono::steady_clock::now();
  file_->is_held_ = false;
  // Does not close the descriptor, because a child before its exec may have a copy.
  if (open_.forks == forks && lock_bytes(open_.fd.get(), kLockByte, F_UNLCK, false).ok())
    file_->keep(std::move(open_));
  open_.fd.reset();
}

uint64_t number_in_lock_file(const Folder& folder, const std::string& name) {
  Result<UniqueFd> file = folder.open_to_look(name);
  if (!file.ok()) return 0;
  uint64_t before = 0;
  for (int reads = 0; reads < kNumberReads; reads++) {
    char line[kLine];
    if (pread(file.value().get(), line, kLine, 0) != static_cast<ssize_t>(kLine)) return 0;
    const uint64_t number = number_in({line, kLine});
    if (reads > 0 && number == before) return number;
    before = number;
  }
  return before;
}

bool LockTurn::is_on() const {
  return file_ && file_->steps_left() > 0 && std::chrono::steady_clock::now() < until_;
}

std::chrono::steady_clock::time_point LockTurn::idle_at() const {
  const auto used = file_->is_held() ? std::chrono::steady_clock::now() : file_->released_.load();
  return used + limits_.idle;
}

void LockTurn::end() {
  if (file_) file_->steps_left_ = 0;
  file_.reset();
  // Closing alone leaves the bytes to a child before its exec.
  if (open_.fd.valid() && open_.forks == forks)
    (void)lock_bytes(open_.fd.get(), kTurnstileAndTurn, F_UNLCK, false);
  open_.fd.reset();
}

// Closes a descriptor after an error, with whatever it has locked.
Result<std::optional<HeldLock>> LockFile::attempt(bool past_turnstile, bool checks) {
  const bool has_turn = steps_left_ > 0;
  const bool passes = past_turnstile || has_turn;
  for (;;) {
    Result<LockDescriptor> opened = open(checks);
    if (!opened.ok()) return opened.error();
    LockDescriptor file = std::move(opened).value();
    const int fd = file.fd.get();
    Result<bool> locked = passes ? lock_bytes(fd, kLockByte, F_WRLCK, false) : lock_if_free(fd);
    if (!locked.ok()) return lock_error(locked.error());
    if (checks && !leads_to(file.inode)) continue;
    if (locked.value()) {
      if (has_turn) steps_left_--;
      HeldLock held = hold(std::move(file));
      if (checks) held.sign();
      return std::optional(std::move(held));
    }
    keep(std::move(file));
    return std::optional<HeldLock>();
  }
}

// Goes through the turnstile to the lock, so that a process that releases the lock finds the next
// one there already.
Result<HeldLock> LockFile::wait(LockTurn& turn, const OnNext& on_next) {
  for (;;) {
    if (!turn.is_on() || !leads_to(turn.open_.inode)) {
      if (Result<Done> entered = enter(turn, on_next); !entered.ok()) return entered.error();
    }
    Result<LockDescriptor> opened = open();
    if (!opened.ok()) return opened.error();
    LockDescriptor file = std::move(opened).value();
    // The file that stayed open may be a removed one, whose lock protects nothing and whose holder
    // may be stopped.
    if (!leads_to(file.inode)) continue;
    Result<bool> locked = lock_bytes(file.fd.get(), kLockByte, F_WRLCK, true);
    if (!locked.ok()) return lock_error(locked.error());
    if (!leads_to(file.inode)) continue;
    if (turn.file_) {
      steps_left_--;
    } else if (!turn.has_waited_ || turn.open_.inode != file.inode) {
      turn.end();
    } else {
      (void)lock_bytes(turn.open_.fd.get(), kTurnstileByte, F_UNLCK, false);
      turn.until_ = std::chrono::steady_clock::now() + turn.limits_.time;
      turn.file_ = shared_from_this();
      steps_left_ = turn.limits_.steps - 1;
    }
    HeldLock held = hold(std::move(file));
    held.sign();
    return held;
  }
}

Result<Done> LockFile::enter(LockTurn& turn, const OnNext& on_next) {
  turn.end();
  Result<LockDescriptor> opened = open_another();
  if (!opened.ok()) return opened.error();
  turn.open_ = std::move(opened).value();
  turn.has_waited_ = false;
  const int fd = turn.open_.fd.get();
  // At once while the process before has its turn, so that this one is ready at the end of it.
  auto tell = [&, is_told = false]() mutable {
    if (!is_told && on_next) on_next();
    is_told = true;
  };
  for (LockRange byte : {kTurnstileByte, kTurnByte}) {
    Result<bool> entered = lock_bytes(fd, byte, F_WRLCK, false);
    if (entered.ok() && !entered.value()) {
      turn.has_waited_ = true;
      if (byte.start == kTurnByte.start) tell();
      entered = lock_bytes(fd, byte, F_WRLCK, true);
    }
    if (!entered.ok()) return lock_error(entered.error());
    if (turn.has_waited_) tell();
  }
  return Done{};
}

HeldLock LockFile::hold(LockDescriptor file) {
  is_held_ = true;
  return HeldLock(shared_from_this(), std::move(file));
}

Error LockFile::lock_error(const Error& error) const {
  return syscall_error("fcntl", "cannot lock " + name_ + " in " + folder_->path(), error.errno_value);
}

Result<LockDescriptor> LockFile::open(bool create) {
  {
    std::lock_guard lock(mutex_);
    LockDescriptor spare = std::move(spare_);
    if (spare.fd.valid() && spare.forks == forks) return spare;
  }
  return open_another(create);
}

Result<LockDescriptor> LockFile::open_another(bool create) const {
  Result<UniqueFd> fd = folder_->open_file(name_, create, false);
  if (!fd.ok()) return fd.error();
  struct stat s;
  if (fstat(fd.value().get(), &s) != 0)
    return syscall_error("fstat", "cannot look at " + name_ + " in " + folder_->path());
  return LockDescriptor{std::move(fd).value(), s.st_ino, forks};
}

bool LockFile::leads_to(uint64_t inode) const {
  Result<std::optional<FileVersion>> there = folder_->version(name_);
  return there.ok() && there.value() && there.value()->inode == inode;
}

void LockFile::keep(LockDescriptor spare) {
  std::lock_guard lock(mutex_);
  if (!spare_.fd.valid()) spare_ = std::move(spare);
}

struct LockQueue::State {
  std::shared_ptr<LockFile> file;
  TurnLimits limits;
  std::mutex mutex;
  Condition changed;
  std::deque<Request> requests;
  bool running = false;
  bool ends_turn = false;
  std::optional<Asker> asker;
};

LockQueue::LockQueue(std::shared_ptr<LockFile> file, TurnLimits limits) : state_(std::make_shared<State>()) {
  state_->file = std::move(file);
  state_->limits = limits;
}

LockQueue::~LockQueue() {
  {
    std::lock_guard lock(state_->mutex);
    state_->requests.clear();
  }
  end_turn();
}

Result<uint64_t> LockQueue::wait(Deliver deliver, LockFile::OnNext on_next) {
  std::lock_guard lock(state_->mutex);
  state_->asker.emplace();
  if (!state_->running) {
    try {
      std::thread(run, state_).detach();
    } catch (const std::system_error& refused) {
      return syscall_error("clone", "cannot start a thread to wait for " + state_->file->name(),
                           refused.code().value());
    }
    state_->running = true;
  }
  // Request numbers are unique in the process: a folder's queue may be replaced while a request
  // waits.
  static std::atomic<uint64_t> last_request = 0;
  uint64_t request = ++last_request;
  // The new thread cannot look for the request before the mutex is free.
  state_->requests.push_back({request, std::move(deliver), std::move(on_next)});
  state_->changed.notify();
  return request;
}

template <class Attempt>
Result<std::optional<HeldLock>> LockQueue::in_turn(Attempt attempt) {
  const bool had_turn = state_->file->steps_left() > 0;
  Result<std::optional<HeldLock>> lock = attempt(*state_->file);
  if (had_turn && state_->file->steps_left() <= 0) end_turn();
  return lock;
}

Result<std::optional<HeldLock>> LockQueue::try_lock(bool past_turnstile) {
  return in_turn([&](LockFile& file) { return file.try_lock(past_turnstile); });
}

Result<std::optional<HeldLock>> LockQueue::try_lock_unchecked() {
  return in_turn([](LockFile& file) { return file.try_lock_unchecked(); });
}

void LockQueue::end_turn() {
  std::lock_guard lock(state_->mutex);
  state_->ends_turn = true;
  state_->changed.notify();
}

bool LockQueue::give_up(uint64_t request) {
  std::lock_guard lock(state_->mutex);
  return std::erase_if(state_->requests, [&](const Request& each) { return each.number == request; }) > 0;
}

void LockQueue::run(std::shared_ptr<State> state) {
  LockTurn turn(state->limits);
  for (;;) {
    Result<HeldLock> held = state->file->wait(turn, [&] {
      std::lock_guard lock(state->mutex);
      if (!state->requests.empty() && state->requests.front().on_next) state->requests.front().on_next();
    });
    // Delivered under the mutex, so that give_up() cannot return meanwhile.
    std::lock_guard lock(state->mutex);
    state->ends_turn = state->requests.empty();
    if (!state->requests.empty()) {
      Deliver deliver = std::move(state->requests.front().deliver);
      state->requests.pop_front();
      deliver(std::move(held));
    }
    // Others wait while this process may want the lock again, and does.
    const auto is_called = [&] { return state->ends_turn || !state->requests.empty(); };
    while (turn.is_on() && !is_called()) {
      auto look = turn.idle_at();
      const auto now = std::chrono::steady_clock::now();
      if (look > now) {
        state->asker->forget();
      } else {
        if (!state->asker->lacks_cpu(state->limits.idle)) break;
        look = now + state->limits.idle;
      }
      state->changed.wait_until(state->mutex, std::min(look, turn.until()), is_called);
    }
    if (state->ends_turn || state->requests.empty()) turn.end();
    if (state->requests.empty()) {
      state->running = false;
      return;
    }
  }
}

}  // namespace numalign
