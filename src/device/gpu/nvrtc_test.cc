// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/nvrtc.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/gpu/cubin.h"

namespace recmill {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kTwo = R"(
struct Arguments { const float* in; float* out; };
extern "C" __global__ void __launch_bounds__(256, 1) add(const Arguments a) {
  __shared__ float sums[256];
  sums[threadIdx.x] = a.in[threadIdx.x];
  __syncthreads();
  a.out[threadIdx.x] = sums[255 - threadIdx.x] * 3.0f + 1.0f;
}
extern "C" __global__ void __launch_bounds__(256, 1) copy(const Arguments a) {
  float kept[40] = {};
  for (int i = 0; i < 99; ++i) kept[int(a.in[i]) % 40] += a.in[i];
  for (int i = 0; i < 40; ++i) a.out[i] = kept[i];
}
)";

TEST(Nvrtc, CompilesWithoutAGpu) {
  const auto nvrtc = Nvrtc::load();
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.status().message();
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const auto compiled = (*nvrtc)->compile(kTwo, "two.cu", architecture);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    const auto kernels = read_cubin(compiled->cubin);
    ASSERT_TRUE(kernels.ok()) << kernels.status().message();
    ASSERT_EQ(kernels->size(), 2u);
    for (const KernelResources& kernel : *kernels) {
      // As ptxas says itself, whose lines come kernel by kernel.
      const size_t at = compiled->said.find("'" + kernel.name + "'");
      ASSERT_NE(at, std::string::npos) << compiled->said;
      EXPECT_THAT(compiled->said.substr(at),
                  HasSubstr("Used " + std::to_string(kernel.registers) + " registers"));
      EXPECT_EQ(kernel.shared, kernel.name == "add" ? 1024 : 0);
      EXPECT_EQ(kernel.stack, kernel.name == "add" ? 0 : 160);
    }
  }
}

// The major and the minor number are those of other releases too: "13.0" also of V13.0.88.
TEST(Nvrtc, IdentityHasReleaseAndOptions) {
  const auto nvrtc = Nvrtc::load();
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.status().message();
  EXPECT_THAT((*nvrtc)->identity(), StartsWith("13."));
  EXPECT_THAT((*nvrtc)->identity(), ContainsRegex("V13\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT((*nvrtc)->identity(), ContainsRegex("Build ID: [^ ]+"));
  EXPECT_THAT((*nvrtc)->identity(), Not(HasSubstr("\n")));
  EXPECT_EQ((*Nvrtc::load())->identity(), (*nvrtc)->identity());
  EXPECT_THAT((*nvrtc)->identity(), HasSubstr(" --std=c++20 --fmad=false "));
}

TEST(Nvrtc, SaysWhereATextIsWrong) {
  const auto nvrtc = Nvrtc::load();
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.status().message();
  const std::string said =
      (*nvrtc)->compile("struct A {};\nthis is no kernel;\n", "bad.cu", "sm_90").status().message();
  EXPECT_THAT(said, HasSubstr("bad.cu: NVRTC_ERROR_COMPILATION: bad.cu(2): error"));
  EXPECT_THAT(
      (*nvrtc)->compile(kTwo, "two.cu", "sm_1").status().message(),
      AllOf(StartsWith("NVRTC 13"), HasSubstr(" does not compile for sm_1, but for sm_75, "),
            Not(HasSubstr("\n"))));
  EXPECT_THAT((*nvrtc)->compile(kTwo, "two.cu", "none").status().message(),
              AllOf(StartsWith("two.cu: NVRTC_ERROR_INVALID_OPTION"), Not(HasSubstr("\n"))));
}

TEST(Nvrtc, SaysThatItIsNotThere) {
  EXPECT_THAT(
      Nvrtc::load("libnot_there.so").status().message(),
      HasSubstr("the compiler of kernels, libnot_there.so, cannot be loaded: 'make setup'"));
  EXPECT_EQ(Nvrtc::load("libm.so.6").status().message(), "libm.so.6 is no NVRTC of CUDA 13");
}

TEST(Cubin, RefusesWhatIsNone) {
  const auto nvrtc = Nvrtc::load();
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.status().message();
  const auto compiled = (*nvrtc)->compile(kTwo, "two.cu", "sm_90");
  ASSERT_TRUE(compiled.ok());
  // Cut off anywhere: an error, or what is there; never beyond the end.
  for (size_t size = 0; size < compiled->cubin.size(); size += 7) {
    const std::vector<std::byte> part(compiled->cubin.begin(),
                                      compiled->cubin.begin() + static_cast<long>(size));
    EXPECT_FALSE(read_cubin(part).ok()) << size;
  }
  // Names that are said to be in memory alone are nowhere.
  auto header = *reinterpret_cast<const Elf64_Ehdr*>(compiled->cubin.data());
  auto nowhere = compiled->cubin;
  auto& names = *reinterpret_cast<Elf64_Shdr*>(nowhere.data() + header.e_shoff +
                                               header.e_shstrndx * sizeof(Elf64_Shdr));
  names.sh_type = SHT_NOBITS;
  names.sh_offset = uint64_t{1} << 40;
  const auto unnamed = read_cubin(nowhere);
  EXPECT_TRUE(!unnamed.ok() || unnamed->empty());
}

}  // namespace
}  // namespace recmill
