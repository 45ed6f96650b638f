// Kernel notices on the environment's event loop. See platform/files/inotify.h and
// platform/discovery/cpu_events.h.
#include <uv.h>

#include <cstdlib>
#include <functional>
#include <utility>

#include "addon/convert.h"
#include "addon/environment.h"
#include "platform/discovery/cpu_events.h"
#include "platform/files/inotify.h"

namespace numalign::addon {
namespace {

// The arguments of the callback.
std::vector<napi_value> arguments_of(Napi::Env env, const FolderEvent& event) {
  return {Napi::Number::New(env, event.watch), Napi::Number::New(env, event.mask),
          Napi::String::New(env, event.name)};
}
std::vector<napi_value> arguments_of(Napi::Env, const CpuEvent&) { return {}; }

// A source of notices, polled by the environment's loop, which it never keeps alive. Deletes itself
// after close(), or with its environment.
template <typename Source>
class Watcher {
 public:
  Watcher(Napi::Env env, Source source, Napi::Function callback)
      : env_(env),
        source_(std::move(source)),
        callback_(Napi::Persistent(callback)),
        context_(env, "numalign notices"),
        // The size in the running libuv.
        poll_(static_cast<uv_poll_t*>(std::malloc(uv_handle_size(UV_POLL)))) {}
  ~Watcher() { std::free(poll_); }

  // Deletes itself on failure, and returns a negative errno of libuv.
  int start() {
    uv_loop_t* loop = nullptr;
    int unpolled = napi_get_uv_event_loop(env_, &loop) == napi_ok ? 0 : UV_EINVAL;
    if (unpolled == 0) unpolled = uv_poll_init(loop, poll_, source_.fd());
    if (unpolled != 0) {
      // There is no handle to close.
      delete this;
      return unpolled;
    }
    poll_->data = this;
    napi_add_async_cleanup_hook(env_, on_environment_end, this, &hook_);
    if (int refused = uv_poll_start(poll_, UV_READABLE, on_readable); refused != 0) {
      close();
      return refused;
    }
    uv_unref(reinterpret_cast<uv_handle_t*>(poll_));
    return 0;
  }
  Source& source() { return source_; }
  // True if the callback was not called for some event yet, or has not returned.
  bool has_pending() const { return left_ > 0 || source_.has_unread(); }
  void close() {
    if (closing_) return;
    closing_ = true;
    callback_.Reset();
    uv_close(reinterpret_cast<uv_handle_t*>(poll_), on_closed);
    // At once: the callback waits for a turn of the event loop, and a user has few instances.
    source_.close();
  }
  // Called before this object is deleted.
  std::function<void()> on_end;

 private:
  static void on_environment_end(napi_async_cleanup_hook_handle, void* data) {
    static_cast<Watcher*>(data)->close();
  }
  static void on_closed(uv_handle_t* handle) {
    auto* self = static_cast<Watcher*>(handle->data);
    if (self->on_end) self->on_end();
    napi_async_cleanup_hook_handle hook = self->hook_;
    delete self;
    napi_remove_async_cleanup_hook(hook);
  }
  static void on_readable(uv_poll_t* poll, int, int) { static_cast<Watcher*>(poll->data)->deliver(); }

  void deliver() {
    auto events = source_.read();
    if (!events.ok() || closing_) return;
    left_ = events.value().size();
    Napi::HandleScope scope(env_);
    Napi::Function callback = callback_.Value();
    for (const auto& event : events.value()) {
      // A callback that throws does not stop later events.
      try {
        callback.MakeCallback(env_.Global(), arguments_of(env_, event), context_);
      } catch (const Napi::Error& error) {
        napi_fatal_exception(env_, error.Value());
      }
      if (closing_) return;
      left_--;
    }
  }

  Napi::Env env_;
  Source source_;
  Napi::FunctionReference callback_;
  Napi::AsyncContext context_;
  uv_poll_t* poll_;
  napi_async_cleanup_hook_handle hook_ = nullptr;
  size_t left_ = 0;  // events that were read and whose callback has not returned
  bool closing_ = false;
};

// The JavaScript object of a Watcher; add(), remove() and hasPending() for Inotify only.
template <typename Source>
class NoticesObject : public Napi::ObjectWrap<NoticesObject<Source>> {
 public:
  explicit NoticesObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<NoticesObject>(info) {
    Napi::Env env = info.Env();
    if (!info[0].IsFunction()) throw Napi::TypeError::New(env, "the callback must be a function");
    auto* watcher = new Watcher<Source>(env, unwrap(env, Source::open()), info[0].As<Napi::Function>());
    if (int refused = watcher->start(); refused != 0)
      throw_error(env, syscall_error("epoll_ctl", "cannot watch the kernel's notices", -refused));
    watcher_ = watcher;
    watcher->on_end = [this] { watcher_ = nullptr; };
  }
  ~NoticesObject() {
    if (!watcher_) return;
    watcher_->on_end = nullptr;
    watcher_->close();
  }
  void close(const Napi::CallbackInfo&) {
    if (!watcher_) return;
    watcher_->on_end = nullptr;
    std::exchange(watcher_, nullptr)->close();
  }
  // (path, mask): the number of the watch.
  Napi::Value add(const Napi::CallbackInfo& info) {
    std::string path = to_string(info[0], "the path");
    auto mask = static_cast<uint32_t>(to_int(info[1], "the mask"));
    if (!watcher_) throw_error(info.Env(), syscall_error("inotify_add_watch", "cannot watch " + path, EBADF));
    return Napi::Number::New(info.Env(), unwrap(info.Env(), watcher_->source().add(path, mask)));
  }
  void remove(const Napi::CallbackInfo& info) {
    int watch = to_int(info[0], "the watch");
    if (watcher_) watcher_->source().remove(watch);
  }
  // True if the callback has not been called for an event yet; also true once it never will be.
  Napi::Value has_pending(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), !watcher_ || watcher_->has_pending());
  }

 private:
  Watcher<Source>* watcher_ = nullptr;
};

using InotifyObject = NoticesObject<Inotify>;
using CpuEventsObject = NoticesObject<CpuEvents>;

}  // namespace

void export_notices(Napi::Env env, Napi::Object exports) {
  // (callback(watch, mask, name)): { add(path, mask), remove(watch), hasPending(), close() }.
  exports["Inotify"] =
      InotifyObject::DefineClass(env, "Inotify",
                                 {InotifyObject::InstanceMethod<&InotifyObject::add>("add"),
                                  InotifyObject::InstanceMethod<&InotifyObject::remove>("remove"),
                                  InotifyObject::InstanceMethod<&InotifyObject::has_pending>("hasPending"),
                                  InotifyObject::InstanceMethod<&InotifyObject::close>("close")});
  // (callback()): { close() }.
  exports["CpuEvents"] = CpuEventsObject::DefineClass(
      env, "CpuEvents", {CpuEventsObject::InstanceMethod<&CpuEventsObject::close>("close")});
}

}  // namespace numalign::addon
