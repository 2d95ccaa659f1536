// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/gpu/gpu_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/hash.h"
#include "base/key_text.h"
#include "device/gpu/cubin.h"
#include "kernels/codegen/gpu/device_text.h"

namespace recmill::kernels::codegen {
namespace {

/// The emulator ends what runs for ever, and counts active lanes (device/emulation/emulator.h).
constexpr const char* kTellSteps = "-fsanitize-coverage=trace-pc";

constexpr const char* kMark = "recmill cubin ";

std::string file_text(const CompiledKernels& compiled) {
  std::string body = compiled.said;
  body.append(reinterpret_cast<const char*>(compiled.cubin.data()), compiled.cubin.size());
  return fmt::format("{}{:08x} {}\n", kMark, crc32c(std::as_bytes(std::span(body))),
                     compiled.said.size()) +
         body;
}

/// What file_text() made the text of; nothing where it is none.
std::optional<CompiledKernels> parse_file(const std::string& text) {
  const size_t end = text.find('\n');
  if (!text.starts_with(kMark) || end == std::string::npos) return std::nullopt;
  const std::string_view body = std::string_view(text).substr(end + 1);
  size_t said = 0;
  const size_t at = text.rfind(' ', end);
  const auto [stop, error] = std::from_chars(text.data() + at + 1, text.data() + end, said);
  const std::string sum = fmt::format("{:08x}", crc32c(std::as_bytes(std::span(body))));
  if (error != std::errc{} || stop != text.data() + end || said > body.size() ||
      text.substr(std::string_view(kMark).size(), 8) != sum)
    return std::nullopt;
  CompiledKernels compiled;
  compiled.said = body.substr(0, said);
  const auto bytes = std::as_bytes(std::span(body.substr(said)));
  compiled.cubin.assign(bytes.begin(), bytes.end());
  return compiled;
}

/// The bytes that ptxas says a kernel stores to make room in its registers, and the function that
/// stores most of those that it may call by pointers, which are no kernels.
int64_t spilled_bytes(const std::string& said, const std::string& entry) {
  constexpr std::string_view kFunction = "Function properties for ",
                             kStores = " bytes spill stores";
  int64_t own = 0, called = 0;
  for (size_t at = said.find(kFunction); at != std::string::npos; at = said.find(kFunction, at)) {
    at += kFunction.size();
    const std::string name = said.substr(at, said.find('\n', at) - at);
    const size_t stores = said.find(kStores, at);
    if (stores == std::string::npos) break;
    int64_t bytes = 0;
    std::from_chars(said.data() + said.rfind(' ', stores - 1) + 1, said.data() + stores, bytes);
    const bool is_kernel = said.find("'" + name + "'") != std::string::npos;
    if (name == entry) own = bytes;
    if (!is_kernel) called = std::max(called, bytes);
  }
  return own + called;
}

}  // namespace

Result<CubinCache> CubinCache::open(const std::string& folder, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(auto nvrtc, Nvrtc::load());
  return CubinCache(folder, files, std::move(nvrtc));
}

std::string CubinCache::path_of(const GpuSource& source, const std::string& architecture) const {
  const auto key = KeyText().add(source.text).add(architecture).add(nvrtc_->identity());
  return fmt::format("{}/{:016x}", folder_, hash_bytes(key.text()));
}

Status CubinCache::compile(const GpuSource& source, const std::string& architecture) {
  const std::string path = path_of(source, architecture);
  RECMILL_RETURN_IF_ERROR(write_atomically(files_, path + ".cu", source.text));
  RECMILL_ASSIGN_OR_RETURN(const auto compiled,
                           nvrtc_->compile(source.text, path + ".cu", architecture));
  return write_atomically(files_, path + ".cubin", file_text(compiled));
}

Result<GpuCode> CubinCache::read(const GpuSource& source, const std::string& path) const {
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files_, path));
  auto compiled = parse_file(text);
  if (!compiled.has_value())
    return Status::Failed(path + ": damaged, its checksum does not hold; remove it");
  const auto kernels = read_cubin(compiled->cubin);
  if (!kernels.ok()) return kernels.status().at(path);
  GpuCode code;
  code.spilled = spilled_bytes(compiled->said, source.entry);
  for (const KernelResources& kernel : *kernels)
    if (kernel.name == source.entry) code.resources = kernel;
  if (code.resources.name.empty()) return Status::Failed(path + ": has no kernel " + source.entry);
  const auto cubin = std::make_shared<std::vector<std::byte>>(std::move(compiled->cubin));
  code.code.name = source.entry;
  code.code.cubin = *cubin;
  code.owner = cubin;
  return code;
}

Result<std::vector<GpuCode>> CubinCache::load(std::span<const GpuSource> sources,
                                              const std::string& architecture, ThreadPool& pool) {
  RECMILL_RETURN_IF_ERROR(files_.make_folder(folder_));
  std::vector<const GpuSource*> missing;
  for (const GpuSource& source : sources) {
    const bool is_repeated = !missing.empty() && missing.back()->text == source.text;
    if (!is_repeated && !files_.exists(path_of(source, architecture) + ".cubin"))
      missing.push_back(&source);
  }
  std::vector<Status> outcomes(missing.size());
  pool.run(std::ssize(missing),
           [&](int64_t i) { outcomes[i] = compile(*missing[i], architecture); });
  compilations_ += std::ssize(missing);
  for (const Status& outcome : outcomes) RECMILL_RETURN_IF_ERROR(outcome);
  std::vector<GpuCode> codes;
  for (const GpuSource& source : sources) {
    RECMILL_ASSIGN_OR_RETURN(auto code, read(source, path_of(source, architecture) + ".cubin"));
    codes.push_back(std::move(code));
  }
  return codes;
}

Result<std::vector<GpuCode>> emulated_code(std::span<const GpuSource> sources,
                                           LibraryCache& cache) {
  std::vector<LibrarySource> texts;
  for (const GpuSource& source : sources)
    texts.push_back({source.text, emulated_headers(), {"-std=c++20", "-O1", kTellSteps}});
  RECMILL_ASSIGN_OR_RETURN(const auto libraries, cache.load(texts));
  std::vector<GpuCode> codes;
  for (size_t s = 0; s < sources.size(); ++s) {
    const std::string name = sources[s].entry + "_emulated";
    void* const entry = libraries[s]->symbol(name.c_str());
    if (entry == nullptr) return Status::Failed(libraries[s]->path() + ": has no function " + name);
    GpuCode& code = codes.emplace_back();
    code.code.name = sources[s].entry;
    code.code.emulated = reinterpret_cast<void (*)(const void*)>(entry);
    code.owner = libraries[s];
  }
  return codes;
}

}  // namespace recmill::kernels::codegen
