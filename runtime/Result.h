// SPDX-License-Identifier: Apache-2.0
// A value or the message of an error: how functions without MLIR report bad input or inconsistent data; they never
// throw, print or exit.
// Functions with MLIR at hand emit diagnostics.
// Messages follow the contract: lowercase, no full stop, the file first, then node, op type and opset where there is
// one, both numbers of a conflict.
#ifndef SLUICE_RUNTIME_RESULT_H
#define SLUICE_RUNTIME_RESULT_H

#include <string>
#include <utility>
#include <variant>

namespace sluice {

struct Error {
  /// Refused: whatever is read is at fault. TooLarge: it is right, but not for this way of computing it.
  enum class Kind { Refused, TooLarge };
  std::string message;
  Kind kind = Kind::Refused;
};

/// For functions that return nothing on success.
struct Success {};

template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state(std::move(value)) {}
  Result(Error error) : state(std::move(error)) {}

  explicit operator bool() const { return std::holds_alternative<T>(state); }
  T &operator*() { return std::get<T>(state); }
  const T &operator*() const { return std::get<T>(state); }
  T *operator->() { return &std::get<T>(state); }
  const T *operator->() const { return &std::get<T>(state); }
  /// The message; only when there is no value.
  const std::string &error() const { return std::get<Error>(state).message; }
  /// Of the error, where callers may do something else instead.
  Error::Kind errorKind() const { return std::get<Error>(state).kind; }
  /// The error, to hand on as a Result of another type.
  Error takeError() { return std::move(std::get<Error>(state)); }

private:
  std::variant<T, Error> state;
};

using Status = Result<Success>;

} // namespace sluice

#endif
