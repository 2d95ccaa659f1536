// SPDX-License-Identifier: Apache-2.0
#include "reader/lines/byte_stream.h"

#include <bzlib.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "reader/file_ending.h"

namespace recmill::reader {
namespace {

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
  Result<size_t> read(std::span<char> buffer) override {
    RECMILL_ASSIGN_OR_RETURN(const size_t size,
                             file_->read(offset_, std::as_writable_bytes(buffer)));
    offset_ += size;
    return size;
  }
  Status seek(uint64_t offset) override {
    offset_ = offset;
    return {};
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
  uint64_t offset_ = 0;
};

// Far more than lies between access points, so that it shows in the time.
constexpr uint64_t kFarBytes = uint64_t{32} << 20;

// What gzip, bzip2 and zstd share: compressed input in pieces, forward skips, restarts.
class CompressedStream : public ByteStream {
 public:
  CompressedStream(std::unique_ptr<ReadableFile> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)), input_(256 << 10) {}

  Result<size_t> read(std::span<char> buffer) final {
    size_t done = 0;
    while (done < buffer.size()) {
      RECMILL_RETURN_IF_ERROR(fill());
      if (available_ == 0 && at_frame_end()) break;
      RECMILL_ASSIGN_OR_RETURN(const size_t made, decompress(buffer.subspan(done)));
      if (made == 0 && available_ == 0 && file_offset_ == file_->size() && !at_frame_end()) {
        return Status::Failed(path_ + ": ends in the middle of the compressed data");
      }
      done += made;
      position_ += made;
    }
    return done;
  }

  Status seek(uint64_t offset) final {
    RECMILL_RETURN_IF_ERROR(approach(offset));
    std::vector<char> skipped(std::min<uint64_t>(offset - position_, 1 << 20));
    while (position_ < offset) {
      const size_t wanted = std::min<uint64_t>(offset - position_, skipped.size());
      RECMILL_ASSIGN_OR_RETURN(const size_t size, read({skipped.data(), wanted}));
      if (size < wanted)
        return Status::Failed(path_ + ": ends before byte " + std::to_string(offset));
    }
    return {};
  }

  void collect(uint64_t spacing, std::vector<AccessPoint>& points) final {
    spacing_ = spacing;
    collected_ = &points;
  }
  void use(std::span<const AccessPoint> points) final { points_ = points; }

 protected:
  // Decompresses from next_ (available_ bytes), moving both on; returns the bytes made.
  virtual Result<size_t> decompress(std::span<char> out) = 0;
  virtual bool at_frame_end() const = 0;  // nothing is begun and not ended
  // Starts at a point; an AccessPoint() with begins_frame is the start of the file.
  virtual Status resume(const AccessPoint& point) = 0;
  bool collects() const { return collected_ != nullptr; }
  // Adds the place after `made` bytes more, `available_` being what follows it, where it is due.
  AccessPoint* point_if_due(size_t made) {
    const uint64_t last = !collects() || collected_->empty() ? 0 : collected_->back().offset;
    if (!collects() || position_ + made < last + spacing_) return nullptr;
    AccessPoint& point = collected_->emplace_back();
    point.offset = position_ + made;
    point.compressed = file_offset_ - available_;
    return &point;
  }
  // Passes over the zeros that some programs fill the last block of a file with. No frame or member
  // starts with one.
  bool skip_padding() {
    const size_t zeros = static_cast<size_t>(
        std::find_if(next_, next_ + available_, [](char c) { return c != 0; }) - next_);
    next_ += zeros;
    available_ -= zeros;
    return zeros > 0;
  }
  Status damaged(const char* why) const {
    return Status::Failed(path_ + ": damaged compressed data before byte " +
                          std::to_string(file_offset_ - available_) + ": " + why);
  }

  char* next_ = nullptr;
  size_t available_ = 0;

 private:
  // Goes to the last access point before `offset`, unless the stream is between the two.
  Status approach(uint64_t offset) {
    const auto after = std::ranges::upper_bound(points_, offset, {}, &AccessPoint::offset);
    AccessPoint start;
    start.begins_frame = true;
    const AccessPoint& point = after == points_.begin() ? start : *std::prev(after);
    if (point.offset <= position_ && position_ <= offset) return {};
    if (offset - point.offset > kFarBytes) {
      log_warning_once(path_ +
                       ": is one long compressed frame, which is decompressed from its start again "
                       "and again; write it with recmill convert, or as several frames");
    }
    file_offset_ = point.compressed;
    position_ = point.offset;
    available_ = 0;
    return resume(point);
  }

  Status fill() {
    if (available_ > 0) return {};
    RECMILL_ASSIGN_OR_RETURN(available_,
                             file_->read(file_offset_, std::as_writable_bytes(std::span(input_))));
    next_ = input_.data();
    file_offset_ += available_;
    return {};
  }

  const std::unique_ptr<ReadableFile> file_;
  const std::string path_;
  std::vector<char> input_;
  uint64_t file_offset_ = 0;  // of the compressed byte after input_
  uint64_t position_ = 0;     // of the next decompressed byte
  std::span<const AccessPoint> points_;
  std::vector<AccessPoint>* collected_ = nullptr;
  uint64_t spacing_ = 0;
};

class GzipStream final : public CompressedStream {
 public:
  using CompressedStream::CompressedStream;
  ~GzipStream() override { inflateEnd(&inflate_); }

  Status start() {
    if (inflateInit2(&inflate_, kGzipOnly) == Z_OK) return {};
    return Status::Failed("cannot start decompression: out of memory");
  }

 protected:
  Result<size_t> decompress(std::span<char> out) override {
    if (trailer_ > 0) return skip_trailer();
    if (ended_ && member_ended_ && skip_padding()) return 0;
    if (ended_ && available_ > 0 && inflateReset2(&inflate_, kGzipOnly) != Z_OK) {
      return damaged("cannot restart");
    }
    inflate_.next_in = reinterpret_cast<Bytef*>(next_);
    inflate_.avail_in = static_cast<uInt>(available_);
    inflate_.next_out = reinterpret_cast<Bytef*>(out.data());
    const auto wanted = static_cast<uInt>(std::min<size_t>(out.size(), 1u << 30));
    inflate_.avail_out = wanted;
    ended_ = false;
    const int outcome = inflate(&inflate_, collects() ? Z_BLOCK : Z_NO_FLUSH);
    const bool consumed = inflate_.avail_in < available_;
    next_ = reinterpret_cast<char*>(inflate_.next_in);
    available_ = inflate_.avail_in;
    if (outcome == Z_STREAM_END) {
      ended_ = member_ended_ = !raw_;
      trailer_ = raw_ ? kTrailerBytes : 0;
    }
    if (outcome != Z_OK && outcome != Z_STREAM_END && outcome != Z_BUF_ERROR) {
      return damaged(inflate_.msg != nullptr ? inflate_.msg : "not gzip");
    }
    const size_t made = wanted - inflate_.avail_out;
    constexpr int kBlockEnded = 128, kLastBlock = 64;
    const bool between_blocks = (inflate_.data_type & (kBlockEnded | kLastBlock)) == kBlockEnded;
    if (outcome == Z_OK && between_blocks && consumed) add_point(made);
    return made;
  }
  bool at_frame_end() const override { return ended_; }

  // Inside a member the content is raw deflate: its trailer, checked when the file was indexed, is
  // passed over.
  Status resume(const AccessPoint& point) override {
    ended_ = point.begins_frame;
    raw_ = !point.begins_frame;
    member_ended_ = false;
    trailer_ = 0;
    bool ok = inflateReset2(&inflate_, raw_ ? -MAX_WBITS : kGzipOnly) == Z_OK;
    if (ok && point.bits > 0) ok = inflatePrime(&inflate_, point.bits, point.bits_value) == Z_OK;
    if (ok && !point.window.empty()) {
      ok = inflateSetDictionary(&inflate_, reinterpret_cast<const Bytef*>(point.window.data()),
                                static_cast<uInt>(point.window.size())) == Z_OK;
    }
    return ok ? Status() : damaged("cannot restart");
  }

 private:
  static constexpr int kGzipOnly = 16 + MAX_WBITS;
  static constexpr size_t kTrailerBytes = 8;

  void add_point(size_t made) {
    AccessPoint* const point = point_if_due(made);
    if (point == nullptr) return;
    point->bits = static_cast<uint8_t>(inflate_.data_type & 7);
    if (point->bits > 0) {
      point->bits_value =
          static_cast<uint8_t>(static_cast<unsigned char>(next_[-1]) >> (8 - point->bits));
    }
    uInt size = 0;
    point->window.resize(1u << MAX_WBITS);
    inflateGetDictionary(&inflate_, reinterpret_cast<Bytef*>(point->window.data()), &size);
    point->window.resize(size);
  }

  size_t skip_trailer() {
    const size_t size = std::min(trailer_, available_);
    next_ += size;
    available_ -= size;
    trailer_ -= size;
    ended_ = member_ended_ = trailer_ == 0;
    raw_ = !ended_;
    return 0;
  }

  z_stream inflate_{};
  bool ended_ = true;          // nothing is begun
  bool member_ended_ = false;  // and a member has ended
  bool raw_ = false;           // resumed inside a member
  size_t trailer_ = 0;         // bytes of a raw member's that are left
};

class Bzip2Stream final : public CompressedStream {
 public:
  using CompressedStream::CompressedStream;
  ~Bzip2Stream() override { end(); }

 protected:
  Result<size_t> decompress(std::span<char> out) override {
    if (!begun_) {
      if (stream_ended_ && skip_padding()) return 0;
      if (available_ == 0) return 0;
      if (AccessPoint* const point = point_if_due(0)) point->begins_frame = true;
      if (BZ2_bzDecompressInit(&bzip2_, 0, 0) != BZ_OK) return damaged("cannot start");
      begun_ = true;
    }
    bzip2_.next_in = next_;
    bzip2_.avail_in = static_cast<unsigned>(available_);
    bzip2_.next_out = out.data();
    const auto wanted = static_cast<unsigned>(std::min<size_t>(out.size(), 1u << 30));
    bzip2_.avail_out = wanted;
    const int outcome = BZ2_bzDecompress(&bzip2_);
    next_ = bzip2_.next_in;
    available_ = bzip2_.avail_in;
    if (outcome != BZ_OK && outcome != BZ_STREAM_END) {
      return damaged(outcome == BZ_DATA_ERROR_MAGIC ? "not bzip2" : "its checksum does not hold");
    }
    if (outcome == BZ_STREAM_END) {
      end();
      stream_ended_ = true;
    }
    return wanted - bzip2_.avail_out;
  }
  bool at_frame_end() const override { return !begun_; }
  Status resume(const AccessPoint&) override {
    end();
    stream_ended_ = false;
    return {};
  }

 private:
  void end() {
    if (begun_) BZ2_bzDecompressEnd(&bzip2_);
    begun_ = false;
  }

  bz_stream bzip2_{};
  bool begun_ = false;         // a stream, that has not ended
  bool stream_ended_ = false;  // one has
};

class ZstdStream final : public CompressedStream {
 public:
  ZstdStream(std::unique_ptr<ReadableFile> file, std::string path)
      : CompressedStream(std::move(file), std::move(path)), context_(ZSTD_createDCtx()) {}
  ~ZstdStream() override { ZSTD_freeDCtx(context_); }

 protected:
  Result<size_t> decompress(std::span<char> out) override {
    if (ended_ && available_ > 0) {
      if (AccessPoint* const point = point_if_due(0)) point->begins_frame = true;
    }
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    ZSTD_inBuffer input{next_, available_, 0};
    const size_t left = ZSTD_decompressStream(context_, &output, &input);
    next_ += input.pos;
    available_ -= input.pos;
    if (ZSTD_isError(left)) return damaged(ZSTD_getErrorName(left));
    ended_ = left == 0;
    return output.pos;
  }
  bool at_frame_end() const override { return ended_; }
  Status resume(const AccessPoint&) override {
    ended_ = true;
    ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
    return {};
  }

 private:
  ZSTD_DCtx* const context_;
  bool ended_ = true;
};

}  // namespace

Result<std::unique_ptr<ByteStream>> open_byte_stream(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(auto file, files.open(path));
  if (has_ending(path, ".gz")) {
    auto stream = std::make_unique<GzipStream>(std::move(file), path);
    RECMILL_RETURN_IF_ERROR(stream->start());
    return std::unique_ptr<ByteStream>(std::move(stream));
  }
  if (has_ending(path, ".bz2")) {
    return std::unique_ptr<ByteStream>(new Bzip2Stream(std::move(file), path));
  }
  if (has_ending(path, ".zst")) {
    return std::unique_ptr<ByteStream>(new ZstdStream(std::move(file), path));
  }
  return std::unique_ptr<ByteStream>(new PlainStream(std::move(file)));
}

}  // namespace recmill::reader
