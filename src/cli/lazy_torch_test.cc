// SPDX-License-Identifier: Apache-2.0
// What of the program goes without LibTorch, which takes a third of a second to load.
#include <gmock/gmock.h>

#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

// Neither is oneDNN linked: of two in one scope, LibTorch's own being the other, the one runs the
// other's functions.
TEST_F(Program, links_neither_libtorch_nor_onednn) {
  launcher_ = {"/usr/bin/env", "LD_TRACE_LOADED_OBJECTS=1"};
  const Outcome linked = run({"version"});
  EXPECT_EQ(linked.status, 0) << linked.err;
  EXPECT_THAT(linked.out, testing::HasSubstr("libarrow"));
  for (const char* const library : {"libtorch", "libc10", "librecmill_torch", "libdnnl"})
    EXPECT_THAT(linked.out, testing::Not(testing::HasSubstr(library)));
}

// Where librecmill_torch.so is looked for first is a file of that name that is none.
TEST_F(Program, opens_libtorch_for_what_needs_it_and_ends_in_one_line_where_it_is_broken) {
  ASSERT_TRUE(posix_files().make_folder(path("broken")).ok());
  write("broken/librecmill_torch.so", "no library");
  write("dlrm.toml",
        config("kind = 'dlrm'\nbottom = [16, 8]\ntop = [16, 1]", "", "iterations = 2"));
  write("deep_fm.toml", config("kind = 'deep_fm'\ndeep = [16, 1]", "", "iterations = 2"));
  launcher_ = {"/usr/bin/env", "LD_LIBRARY_PATH=" + path("broken")};
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"version"}, {"--help"}, {"train", "dlrm.toml"}, {"verify", "dlrm.toml"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments[0] << ": " << outcome.err;
  }
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"train", "deep_fm.toml"}, {"verify", "dlrm.toml", "--against", "float64"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 1) << arguments[0] << ": " << outcome.err;
    const size_t begin = outcome.err.find("recmill: ");
    ASSERT_NE(begin, std::string::npos) << outcome.err;
    EXPECT_THAT(outcome.err.substr(begin),
                testing::StartsWith("recmill: LibTorch: " + path("broken/librecmill_torch.so") +
                                    ": file too short; librecmill_torch.so belongs"));
    EXPECT_EQ(outcome.err.find('\n', begin), outcome.err.size() - 1) << "one line";
  }
}

}  // namespace
}  // namespace recmill::cli
