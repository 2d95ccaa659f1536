// SPDX-License-Identifier: Apache-2.0
// `recmill compile`, and PyTorch with what it writes.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/json/json.h"
#include "cli/testing/bags.h"
#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

/// Bags and single ids.
std::string small_run(const std::string& kernels) {
  return bags_config("rows = 100\ndims = [4, 8, 16]\n",
                     "mean = 20\ndeviation = 9\nlongest = 50\nrows = 400\n",
                     "slices = 4\n[kernels]\ncache = 'cache'\n"
                     "compiler = '" RECMILL_COMPILER "'\n" +
                         kernels);
}

class CompileVerb : public Program {
 protected:
  std::vector<std::string> request(const std::string& configuration, const std::string& out,
                                   std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"compile", configuration, "--out",
                                      out,       "--python",    RECMILL_PYTHON};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// What call_op.py says of a library.
  std::string called(const std::string& library, const std::string& name) const {
    return said_by(std::string(RECMILL_PYTHON) + " " RECMILL_CALL_OP " " + path(library) + " " +
                   name);
  }
};

TEST_F(CompileVerb, makes_what_pytorch_loads_and_compiles_it_once) {
  write("small.toml", small_run(""));
  const auto words = request("small.toml", "libsmall.so", {"--arch", "sm_90"});
  const Json made = run_json(words);
  EXPECT_EQ(made["operator"], "recmill::small");
  EXPECT_EQ(made["library"], "libsmall.so");
  EXPECT_EQ(made["features"], 6);
  EXPECT_EQ(made["compiled"], 2);  // the library, and the binary in it
  EXPECT_EQ(called("libsmall.so", "small"), "6 CPU CUDA Meta\n");

  const std::string library = *read_text(posix_files(), path("libsmall.so"));
  EXPECT_EQ(made["bytes"], library.size());
  int binaries = 0;
  const auto cached = *posix_files().list(path("cache"));
  for (const std::string& name : cached) {
    if (!name.ends_with(".cubin")) continue;
    const std::string text = *read_text(posix_files(), path("cache/" + name));
    EXPECT_NE(library.find(text.substr(text.find("\x7f"
                                                 "ELF"))),
              std::string::npos);
    ++binaries;
  }
  EXPECT_EQ(binaries, 1);

  const Outcome refused = run(words);
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "recmill: libsmall.so: is there already; --overwrite replaces it\n");
  auto again = words;
  again.emplace_back("--overwrite");
  EXPECT_EQ(run_json(again)["compiled"], 0);
  EXPECT_EQ(*read_text(posix_files(), path("libsmall.so")), library);

  // Without a record for the GPU of the configuration, where that is allowed.
  write("tuned.toml", "device = 'cuda'\n" + small_run("mode = 'tuned'\n"
                                                      "on_missing_schedule = 'default'\n"));
  const Outcome untuned = run(request(
      "tuned.toml", "libtuned.so", {"--arch", "sm_90", "--name", "small", "--set", "name=small"}));
  EXPECT_EQ(untuned.status, 0);
  EXPECT_NE(untuned.err.find("tuned/small.cuda.json: no such tuning record; run `recmill tune` "
                             "first; default schedules run instead\n"),
            std::string::npos)
      << untuned.err;
  EXPECT_EQ(*read_text(posix_files(), path("libtuned.so")), library);
}

TEST_F(CompileVerb, refuses_what_it_cannot_do_in_one_line) {
  write("small.toml", small_run(""));
  write("tuned.toml", small_run("mode = 'tuned'\n"));
  const auto error = [&](const std::vector<std::string>& words) {
    const Outcome outcome = run(words);
    EXPECT_NE(outcome.status, 0);
    return outcome.err;
  };
  EXPECT_EQ(error(request("small.toml", "a.so", {"--name", "9 lives"})),
            "recmill: --name 9 lives: must be letters, digits and underscores, no digit first\n");
  EXPECT_EQ(error({"compile", "small.toml", "--out", "a.so", "--python", "/nowhere/python"}),
            "recmill: python '/nowhere/python': cannot be started\n");
  EXPECT_EQ(error(request("tuned.toml", "a.so")),
            "recmill: " + path("tuned/tuned.json") +
                ": no such tuning record; run `recmill tune` first\n");
  EXPECT_NE(error(request("small.toml", "a.so", {"--arch", "sm_1"})).find("sm_1"),
            std::string::npos);
  EXPECT_FALSE(posix_files().exists(path("a.so")));
  EXPECT_NE(error(request("small.toml", "nodir/a.so")).find("nodir/a.so"), std::string::npos);
  EXPECT_FALSE(posix_files().exists(path("cache")));
}

}  // namespace
}  // namespace recmill::cli
