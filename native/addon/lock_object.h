// LockObject: the lock of a state folder in JavaScript. Used on the environment's thread; jobs on
// other threads share the lock itself.
#pragma once

#include <napi.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "addon/environment.h"
#include "addon/journal_binding.h"
#include "platform/files/file_lock.h"
#include "platform/files/folder.h"
#include "platform/files/state_step.h"

namespace numalign::addon {

// The lock of a folder, held until release(), until the commit that should release it is durable,
// or until its environment ends.
class LockObject : public Napi::ObjectWrap<LockObject> {
 public:
  explicit LockObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {}
  static Napi::Value make(Napi::Env env, HeldLock lock) {
    Napi::Object object = Environment::of(env).lock_class.New({});
    Unwrap(object)->lock_ = std::make_shared<HeldLock>(std::move(lock));
    return object;
  }
  // Of a step that has begun. The same object again once release() was called: making one, and collecting it,
  // takes longer than a lock.
  static Napi::Value make(Napi::Env env, BegunStep step) {
    Napi::ObjectReference& last = Environment::of(env).step_lock;
    if (last.IsEmpty() || Unwrap(last.Value())->is_used_)
      last = Napi::Persistent(Environment::of(env).lock_class.New({}));
    Napi::Object object = last.Value();
    LockObject* self = Unwrap(object);
    self->lock_ = std::make_shared<HeldLock>(std::move(step.lock));
    self->highest_ = step.highest;
    self->journal_ = step.journal;
    self->is_used_ = true;
    return object;
  }
  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, "Lock",
        {InstanceMethod<&LockObject::release>("release"), InstanceMethod<&LockObject::number>("number"),
         InstanceMethod<&LockObject::set_number>("setNumber"),
         InstanceMethod<&LockObject::version>("version")});
  }
  // The lock of a LockObject, shared so that a job on another thread outlives the object.
  static std::shared_ptr<HeldLock> of(const Napi::Value& value) {
    bool is_lock = value.IsObject() &&
                   value.As<Napi::Object>().InstanceOf(Environment::of(value.Env()).lock_class.Value());
    if (!is_lock) throw Napi::TypeError::New(value.Env(), "the lock must be a Lock");
    std::shared_ptr<HeldLock> lock = Unwrap(value.As<Napi::Object>())->lock_;
    if (!lock) throw Napi::TypeError::New(value.Env(), "the lock is released");
    return lock;
  }
  void release(const Napi::CallbackInfo&) {
    lock_.reset();
    is_used_ = false;
  }

 private:
  // The number in the lock's file, or the highest that the step has found.
  Napi::Value number(const Napi::CallbackInfo& info) {
    const uint64_t number = lock_ ? std::max(lock_->number(), highest_) : 0;
    return Napi::Number::New(info.Env(), static_cast<double>(number));
  }
  // Of the journal at the beginning of the step; undefined if none was looked at.
  Napi::Value version(const Napi::CallbackInfo& info) {
    return journal_ ? from_version(info.Env(), *journal_) : info.Env().Undefined();
  }
  // (number)
  void set_number(const Napi::CallbackInfo& info) {
    if (lock_) lock_->set_number(to_size(info[0], "the number"));
  }

  std::shared_ptr<HeldLock> lock_;
  uint64_t highest_ = 0;
  std::optional<FileVersion> journal_;
  bool is_used_ = false;  // by a step
};

// The folder of a FolderObject (folder_binding.cc). Throws a TypeError that names `what` for any
// other value.
const std::shared_ptr<const Folder>& to_folder(const Napi::Value& value, const char* what);

}  // namespace numalign::addon
