// SPDX-License-Identifier: Apache-2.0
#include "reader/writers/compressed_file.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <vector>

#include "reader/file_ending.h"

namespace recmill::reader {
namespace {

constexpr size_t kBufferBytes = 256 << 10;
constexpr size_t kFrameBytes = size_t{8} << 20;

class GzipFile final : public WritableFile {
 public:
  explicit GzipFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {
    constexpr int kGzipWindow = 15 + 16;  // 32 KiB, with a gzip header
    const int outcome = deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                                     Z_DEFAULT_STRATEGY);
    RECMILL_CHECK(outcome == Z_OK);
  }
  ~GzipFile() override { deflateEnd(&stream_); }

  Status append(std::span<const std::byte> bytes) override {
    constexpr size_t kLargest = 1 << 30;  // zlib counts in 32 bits
    for (; bytes.size() > kLargest; bytes = bytes.subspan(kLargest)) {
      RECMILL_RETURN_IF_ERROR(compress(bytes.first(kLargest), Z_NO_FLUSH));
    }
    return compress(bytes, Z_NO_FLUSH);
  }
  Status sync() override { return file_->sync(); }
  Status close() override {
    RECMILL_RETURN_IF_ERROR(compress({}, Z_FINISH));
    return file_->close();
  }

 private:
  Status compress(std::span<const std::byte> bytes, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      RECMILL_CHECK(deflate(&stream_, flush) != Z_STREAM_ERROR);
      const size_t made = buffer_.size() - stream_.avail_out;
      RECMILL_RETURN_IF_ERROR(file_->append(std::span(buffer_).first(made)));
    } while (stream_.avail_out == 0);
    return {};
  }

  std::unique_ptr<WritableFile> file_;
  z_stream stream_{};
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kBufferBytes);
};

class ZstdFile final : public WritableFile {
 public:
  explicit ZstdFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {
    RECMILL_CHECK(context_ != nullptr);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }

  Status append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), kFrameBytes - in_frame_));
      bytes = bytes.subspan(piece.size());
      in_frame_ += piece.size();
      const bool full = in_frame_ == kFrameBytes;
      RECMILL_RETURN_IF_ERROR(compress(piece, full ? ZSTD_e_end : ZSTD_e_continue));
      if (full) in_frame_ = 0;
    }
    return {};
  }
  Status sync() override { return file_->sync(); }
  Status close() override {
    RECMILL_RETURN_IF_ERROR(compress({}, ZSTD_e_end));
    return file_->close();
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };

  Status compress(std::span<const std::byte> bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    bool done = false;
    while (!done) {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      const size_t left = ZSTD_compressStream2(context_.get(), &out, &in, directive);
      RECMILL_CHECK(!ZSTD_isError(left), ZSTD_getErrorName(left));
      RECMILL_RETURN_IF_ERROR(file_->append(std::span(buffer_).first(out.pos)));
      done = directive == ZSTD_e_end ? left == 0 : in.pos == in.size;
    }
    return {};
  }

  std::unique_ptr<WritableFile> file_;
  size_t in_frame_ = 0;  // bytes of the frame so far
  std::unique_ptr<ZSTD_CCtx, Free> context_{ZSTD_createCCtx()};
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kBufferBytes);
};

}  // namespace

std::unique_ptr<WritableFile> compress_by_name(const std::string& path,
                                               std::unique_ptr<WritableFile> file) {
  if (has_ending(path, ".gz")) return std::make_unique<GzipFile>(std::move(file));
  if (has_ending(path, ".zst")) return std::make_unique<ZstdFile>(std::move(file));
  return file;
}

}  // namespace recmill::reader
