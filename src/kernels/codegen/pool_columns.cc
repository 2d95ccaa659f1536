// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/pool_columns.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace recmill::kernels::codegen {
namespace {

constexpr int64_t kLine = 64;

/// Offsets into `bytes` bytes at `begin` of a row that meet every cache line which they can touch,
/// wherever rows of `row_bytes` bytes begin.
std::set<int64_t> lines_of(int64_t begin, int64_t bytes, int64_t row_bytes) {
  std::set<int64_t> offsets;
  for (int64_t at = 0; at < bytes; at += kLine) offsets.insert(begin + at);
  const int64_t step = std::gcd(row_bytes, kLine);
  for (int64_t row = 0; row < kLine; row += step) {
    const int64_t last = (row + begin + bytes - 1) / kLine;
    const bool met = std::any_of(offsets.begin(), offsets.end(),
                                 [&](int64_t at) { return (row + at) / kLine == last; });
    if (!met) offsets.insert(begin + bytes - 1);
  }
  return offsets;
}

std::string plus(const std::string& base, int64_t offset) {
  return offset == 0 ? base : fmt::format("{} + {}", base, offset);
}

}  // namespace

std::vector<ColumnBlock> column_blocks(int64_t dim, int64_t lanes, int64_t held) {
  std::vector<ColumnBlock> blocks;
  int64_t column = 0;
  if (const int64_t width = lanes * held; dim >= width) {
    ColumnBlock block{0, width, dim / width, {}};
    for (int64_t v = 0; v < held; ++v) block.vectors.push_back({lanes, v * lanes});
    column = width * block.repeats;
    blocks.push_back(std::move(block));
  }
  ColumnBlock block{column, 0, 1, {}};
  for (int64_t width = lanes; column < dim; column += width) {
    while (width > dim - column) width /= 2;
    if (width == 2) width = 1;
    if (static_cast<int64_t>(block.vectors.size()) == held) {
      blocks.push_back(std::exchange(block, {column, 0, 1, {}}));
    }
    block.vectors.push_back({width, column - block.first});
    block.width += width;
  }
  if (!block.vectors.empty()) blocks.push_back(std::move(block));
  return blocks;
}

BlockWriter::BlockWriter(SourceWriter& write, const PoolFunction& of, ColumnBlock block)
    : write_(write), of_(of), block_(std::move(block)), bytes_(bytes_of(of.precision)) {}

void BlockWriter::open() {
  if (block_.repeats > 1) {
    write_("for (int64_t column = {}; column < {}; column += {}) {{", block_.first,
           block_.first + block_.width * block_.repeats, block_.width);
    write_("const char* const rows = feature.rows + column * {};", bytes_);
  } else {
    write_("// Columns {} to {}.", block_.first, block_.first + block_.width - 1);
    write_("{{");
    write_("constexpr int64_t column = {};", block_.first);
    write_("const char* const rows = {};", plus("feature.rows", block_.first * bytes_));
  }
}

void BlockWriter::close() {
  write_("}}");
}

void BlockWriter::zeros(const std::string& sum) {
  for (size_t v = 0; v < block_.vectors.size(); ++v)
    write_("f{} {}{} = {{}};", block_.vectors[v].lanes, sum, v);
}

std::string BlockWriter::address(const std::string& lookup) const {
  return fmt::format("rows + lookups[{}] * {}", lookup, of_.row_bytes);
}

std::string BlockWriter::loaded(const ColumnVector& vector) const {
  return fmt::format("{}{}<f{}>({})", of_.weighted ? "weight * " : "", name_of(of_.precision),
                     vector.lanes, plus("row", vector.column * bytes_));
}

void BlockWriter::add_row(const std::string& sum, const std::string& lookup) {
  write_("{{");
  write_("const char* const row = {};", address(lookup));
  if (of_.weighted) write_("const float weight = weights[{}];", lookup);
  for (size_t v = 0; v < block_.vectors.size(); ++v)
    write_("{}{} += {};", sum, v, loaded(block_.vectors[v]));
  write_("}}");
}

void BlockWriter::copy_row(const std::string& lookup, const std::string& out) {
  write_("const char* const row = {};", address(lookup));
  if (of_.weighted) write_("const float weight = weights[{}];", lookup);
  for (const ColumnVector& vector : block_.vectors)
    write_("store<f{}>({}, {});", vector.lanes, plus(out, vector.column), loaded(vector));
}

void BlockWriter::add(const std::string& sum, const std::string& other) {
  for (size_t v = 0; v < block_.vectors.size(); ++v) write_("{}{} += {}{};", sum, v, other, v);
}

void BlockWriter::divide(const std::string& sum, const std::string& count) {
  write_("if ({} > 1) {{", count);
  for (size_t v = 0; v < block_.vectors.size(); ++v)
    write_("{}{} /= static_cast<float>({});", sum, v, count);
  write_("}}");
}

void BlockWriter::store(const std::string& sum, const std::string& out) {
  for (size_t v = 0; v < block_.vectors.size(); ++v)
    write_("store({}, {}{});", plus(out, block_.vectors[v].column), sum, v);
}

bool BlockWriter::can_stream() const {
  return std::all_of(block_.vectors.begin(), block_.vectors.end(),
                     [](const ColumnVector& vector) { return vector.lanes == 16; });
}

void BlockWriter::stream(const std::string& sum, const std::string& out) {
  for (size_t v = 0; v < block_.vectors.size(); ++v)
    write_("stream({}, {}{});", plus(out, block_.vectors[v].column), sum, v);
}

void BlockWriter::fetch(const std::string& lookup) {
  write_("const char* const next = {};", address(lookup));
  // Where the block repeats, what it touches first depends on the repeat; a line more does no harm.
  const int64_t begin = block_.first * bytes_;
  for (int64_t offset : lines_of(begin, block_.width * bytes_, of_.row_bytes))
    write_("__builtin_prefetch({});", plus("next", offset - begin));
}

}  // namespace recmill::kernels::codegen
