// SPDX-License-Identifier: Apache-2.0
#include "model/torch_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <locale>

#include "model/make_model.h"
#include "model/torch_build.h"
#include "schema/testing/tables_of_dims.h"

namespace recmill::model {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

bool is_loaded(const char* library) {
  void* const found = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (found != nullptr) dlclose(found);
  return found != nullptr;
}

// The first test of the program: those after it open the library.
TEST(TorchLibrary, is_opened_by_the_first_model_that_needs_it) {
  const ModelSpec spec = tables_of_dims({8, 8}, 10, 4);
  ASSERT_TRUE(make_model({.kind = ModelKind::dlrm, .bottom = {8}, .top = {1}}, spec, 1).ok());
  ASSERT_TRUE(make_model({.kind = ModelKind::mlp, .top = {1}}, spec, 1).ok());
  EXPECT_FALSE(make_model({.kind = ModelKind::wide_and_deep, .deep = {}}, spec, 1).ok());
  EXPECT_FALSE(is_loaded("librecmill_torch.so"));
  EXPECT_FALSE(is_loaded("libtorch_cpu.so"));
  ASSERT_TRUE(make_model({.kind = ModelKind::wide_and_deep, .deep = {8}}, spec, 1).ok());
  EXPECT_TRUE(is_loaded("librecmill_torch.so"));
  EXPECT_TRUE(is_loaded("libtorch_cpu.so"));
}

TEST(TorchLibrary, finds_the_libtorch_that_it_was_compiled_against) {
  const auto library = torch_library();
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_THAT((*library)->version(), StartsWith(std::string(torch_version()) + ", "));
  EXPECT_EQ(*library, *torch_library());
}

TEST(TorchLibrary, a_missing_library_is_named_with_what_brings_it) {
  const Status missing = open_torch_library("/nowhere/librecmill_torch.so").status();
  EXPECT_EQ(missing.code(), Status::Code::failed);
  EXPECT_THAT(missing.message(), StartsWith("LibTorch: /nowhere/librecmill_torch.so: cannot open"));
  EXPECT_THAT(missing.message(), HasSubstr("`make build` and `make install` put it there"));
  EXPECT_EQ(missing.message().find('\n'), std::string::npos);
}

TEST(TorchLibrary, a_library_of_another_build_is_refused) {
  const auto library = open_torch_library("librecmill_torch.so");
  ASSERT_TRUE(library.ok());
  void* const opened = dlopen("librecmill_torch.so", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(opened, nullptr);
  const auto entry =
      reinterpret_cast<decltype(&recmill_torch_library)>(dlsym(opened, "recmill_torch_library"));
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry("of another compiler", nullptr), nullptr);
  EXPECT_NE((*library)->make_model(
                {.kind = ModelKind::deep_fm, .deep = {1}},
                with_model_tables(tables_of_dims({8, 8}, 10, 4), {.kind = ModelKind::deep_fm}), 1),
            nullptr)
      << "what was refused has changed nothing";
  dlclose(opened);
  EXPECT_THAT(open_torch_library("libm.so.6").status().message(),
              HasSubstr("libm.so.6 is of another build of Recmill than this program"));
}

TEST(TorchLibrary, another_libtorch_than_that_of_the_build_is_refused) {
  EXPECT_EQ(open_torch_library(RECMILL_OTHER_LIBRARY).status().message(),
            std::string("LibTorch: ") + RECMILL_OTHER_LIBRARY + " was compiled against version " +
                torch_version() + " and finds 0.4.1, SSE2; build Recmill anew");
}

// Of two, the one frees at the program's end what is the other's (cmake/torch.cmake).
TEST(TorchLibrary, links_the_cpp_library_that_the_program_links) {
  ASSERT_TRUE(torch_library().ok());
  void* const torch = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(torch, nullptr);
  EXPECT_EQ(dlsym(torch, "_ZNSt6locale7classicEv"), reinterpret_cast<void*>(&std::locale::classic));
  dlclose(torch);
}

}  // namespace
}  // namespace recmill::model
