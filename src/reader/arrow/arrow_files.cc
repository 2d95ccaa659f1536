// SPDX-License-Identifier: Apache-2.0
#include "reader/arrow/arrow_files.h"

#include <arrow/buffer.h>
#include <arrow/memory_pool.h>

#include <algorithm>

namespace recmill::reader {
namespace {

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

arrow::Status to_arrow(const Status& status) {
  return status.ok() ? arrow::Status::OK() : arrow::Status::IOError(status.message());
}

class Input final : public arrow::io::RandomAccessFile {
 public:
  explicit Input(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Seek(int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> GetSize() override { return static_cast<int64_t>(file_->size()); }

  arrow::Result<int64_t> ReadAt(int64_t position, int64_t count, void* out) override {
    if (position < 0 || count < 0) return arrow::Status::IOError("a negative offset or size");
    auto got = file_->read(static_cast<uint64_t>(position),
                           {static_cast<std::byte*>(out), static_cast<size_t>(count)});
    if (!got.ok()) return to_arrow(got.status());
    return static_cast<int64_t>(*got);
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t count) override {
    // A damaged footer may ask for any number of bytes: allocate no more than there are.
    const int64_t left = std::max<int64_t>(0, static_cast<int64_t>(file_->size()) - position);
    if (count < 0) return arrow::Status::IOError("a negative size");
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(std::min(count, left),
                                                                      arrow::system_memory_pool()));
    ARROW_ASSIGN_OR_RAISE(const int64_t got,
                          ReadAt(position, buffer->size(), buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }
  arrow::Result<int64_t> Read(int64_t count, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t got, ReadAt(position_, count, out));
    position_ += got;
    return got;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, count));
    position_ += buffer->size();
    return buffer;
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
  int64_t position_ = 0;
  bool closed_ = false;
};

class Output final : public arrow::io::OutputStream {
 public:
  Output(std::unique_ptr<WritableFile> file, Status& failure)
      : file_(std::move(file)), failure_(failure) {}

  arrow::Status Close() override {
    if (closed_) return arrow::Status::OK();
    closed_ = true;
    return keep(file_->close());
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Write(const void* data, int64_t count) override {
    position_ += count;
    return keep(file_->append({static_cast<const std::byte*>(data), static_cast<size_t>(count)}));
  }
  using OutputStream::Write;

 private:
  arrow::Status keep(const Status& status) {
    if (failure_.ok()) failure_ = status;
    return to_arrow(status);
  }

  const std::unique_ptr<WritableFile> file_;
  Status& failure_;
  int64_t position_ = 0;
  bool closed_ = false;
};

}  // namespace

Status from_arrow(const arrow::Status& status, const std::string& where) {
  if (status.ok()) return {};
  return Status::Failed(where + ": " + one_line(status.message()));
}

Status internal::from_exception(const std::exception& error, const std::string& where) {
  return Status::Failed(where + ": " + one_line(error.what()));
}

std::shared_ptr<arrow::io::RandomAccessFile> arrow_input(std::unique_ptr<ReadableFile> file) {
  return std::make_shared<Input>(std::move(file));
}

std::shared_ptr<arrow::io::OutputStream> arrow_output(std::unique_ptr<WritableFile> file,
                                                      Status& failure) {
  return std::make_shared<Output>(std::move(file), failure);
}

}  // namespace recmill::reader
