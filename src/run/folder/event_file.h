// SPDX-License-Identifier: Apache-2.0
// TensorBoard event files: scalars by step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/files.h"

namespace recmill::train {

/// Appends records to one file, as TensorFlow frames them: length (8 bytes, little endian), masked
/// CRC-32C of the length, data, masked CRC-32C of the data. Data is a protobuf Event
/// (tensorflow/core/util/event.proto): wall_time = 1, step = 2, file_version = 3, summary = 5, of
/// which simple_value is used. Each scalar is handed to the file system at once, so that
/// TensorBoard follows a run.
class EventFile {
 public:
  using WallClock = std::function<double()>;  // seconds since 1970

  /// Opens a new file events.out.tfevents.SECONDS.recmill in `folder` (made if it is not there); a
  /// second in the same second gets a number behind it.
  static Result<EventFile> create_in(Files& files, const std::string& folder,
                                     const WallClock& clock = system_seconds);

  Status scalar(std::string_view tag, int64_t step, double value);  // kept as float32
  Status close();

  static double system_seconds();

 private:
  EventFile(std::unique_ptr<WritableFile> file, WallClock clock)
      : file_(std::move(file)), clock_(std::move(clock)) {}
  Status record(const std::string& event);

  std::unique_ptr<WritableFile> file_;
  WallClock clock_;
};

/// Takes the scalars out of the event files of `folder` for which `keep` is false, and what a
/// killed run left of a record. Files that nothing is taken from stay untouched.
Status keep_events(Files& files, const std::string& folder,
                   const std::function<bool(std::string_view tag, int64_t step)>& keep);

/// One framed record.
std::string framed_record(std::string_view data);

}  // namespace recmill::train
