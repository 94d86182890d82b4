// SPDX-License-Identifier: Apache-2.0
// The one place that knows which exception is which exit status.
#include "runtime/program/Failure.h"

#include "runtime/Codec.h"
#include "runtime/Errors.h"
#include "runtime/Ranks.h"
#include "runtime/Stream.h"

#include <new>
#include <system_error>

namespace sluice {

Failure failureOf(const std::exception_ptr &thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const DataError &error) {
    return {1, error.what()};
  } catch (const UsageError &error) {
    return {2, error.what()};
  } catch (const RankFailed &error) {
    return {6, error.what()};
  } catch (const MemoryNotAvailable &error) {
    return {3, error.what()};
  } catch (const std::bad_alloc &) {
    return {3, "memory for the program itself cannot be had"};
  } catch (const std::system_error &error) {
    if (error.code() == std::errc::resource_unavailable_try_again)
      return {3, "a thread cannot be had"};
    return {4, text("internal: ", error.what())};
  } catch (const LossNotFinite &error) {
    return {5, error.what()};
  } catch (const ValueNotStorable &error) {
    return {5, error.what()};
  } catch (const DeviceError &error) {
    return {4, error.what()};
  } catch (const std::exception &error) {
    return {4, text("internal: ", error.what())};
  } catch (...) {
    return {4, "internal: an exception of no known type"};
  }
}

} // namespace sluice
