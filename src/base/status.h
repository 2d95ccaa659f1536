// SPDX-License-Identifier: Apache-2.0
// Two error words. CHECK: our own bug, aborts. Status and Result: the world's or the user's fault,
// returned, one clear line with the values at its end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace recmill {

/// Outcome of an operation. `failed` becomes exit status 1, `bad_request` exit status 2.
class [[nodiscard]] Status {
 public:
  enum class Code { ok, failed, bad_request };

  Status() = default;
  static Status Failed(std::string message) { return Status(Code::failed, std::move(message)); }
  static Status BadRequest(std::string message) {
    return Status(Code::bad_request, std::move(message));
  }

  bool ok() const { return code_ == Code::ok; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same status with `where` in front of its message ("file.tsv:17: ...").
  Status at(std::string_view where) const {
    return ok() ? *this : Status(code_, std::string(where) + ": " + message_);
  }

 private:
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  Code code_ = Code::ok;
  std::string message_;
};

namespace internal {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& values);
[[noreturn]] void no_value(const Status& why);
}  // namespace internal

/// A value or the Status that says why there is none. Taking a value that is not there aborts with
/// that reason.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by design
    if (status_.ok()) [[unlikely]]
      internal::no_value(status_);
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() & {
    expect_value();
    return *value_;
  }
  const T& operator*() const& {
    expect_value();
    return *value_;
  }
  T&& operator*() && { return std::move(**this); }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }

 private:
  void expect_value() const {
    if (!value_) [[unlikely]]
      internal::no_value(status_);
  }

  std::optional<T> value_;
  Status status_;
};

}  // namespace recmill

/// Aborts with file, line and `...` (optional: one std::string) when our own invariant is broken.
/// Always on.
#define RECMILL_CHECK(condition, ...)                                                   \
  do {                                                                                  \
    if (!(condition)) [[unlikely]] {                                                    \
      ::recmill::internal::check_failed(__FILE__, __LINE__, #condition, {__VA_ARGS__}); \
    }                                                                                   \
  } while (false)

#define RECMILL_CONCAT_INNER(a, b) a##b
#define RECMILL_CONCAT(a, b) RECMILL_CONCAT_INNER(a, b)

/// Returns the Status of `expression` from the enclosing function unless it is ok.
#define RECMILL_RETURN_IF_ERROR(expression)          \
  do {                                               \
    ::recmill::Status recmill_status = (expression); \
    if (!recmill_status.ok()) return recmill_status; \
  } while (false)

/// RECMILL_ASSIGN_OR_RETURN(auto value, function()): the value, or the enclosing function returns.
#define RECMILL_ASSIGN_OR_RETURN(target, expression) \
  RECMILL_ASSIGN_OR_RETURN_INNER(RECMILL_CONCAT(recmill_result_, __LINE__), target, expression)
#define RECMILL_ASSIGN_OR_RETURN_INNER(result, target, expression) \
  auto result = (expression);                                      \
  if (!result.ok()) return result.status();                        \
  target = *std::move(result)
