#include "addon/journal_binding.h"

#include <algorithm>
#include <memory>
#include <string>

#include "addon/async_job.h"
#include "addon/convert.h"
#include "addon/environment.h"
#include "addon/lock_object.h"
#include "core/journal_lines.h"

namespace numalign::addon {
namespace {

constexpr size_t kMostBytes = 256 << 20;

class JournalObject : public Napi::ObjectWrap<JournalObject> {
 public:
  explicit JournalObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {}
  static Napi::Value make(Napi::Env env, JournalFile file) {
    Napi::Object object = Environment::of(env).journal_class.New({});
    Unwrap(object)->file_ = std::make_shared<JournalFile>(std::move(file));
    return object;
  }
  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "Journal",
                       {
                           InstanceMethod<&JournalObject::version>("version"),
                           InstanceMethod<&JournalObject::look_in>("lookIn"),
                           InstanceMethod<&JournalObject::know>("know"),
                           InstanceMethod<&JournalObject::read>("read"),
                           InstanceMethod<&JournalObject::append>("append"),
                           InstanceMethod<&JournalObject::cut>("cut"),
                           InstanceMethod<&JournalObject::show>("show"),
                           InstanceMethod<&JournalObject::shown>("shown"),
                           InstanceMethod<&JournalObject::close>("close"),
                       });
  }

  static JournalObject& of(const Napi::Value& value) {
    bool is_journal = value.IsObject() &&
                      value.As<Napi::Object>().InstanceOf(Environment::of(value.Env()).journal_class.Value());
    if (!is_journal) throw Napi::TypeError::New(value.Env(), "the journal must be a Journal");
    JournalObject* self = Unwrap(value.As<Napi::Object>());
    (void)self->file(value.Env());
    return *self;
  }
  const JournalFile& opened() const { return *file_; }
  FileVersion note(const FileVersion& version) { return witness_.note(version); }

 private:
  JournalFile& file(Napi::Env env) const {
    if (!file_) throw Napi::Error::New(env, "the journal is closed");
    return *file_;
  }
  Napi::Value version(const Napi::CallbackInfo& info) {
    return from_version(info.Env(), unwrap(info.Env(), file(info.Env()).version()));
  }
  // (folder): true, a version, or undefined if the name leads nowhere.
  Napi::Value look_in(const Napi::CallbackInfo& info) {
    Napi::Env env = info.Env();
    const JournalLook look = unwrap(env, witness_.look(file(env), *to_folder(info[0], "folder")));
    if (look.is_known) return Napi::Boolean::New(env, true);
    return look.version ? from_version(env, *look.version) : env.Undefined();
  }
  // (offset, the most bytes, or undefined)
  Napi::Value read(const Napi::CallbackInfo& info) {
    uint64_t offset = to_size(info[0], "the offset");
    const JournalFile& from = file(info.Env());
    std::string bytes =
        unwrap(info.Env(), info[1].IsUndefined() ? from.read(offset, kMostBytes)
                                                 : from.read_some(offset, to_size(info[1], "how many")));
    return Napi::Buffer<char>::Copy(info.Env(), bytes.data(), bytes.size());
  }
  void know(const Napi::CallbackInfo&) { witness_.know(); }
  // (offset, text, folder, lock, true for the last commit, name of the copy, number for the lock's
  // file): the version of the file, or a promise of it if a device must be waited for. Runs under
  // the lock. Writes and shows the number, and for the last commit releases the lock, once the text is
  // durable and in the copy.
  Napi::Value append(const Napi::CallbackInfo& info) {
    Napi::Env env = info.Env();
    (void)file(env);
    uint64_t offset = to_size(info[0], "the offset");
    std::string text = to_string(info[1], "the text");
    std::shared_ptr<const Folder> folder = to_folder(info[2], "folder");
    std::shared_ptr<HeldLock> lock = LockObject::of(info[3]);
    bool is_last = to_bool(info[4], "whether it is the last");
    std::string copy = to_string(info[5], "the name of the copy");
    uint64_t number = to_size(info[6], "the number");
    auto append = [=, file = file_](FileVersion* version) -> Result<Done> {
      const UnchangedSince names = lock->names();
      if (!names)
        if (Result<Done> done = lock->check(); !done.ok()) return done;
      if (Result<Done> done = file->append(*folder, offset, text, names); !done.ok()) return done;
      if (version != nullptr) {
        Result<FileVersion> now = file->version();
        if (!now.ok()) return now.error();
        *version = now.value();
      }
      // They guard against rare events, so a full disk does not matter.
      if (!file->append_to_copy(*folder, copy, offset, text, names))
        (void)file->copy_to(*folder, copy, kMostBytes);
      lock->set_number(number);
      file->show(number);
      if (is_last) lock->release();
      return Done{};
    };
    witness_.forget();
    // Switching to another thread and back takes longer.
    if (folder->in_memory()) {
      const int64_t from_ns = file_time_ns();
      unwrap(env, append(nullptr));
      return from_version(env, witness_.note_own(*file_, offset + text.size(), from_ns));
    }
    auto append_and_look = [append = std::move(append)]() -> Result<FileVersion> {
      FileVersion version{};
      if (Result<Done> done = append(&version); !done.ok()) return done.error();
      return version;
    };
    return run_async<FileVersion>(env, std::move(append_and_look), [](Napi::Env env, FileVersion version) {
      return from_version(env, version);
    });
  }
  // (size, folder)
  void cut(const Napi::CallbackInfo& info) {
    unwrap(info.Env(), file(info.Env()).cut(*to_folder(info[1], "folder"), to_size(info[0], "the size")));
  }
  // (generation)
  void show(const Napi::CallbackInfo& info) { file(info.Env()).show(to_size(info[0], "the generation")); }
  // (the least)
  Napi::Value shown(const Napi::CallbackInfo& info) {
    const uint64_t shown = file(info.Env()).shown(to_size(info[0], "the least"));
    return Napi::Number::New(info.Env(), static_cast<double>(shown));
  }
  void close(const Napi::CallbackInfo&) { file_.reset(); }

  std::shared_ptr<JournalFile> file_;
  JournalWitness witness_;
};

// (bytes of change lines, the generation before them; without it, of the line of a whole state): the
// merged change, the words of its CPUs, the length of its lines, their last seal, whether a tail follows;
// undefined if the lines are not plain
Napi::Value merge_lines_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  if (!info[0].IsBuffer()) throw Napi::TypeError::New(env, "the lines must be a Buffer");
  const auto bytes = info[0].As<Napi::Buffer<char>>();
  std::optional<uint64_t> generation;
  if (!info[1].IsUndefined()) generation = to_size(info[1], "the generation");
  const std::optional<MergedLines> merged = merge_lines({bytes.Data(), bytes.Length()}, generation);
  if (!merged) return env.Undefined();
  Napi::Uint32Array words = Napi::Uint32Array::New(env, merged->words.size());
  std::ranges::copy(merged->words, words.Data());
  Napi::Array parts = Napi::Array::New(env, 5);
  parts[0u] = Napi::String::New(env, merged->change);
  parts[1u] = words;
  parts[2u] = Napi::Number::New(env, static_cast<double>(merged->length));
  parts[3u] = Napi::String::New(env, merged->seal);
  parts[4u] = Napi::Boolean::New(env, merged->has_tail);
  return parts;
}

}  // namespace

const JournalFile& to_journal(const Napi::Value& value) { return JournalObject::of(value).opened(); }

FileVersion note_version(const Napi::Value& journal, const FileVersion& version) {
  return JournalObject::of(journal).note(version);
}

Napi::Value make_journal(Napi::Env env, JournalFile file) {
  return JournalObject::make(env, std::move(file));
}

Napi::Value from_version(Napi::Env env, const FileVersion& version) {
  return Napi::String::New(env, std::to_string(version.inode) + ":" + std::to_string(version.size) + ":" +
                                    std::to_string(version.modified_ns));
}

void export_journal(Napi::Env env, Napi::Object exports) {
  exports["mergeLines"] = Napi::Function::New<merge_lines_binding>(env);
  Environment::of(env).journal_class = Napi::Persistent(JournalObject::define(env));
}

}  // namespace numalign::addon
