// The state folder: files, the lock, owners. See platform/files/folder.h and
// platform/files/file_lock.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "addon/async_job.h"
#include "addon/convert.h"
#include "addon/environment.h"
#include "addon/journal_binding.h"
#include "addon/lock_object.h"
#include "platform/files/extended_attribute.h"
#include "platform/files/file_lock.h"
#include "platform/files/folder.h"
#include "platform/files/owner_files.h"
#include "platform/threads/thread_pins.h"

namespace numalign::addon {
namespace {

constexpr size_t kMaxFileBytes = 256 << 20;

// Valid until JavaScript runs again.
std::string_view to_bytes(const Napi::Value& value) {
  if (!value.IsBuffer()) throw Napi::TypeError::New(value.Env(), "the bytes must be a Buffer");
  auto buffer = value.As<Napi::Buffer<char>>();
  return {buffer.Data(), buffer.Length()};
}

// Locks of owners whose environment has ended while threads of the process were still pinned for
// their grants. The next transaction of another environment moves these threads and releases the
// locks. Until then the grants live, because their CPUs are in use.
class OrphanedOwners {
 public:
  static OrphanedOwners& of_this_process() {
    static auto& owners = *new OrphanedOwners;  // never destroyed: Workers may end while the process exits
    return owners;
  }
  void add(const std::string& name, UniqueFd fd) {
    // Makes watchers of the folder look: closing a file that is open for writing is an event.
    UniqueFd again(::open(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), O_WRONLY | O_CLOEXEC));
    std::lock_guard lock(mutex_);
    fds_.insert_or_assign(name, std::move(fd));
  }
  std::vector<std::string> names() {
    std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, fd] : fds_) names.push_back(name);
    return names;
  }
  void close(const std::string& name) {
    std::lock_guard lock(mutex_);
    fds_.erase(name);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, UniqueFd> fds_;
};

// owners/<uuid>: locked while its owner lives. A copy of the descriptor in a child keeps it locked
// for the child.
class OwnerObject : public Napi::ObjectWrap<OwnerObject> {
 public:
  explicit OwnerObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {}
  ~OwnerObject() {
    if (!fd_.valid() || !ThreadPins::of_this_process().holds_for(name_, tid_)) return;
    OrphanedOwners::of_this_process().add(name_, std::move(fd_));
  }
  static Napi::Value make(Napi::Env env, const std::string& name, UniqueFd fd) {
    Napi::Object object = Environment::of(env).owner_class.New({});
    OwnerObject* self = Unwrap(object);
    self->name_ = name;
    self->fd_ = std::move(fd);
    self->tid_ = Environment::of(env).tid;
    return object;
  }
  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, "Owner",
        {InstanceMethod<&OwnerObject::write>("write"), InstanceMethod<&OwnerObject::write_from>("writeAt"),
         InstanceMethod<&OwnerObject::append>("append"), InstanceMethod<&OwnerObject::seal>("seal"),
         InstanceMethod<&OwnerObject::cut>("cut"), InstanceMethod<&OwnerObject::close>("close"),
         InstanceMethod<&OwnerObject::is_current>("isCurrent"), InstanceAccessor<&OwnerObject::fd>("fd")});
  }
  void write(const Napi::CallbackInfo& info) {
    if (info[0].IsBuffer())
      unwrap(info.Env(), overwrite(fd_.get(), to_bytes(info[0])));
    else
      unwrap(info.Env(), overwrite(fd_.get(), to_string(info[0], "the text")));
  }
  // (offset, text)
  void write_from(const Napi::CallbackInfo& info) {
    unwrap(info.Env(), write_at(fd_.get(), to_size(info[0], "the offset"), to_string(info[1], "the text")));
  }
  // (checksum, generation)
  void seal(const Napi::CallbackInfo& info) {
    const auto checksum = static_cast<uint32_t>(to_size(info[0], "the checksum"));
    last_seal_ = {};
    unwrap(info.Env(), numalign::seal(fd_.get(), checksum, to_size(info[1], "the generation"), &last_seal_));
  }
  // (offset, lines, last line, the checksum of what is before them, generation): see append_sealed().
  Napi::Value append(const Napi::CallbackInfo& info) {
    const std::string lines = to_string(info[1], "the lines");
    const std::string last = to_string(info[2], "the last line");
    const OwnerLines all{to_size(info[0], "the offset"), lines, last,
                         static_cast<uint32_t>(to_size(info[3], "the checksum")),
                         to_size(info[4], "the generation")};
    const auto checksum = unwrap(info.Env(), append_sealed(fd_.get(), all, &last_seal_));
    return checksum ? Napi::Number::New(info.Env(), *checksum) : info.Env().Undefined();
  }
  // (size)
  void cut(const Napi::CallbackInfo& info) {
    unwrap(info.Env(), numalign::cut(fd_.get(), to_size(info[0], "the size")));
  }
  void close(const Napi::CallbackInfo&) { fd_.reset(); }
  // (folder): true if the file still has its name there.
  Napi::Value is_current(const Napi::CallbackInfo& info);
  Napi::Value fd(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), fd_.get()); }

 private:
  std::string name_;
  UniqueFd fd_;
  LockRange last_seal_;
  pid_t tid_ = 0;
};

Napi::Value from_names(Napi::Env env, const std::vector<std::string>& names) {
  auto array = Napi::Array::New(env, names.size());
  for (size_t i = 0; i < names.size(); i++) array[i] = Napi::String::New(env, names[i]);
  return array;
}

Napi::Value orphaned_owners(const Napi::CallbackInfo& info) {
  return from_names(info.Env(), OrphanedOwners::of_this_process().names());
}

void close_orphaned_owner(const Napi::CallbackInfo& info) {
  OrphanedOwners::of_this_process().close(to_string(info[0], "the owner"));
}

class LockRequest;

// The waiting requests for the lock of one folder, by number. Used on the environment's thread.
struct LockWaiters {
  explicit LockWaiters(std::shared_ptr<LockFile> file) : queue(std::move(file)) {}
  LockQueue queue;
  StateSteps steps;
  std::map<uint64_t, LockRequest*> waiting;
};

// One request for the lock. Lives until it is answered or given up, or its environment ends; all of
// that happens on the environment's thread. The waiting thread only stores the result and wakes
// that thread.
class LockRequest {
 public:
  ~LockRequest() {
    waiters_->waiting.erase(id_);
    napi_remove_env_cleanup_hook(env_, on_environment_end, this);
    napi_release_threadsafe_function(wake_, napi_tsfn_abort);
  }
  // Deletes itself. Returns its number.
  static uint64_t start(Napi::Env env, std::shared_ptr<LockWaiters> waiters, Napi::Function callback,
                        Napi::Function on_next) {
    auto request = std::make_unique<LockRequest>(env, std::move(waiters), callback, on_next);
    LockRequest* self = request.get();
    self->id_ = unwrap(
        env, self->waiters_->queue.wait(
                 [self](Result<HeldLock> result) {
                   self->result_ = std::move(result);
                   napi_call_threadsafe_function(self->wake_, nullptr, napi_tsfn_nonblocking);
                 },
                 [self] { napi_call_threadsafe_function(self->wake_, &kIsNext, napi_tsfn_nonblocking); }));
    self->waiters_->waiting[self->id_] = self;
    return request.release()->id_;
  }
  // False if the request was answered already: its callback has run or will run.
  static bool give_up(LockWaiters& waiters, uint64_t id) {
    auto found = waiters.waiting.find(id);
    if (found == waiters.waiting.end() || !waiters.queue.give_up(id)) return false;
    delete found->second;
    return true;
  }

  // Use start().
  LockRequest(Napi::Env env, std::shared_ptr<LockWaiters> waiters, Napi::Function callback,
              Napi::Function on_next)
      : env_(env),
        waiters_(std::move(waiters)),
        callback_(Napi::Persistent(callback)),
        on_next_(Napi::Persistent(on_next)) {
    napi_create_threadsafe_function(env, nullptr, nullptr, Napi::String::New(env, "numalign lock"), 0, 1,
                                    nullptr, nullptr, this, on_wake, &wake_);
    // Added after the thread-safe function's own hook, so that it runs before it, with no call in
    // between.
    napi_add_env_cleanup_hook(env, on_environment_end, this);
  }

 private:
  static void on_environment_end(void* data) {
    auto* self = static_cast<LockRequest*>(data);
    self->waiters_->queue.give_up(self->id_);
    delete self;
  }
  static void on_wake(napi_env env, napi_value, void* context, void* what) {
    if (env == nullptr) return;  // the environment is ending: on_environment_end has deleted the request
    auto* self = static_cast<LockRequest*>(context);
    try {
      if (what == &kIsNext) {
        // The function may give the request up, which deletes it.
        self->on_next_.Value().Call({});
      } else {
        answer(env, std::unique_ptr<LockRequest>(self));
      }
    } catch (const Napi::Error& error) {
      // Fails only while the environment is torn down, when no caller is left.
      error.ThrowAsJavaScriptException();
    }
  }
  static void answer(Napi::Env env, std::unique_ptr<LockRequest> self) {
    // If the callback cannot be called, this releases the lock.
    Result<HeldLock> result = std::move(*self->result_);
    Napi::Function callback = self->callback_.Value();
    self.reset();
    if (result.ok()) {
      callback.Call({env.Undefined(), LockObject::make(env, std::move(result).value())});
    } else {
      callback.Call({error_value(env, result.error())});
    }
  }

  // What a wake-up is about, if the answer is not there yet.
  static inline char kIsNext = 0;
  Napi::Env env_;
  std::shared_ptr<LockWaiters> waiters_;
  Napi::FunctionReference callback_;
  Napi::FunctionReference on_next_;
  napi_threadsafe_function wake_ = nullptr;
  uint64_t id_ = 0;
  std::optional<Result<HeldLock>> result_;
};

class FolderObject : public Napi::ObjectWrap<FolderObject> {
 public:
  explicit FolderObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {}

  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "Folder",
                       {
                           StaticMethod<&FolderObject::open>("open"),
                           InstanceMethod<&FolderObject::child>("child"),
                           InstanceMethod<&FolderObject::owner>("owner"),
                           InstanceMethod<&FolderObject::identity>("identity"),
                           InstanceMethod<&FolderObject::in_memory>("isInMemory"),
                           InstanceMethod<&FolderObject::is_local>("isLocal"),
                           InstanceMethod<&FolderObject::become>("become"),
                           InstanceMethod<&FolderObject::close>("close"),
                           InstanceMethod<&FolderObject::is_current>("isCurrent"),
                           InstanceMethod<&FolderObject::with_own_files>("withOwnFiles"),
                           InstanceMethod<&FolderObject::read>("read"),
                           InstanceMethod<&FolderObject::read_found>("readFound"),
                           InstanceMethod<&FolderObject::version>("version"),
                           InstanceMethod<&FolderObject::list>("list"),
                           InstanceMethod<&FolderObject::remove>("remove"),
                           InstanceMethod<&FolderObject::move>("move"),
                           InstanceMethod<&FolderObject::replace>("replace"),
                           InstanceMethod<&FolderObject::replace_durably>("replaceDurably"),
                           InstanceMethod<&FolderObject::open_journal>("openJournal"),
                           InstanceMethod<&FolderObject::try_lock_binding>("tryLock"),
                           InstanceMethod<&FolderObject::begin_binding>("begin"),
                           InstanceMethod<&FolderObject::wait_lock>("waitLock"),
                           InstanceMethod<&FolderObject::lock_number>("lockNumber"),
                           InstanceMethod<&FolderObject::give_up>("giveUp"),
                           InstanceMethod<&FolderObject::create_owner>("createOwner"),
                           InstanceMethod<&FolderObject::is_owner_alive>("isOwnerAlive"),
                           InstanceMethod<&FolderObject::look_at_owner>("lookAtOwner"),
                           InstanceMethod<&FolderObject::survey>("survey"),
                           InstanceMethod<&FolderObject::lock_device>("lockDevice"),
                       });
  }

  // The folder of a FolderObject.
  static const std::shared_ptr<const Folder>& of(const Napi::Value& value, const char* what) {
    bool is_folder = value.IsObject() &&
                     value.As<Napi::Object>().InstanceOf(Environment::of(value.Env()).folder_class.Value());
    if (!is_folder) throw Napi::TypeError::New(value.Env(), std::string("the ") + what + " must be a Folder");
    return Unwrap(value.As<Napi::Object>())->folder_;
  }

 private:
  // (path, create, mode, group or -1)
  static Napi::Value open(const Napi::CallbackInfo& info) {
    return make(info.Env(), Folder::open(to_string(info[0], "the path"), to_options(info)));
  }
  Napi::Value child(const Napi::CallbackInfo& info) {
    return make(info.Env(), folder_->open_child(to_string(info[0], "the name"), to_options(info)));
  }
  Napi::Value with_own_files(const Napi::CallbackInfo& info) {
    return make(info.Env(), folder_->with_own_files());
  }
  static FolderOptions to_options(const Napi::CallbackInfo& info) {
    FolderOptions options;
    options.create = to_bool(info[1], "create");
    options.mode = static_cast<unsigned>(to_int(info[2], "the mode"));
    int group = to_int(info[3], "the group");
    if (group >= 0) options.group = static_cast<unsigned>(group);
    return options;
  }
  static Napi::Value make(Napi::Env env, Result<Folder> folder) {
    auto shared = std::make_shared<const Folder>(unwrap(env, std::move(folder)));
    Napi::Object object = Environment::of(env).folder_class.New({});
    Unwrap(object)->folder_ = std::move(shared);
    return object;
  }

  Napi::Value owner(const Napi::CallbackInfo& info) {
    FolderOwner owner = unwrap(info.Env(), folder_->owner());
    Napi::Object object = Napi::Object::New(info.Env());
    object["user"] = Napi::Number::New(info.Env(), owner.user);
    object["group"] = Napi::Number::New(info.Env(), owner.group);
    object["mode"] = Napi::Number::New(info.Env(), owner.mode);
    return object;
  }
  Napi::Value identity(const Napi::CallbackInfo& info) {
    return Napi::String::New(info.Env(), unwrap(info.Env(), folder_->identity()));
  }
  // (folder): this object stands for that folder from now on.
  void become(const Napi::CallbackInfo& info) {
    (void)of(info[0], "other folder");
    folder_ = Unwrap(info[0].As<Napi::Object>())->folder_;
    forget_lock();
  }
  // Closes the descriptor after its last job.
  void close(const Napi::CallbackInfo&) {
    folder_ = std::make_shared<const Folder>(folder_->closed());
    forget_lock();
  }
  Napi::Value in_memory(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), folder_->in_memory());
  }
  Napi::Value is_local(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), folder_->is_local());
  }
  // (others)
  Napi::Value is_current(const Napi::CallbackInfo& info) {
    bool are_current = folder_->is_current();
    for (size_t i = 0; are_current && i < info.Length(); i++)
      are_current = of(info[i], "folder")->is_current();
    return Napi::Boolean::New(info.Env(), are_current);
  }
  // (name, expected bytes or undefined): returns the expected bytes themselves if they are equal.
  Napi::Value read(const Napi::CallbackInfo& info) {
    auto bytes = unwrap(info.Env(), folder_->read(to_string(info[0], "the name"), kMaxFileBytes));
    if (!bytes) return info.Env().Undefined();
    if (!info[1].IsUndefined() && to_bytes(info[1]) == *bytes) return info[1];
    return Napi::Buffer<char>::Copy(info.Env(), bytes->data(), bytes->size());
  }
  // (name): { bytes, user, mode, links }; undefined if the file does not exist
  Napi::Value read_found(const Napi::CallbackInfo& info) {
    Napi::Env env = info.Env();
    auto found = unwrap(env, folder_->read_found(to_string(info[0], "the name"), kMaxFileBytes));
    if (!found) return env.Undefined();
    Napi::Object object = Napi::Object::New(env);
    object["bytes"] = Napi::Buffer<char>::Copy(env, found->bytes.data(), found->bytes.size());
    object["user"] = Napi::Number::New(env, found->user);
    object["mode"] = Napi::Number::New(env, found->mode);
    object["links"] = Napi::Number::New(env, static_cast<double>(found->links));
    return object;
  }
  // A text that differs for every version of the file.
  Napi::Value version(const Napi::CallbackInfo& info) {
    auto version = unwrap(info.Env(), folder_->version(to_string(info[0], "the name")));
    return version ? from_version(info.Env(), *version) : info.Env().Undefined();
  }
  Napi::Value list(const Napi::CallbackInfo& info) {
    return from_names(info.Env(), unwrap(info.Env(), folder_->list()));
  }
  void remove(const Napi::CallbackInfo& info) {
    unwrap(info.Env(), folder_->remove(to_string(info[0], "the name")));
  }
  // (name, folder, new name)
  void move(const Napi::CallbackInfo& info) {
    const Folder& to = *of(info[1], "target");
    unwrap(info.Env(), folder_->move(to_string(info[0], "the name"), to, to_string(info[2], "the new name")));
  }
  // (name, text)
  void replace(const Napi::CallbackInfo& info) {
    unwrap(info.Env(), folder_->replace(to_string(info[0], "the name"), to_string(info[1], "the text")));
  }
  // (name, name of a copy or "", bytes, stamp, the lock or undefined, true to release it once the
  // file is durable, number for the lock's file): the version of the new file, or a promise of it
  // if a device must be waited for. The job shares the lock, so that no other process gets it
  // before the files are in place.
  Napi::Value replace_durably(const Napi::CallbackInfo& info) {
    Napi::Env env = info.Env();
    std::string name = to_string(info[0], "the name");
    std::string copy = to_string(info[1], "the name of the copy");
    std::string_view bytes = to_bytes(info[2]);
    auto stamp = static_cast<uint32_t>(to_int(info[3], "the stamp"));
    std::shared_ptr<HeldLock> lock = info[4].IsUndefined() ? nullptr : LockObject::of(info[4]);
    bool is_last = lock && to_bool(info[5], "whether it is the last");
    uint64_t number = lock ? to_size(info[6], "the number") : 0;
    auto replace = [folder = folder_, name, copy, stamp, lock, is_last, number](std::string_view bytes) {
      Result<FileVersion> replaced = folder->replace_durably(
          name, bytes, stamp, [&] { return lock ? lock->check() : Result<Done>(Done{}); });
      if (!replaced.ok()) return replaced;
      // They guard against rare events, so a full disk does not matter.
      if (!copy.empty()) (void)folder->replace(copy, bytes);
      if (lock) lock->set_number(number);
      if (is_last) lock->release();
      return replaced;
    };
    // Switching to another thread and back takes longer.
    if (folder_->in_memory()) return from_version(env, unwrap(env, replace(bytes)));
    return run_async<FileVersion>(
        env, [replace = std::move(replace), owned = std::string(bytes)] { return replace(owned); },
        [](Napi::Env env, FileVersion version) { return from_version(env, version); });
  }

  // (name): undefined if the file does not exist
  Napi::Value open_journal(const Napi::CallbackInfo& info) {
    auto file = unwrap(info.Env(), JournalFile::open(*folder_, to_string(info[0], "the name")));
    return file ? make_journal(info.Env(), std::move(*file)) : info.Env().Undefined();
  }

  // (name, note, true to pass waiters)
  Napi::Value try_lock_binding(const Napi::CallbackInfo& info) {
    auto lock = unwrap(info.Env(), lock_waiters(info).queue.try_lock(
                                       !info[2].IsUndefined() && to_bool(info[2], "past those that wait")));
    if (!lock) return info.Env().Undefined();
    return LockObject::make(info.Env(), std::move(*lock));
  }
  // (name, note, journal, the generation that it had, the length that it is below, folders inside)
  Napi::Value begin_binding(const Napi::CallbackInfo& info) {
    KnownState known{
        folder_, {}, to_journal(info[2]), to_size(info[3], "the generation"), to_size(info[4], "the length")};
    for (size_t i = 5; i < info.Length(); i++) known.inside.push_back(of(info[i], "folder"));
    LockWaiters& waiters = lock_waiters(info);
    std::optional<BegunStep> step = waiters.steps.begin(waiters.queue, known);
    if (!step) return info.Env().Undefined();
    step->journal = note_version(info[2], step->journal);
    return LockObject::make(info.Env(), std::move(*step));
  }
  // (name, note, callback(error, lock)): returns the number of the request.
  Napi::Value wait_lock(const Napi::CallbackInfo& info) {
    if (!info[2].IsFunction() || !info[3].IsFunction())
      throw Napi::TypeError::New(info.Env(), "the callbacks must be functions");
    (void)lock_waiters(info);
    uint64_t id =
        LockRequest::start(info.Env(), waiters_, info[2].As<Napi::Function>(), info[3].As<Napi::Function>());
    return Napi::Number::New(info.Env(), static_cast<double>(id));
  }
  // (name): reads without the lock.
  Napi::Value lock_number(const Napi::CallbackInfo& info) {
    const uint64_t number = number_in_lock_file(*folder_, to_string(info[0], "the name"));
    return Napi::Number::New(info.Env(), static_cast<double>(number));
  }
  // (name, note). A folder has one lock.
  LockWaiters& lock_waiters(const Napi::CallbackInfo& info) {
    if (!waiters_) {
      waiters_ = std::make_shared<LockWaiters>(std::make_shared<LockFile>(
          folder_, to_string(info[0], "the name"), to_string(info[1], "the note")));
    }
    return *waiters_;
  }
  void forget_lock() { waiters_.reset(); }
  // (number): true if the request was still waiting; if not, its callback has run or will run.
  Napi::Value give_up(const Napi::CallbackInfo& info) {
    auto id = static_cast<uint64_t>(to_int(info[0], "the request"));
    return Napi::Boolean::New(info.Env(), waiters_ && LockRequest::give_up(*waiters_, id));
  }

  // (name, text, start and length of the lock as bigints, or undefined, the generation of its seal, or
  // undefined): makes a new, locked file with this text in the place of any other. No reader sees half of
  // it, and a failure changes nothing.
  Napi::Value create_owner(const Napi::CallbackInfo& info) {
    Napi::Env env = info.Env();
    std::string name = to_string(info[0], "the name");
    std::string text = to_string(info[1], "the text");
    LockRange range;
    if (!info[2].IsUndefined()) range = {to_int64(info[2], "the start"), to_int64(info[3], "the length")};
    std::optional<uint64_t> generation;
    if (!info[4].IsUndefined()) generation = to_size(info[4], "the generation");
    UniqueFd file = unwrap(env, create_locked_file(*folder_, name, text, range, generation));
    return OwnerObject::make(env, name, std::move(file));
  }
  Napi::Value is_owner_alive(const Napi::CallbackInfo& info) {
    Result<UniqueFd> fd = folder_->open_to_look(to_string(info[0], "the name"));
    if (!fd.ok() && fd.error().errno_value == ENOENT) return Napi::Boolean::New(info.Env(), false);
    return Napi::Boolean::New(
        info.Env(), unwrap(info.Env(), is_locked_elsewhere(unwrap(info.Env(), std::move(fd)).get())));
  }
  // (name): undefined for a file that is too large. ENOENT without one.
  Napi::Value look_at_owner(const Napi::CallbackInfo& info) {
    Napi::Env env = info.Env();
    const std::string name = to_string(info[0], "the name");
    struct stat s;
    UniqueFd fd = unwrap(env, folder_->open_to_look(name, &s));
    if (static_cast<uint64_t>(s.st_size) > kMaxFileBytes) return env.Undefined();
    const bool is_locked = unwrap(env, is_locked_elsewhere(fd.get()));
    Napi::Object look = Napi::Object::New(env);
    look["isLocked"] = Napi::Boolean::New(env, is_locked);
    if (!is_locked) return look;
    const std::string bytes =
        unwrap(env, folder_->read_open(fd.get(), static_cast<uint64_t>(s.st_size), name, kMaxFileBytes));
    look["bytes"] = Napi::Buffer<char>::Copy(env, bytes.data(), bytes.size());
    if (auto sealed = unwrap(env, sealed_checksum(fd.get()))) look["seal"] = Napi::Number::New(env, *sealed);
    return look;
  }
  // (generation or undefined, names or undefined)
  Napi::Value survey(const Napi::CallbackInfo& info) {
    std::optional<uint64_t> generation;
    if (!info[0].IsUndefined()) generation = to_size(info[0], "the generation");
    FileNames files;
    if (!info[1].IsUndefined()) files = to_names(info[1]);
    const OwnerSurvey survey = unwrap(info.Env(), survey_owners(*folder_, kMaxFileBytes, generation, files));
    Napi::Object found = Napi::Object::New(info.Env());
    found["names"] = from_names(info.Env(), survey.names);
    found["sum"] = Napi::Number::New(info.Env(), survey.sum);
    return found;
  }
  Napi::Value lock_device(const Napi::CallbackInfo& info) {
    return Napi::String::New(info.Env(), unwrap(info.Env(), listed_device(*folder_)));
  }

  std::shared_ptr<const Folder> folder_;
  std::shared_ptr<LockWaiters> waiters_;
};

Napi::Value OwnerObject::is_current(const Napi::CallbackInfo& info) {
  const Folder& folder = *FolderObject::of(info[0], "folder");
  return Napi::Boolean::New(info.Env(), fd_.valid() && is_file_of(folder, name_, fd_.get()));
}

// (path, name)
Napi::Value read_extended_attribute(const Napi::CallbackInfo& info) {
  auto value =
      unwrap(info.Env(), extended_attribute(to_string(info[0], "the path"), to_string(info[1], "the name")));
  return value ? Napi::String::New(info.Env(), *value) : info.Env().Undefined();
}

}  // namespace

const std::shared_ptr<const Folder>& to_folder(const Napi::Value& value, const char* what) {
  return FolderObject::of(value, what);
}

void export_folder(Napi::Env env, Napi::Object exports) {
  Environment& data = Environment::of(env);
  Napi::Function folder = FolderObject::define(env);
  data.folder_class = Napi::Persistent(folder);
  data.lock_class = Napi::Persistent(LockObject::define(env));
  data.owner_class = Napi::Persistent(OwnerObject::define(env));
  exports["Folder"] = folder;
  exports["extendedAttribute"] = Napi::Function::New<read_extended_attribute>(env);
  exports["orphanedOwners"] = Napi::Function::New<orphaned_owners>(env);
  exports["closeOrphanedOwner"] = Napi::Function::New<close_orphaned_owner>(env);
}

}  // namespace numalign::addon
