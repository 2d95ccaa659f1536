// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/testing/test_gpu.h"

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "device/gpu/cuda_driver.h"
#include "device/gpu/staged_arrays.h"

namespace recmill::testing {
namespace {

std::unique_ptr<GpuDriver> checked(Result<std::unique_ptr<GpuDriver>> driver) {
  RECMILL_CHECK(driver.ok(), driver.status().message());
  return *std::move(driver);
}

void check(const Status& status) {
  RECMILL_CHECK(status.ok(), status.message());
}

}  // namespace

bool on_cuda() {
  const char* const device = std::getenv("RECMILL_TEST_DEVICE");
  if (device == nullptr) return false;
  const std::string_view name = device;
  RECMILL_CHECK(name == "cuda" || name == "emulated", "RECMILL_TEST_DEVICE: cuda or emulated");
  return name == "cuda";
}

std::unique_ptr<GpuDriver> test_driver(const EmulatedGpu& emulated) {
  if (!on_cuda()) return checked(make_emulated_driver(emulated));
  // One stays open to the end of the process: to begin with a GPU takes long.
  static const GpuDriver* const first = checked(make_cuda_driver({})).release();
  static_cast<void>(first);
  return checked(make_cuda_driver({}));
}

void* TestArrays::put_bytes(std::span<const std::byte> bytes) {
  auto buffer = gpu_.allocate(bytes.size(), "an array of a test");
  check(buffer.status());
  check(reserve(staging_, bytes.size(), gpu_, "an array of a test"));
  if (!bytes.empty()) {
    std::memcpy(staging_.as<std::byte>().data(), bytes.data(), bytes.size());
    check(stream_.to_device(*buffer, staging_, bytes.size()));
    check(stream_.synchronize());
  }
  return buffers_.emplace_back(*std::move(buffer)).address<void>();
}

void TestArrays::get_bytes(const GpuBuffer& from, std::span<std::byte> to) {
  if (to.empty()) return;
  check(stream_.to_host(staging_, from, to.size()));
  check(stream_.synchronize());
  std::memcpy(to.data(), staging_.as<std::byte>().data(), to.size());
}

const GpuBuffer& TestArrays::buffer_of(const void* array) const {
  const auto found = std::ranges::find_if(
      buffers_, [&](const GpuBuffer& buffer) { return buffer.address<void>() == array; });
  RECMILL_CHECK(found != buffers_.end());
  return *found;
}

}  // namespace recmill::testing
