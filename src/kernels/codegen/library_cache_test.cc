// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/library_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/temporary_folder.h"
#include "base/testing/faulty_files.h"

namespace recmill::kernels::codegen {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const LibrarySource kSource{"extern \"C\" int answer() { return 42; }\n"};

class Cache : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  LibraryCacheOptions options() const {
    return {path("cache"), {RECMILL_COMPILER, 2, 300.0}, "this processor"};
  }
  /// A compiler of a shell script's lines.
  std::string script(const std::string& lines) const {
    const std::string name = path("compiler");
    RECMILL_CHECK(write_atomically(posix_files(), name, "#!/bin/sh\n" + lines).ok());
    RECMILL_CHECK(chmod(name.c_str(), 0755) == 0);
    return name;
  }
  static std::string error_of(const LibraryCacheOptions& options, const LibrarySource& source) {
    const auto loaded = LibraryCache(options, posix_files()).load({&source, 1});
    return loaded.ok() ? "" : loaded.status().message();
  }
  std::vector<std::string> names() const { return *posix_files().list(path("cache")); }
  /// A process whose compiler sends it `signal` while it compiles.
  pid_t compile_until(const std::string& signal) const {
    LibraryCacheOptions fatal = options();
    fatal.compiler.program =
        script("[ \"$1\" = --version ] && echo 1 && exit\nkill -" + signal + " $PPID\n");
    const pid_t process = fork();
    if (process == 0) _exit(error_of(fatal, kSource).empty() ? 0 : 1);
    int status = 0;
    RECMILL_CHECK(waitpid(process, &status, WUNTRACED) == process && !WIFEXITED(status));
    return process;
  }
  /// The only entry of the cache whose name ends so.
  std::string entry(const std::string& ending = "") const {
    const auto names = posix_files().list(path("cache"));
    RECMILL_CHECK(names.ok() && names->size() == 1 && names->front().ends_with(ending));
    return path("cache") + "/" + names->front();
  }

  TemporaryFolder folder_;
};

TEST_F(Cache, compiles_a_source_once) {
  LibraryCacheOptions counting = options();
  counting.compiler.program =
      script("echo \"$@\" >> " + path("calls") + "\nexec " RECMILL_COMPILER " \"$@\"\n");
  for (int64_t compilations : {1, 0}) {
    LibraryCache cache(counting, posix_files());
    const auto loaded = cache.load({&kSource, 1});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const auto answer = reinterpret_cast<int (*)()>(loaded->front()->symbol("answer"));
    ASSERT_NE(answer, nullptr);
    EXPECT_EQ(answer(), 42);
    EXPECT_EQ(cache.compilations(), compilations);
  }
  const std::string calls = *read_text(posix_files(), path("calls"));
  EXPECT_EQ(calls.find("-shared"), calls.rfind("-shared")) << calls;
  entry();
}

TEST_F(Cache, compiles_again_for_another_processor_compiler_or_header) {
  LibraryCacheOptions other = options();
  ASSERT_EQ(error_of(other, kSource), "");
  other.processor = "another";
  ASSERT_EQ(error_of(other, kSource), "");
  other.compiler.program =
      script("[ \"$1\" = --version ] && echo 99 && exit\nexec " RECMILL_COMPILER " \"$@\"\n");
  ASSERT_EQ(error_of(other, kSource), "");
  LibrarySource with_header{"#include \"forty_two.h\"\nextern \"C\" int answer() { return k; }\n",
                            {{"forty_two.h", "constexpr int k = 42;\n"}}};
  ASSERT_EQ(error_of(other, with_header), "");
  with_header.headers[0].second = "constexpr int k = 43;\n";
  ASSERT_EQ(error_of(other, with_header), "");
  EXPECT_EQ(posix_files().list(path("cache"))->size(), 5u);
}

TEST_F(Cache, several_sources_are_compiled_side_by_side) {
  std::vector<LibrarySource> sources;
  sources.reserve(5);
  for (int i = 0; i < 5; ++i)
    sources.push_back({"extern \"C\" int answer() { return " + std::to_string(i % 4) + "; }\n"});
  LibraryCache cache(options(), posix_files());
  const auto loaded = cache.load(sources);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(reinterpret_cast<int (*)()>((*loaded)[i]->symbol("answer"))(), i % 4);
  EXPECT_EQ(cache.compilations(), 4);  // two were the same
}

TEST_F(Cache, without_a_compiler_says_so) {
  LibraryCacheOptions none = options();
  none.compiler.program = path("no_compiler");
  EXPECT_EQ(error_of(none, kSource),
            "cannot start the compiler '" + path("no_compiler") + "': No such file or directory");
  none.compiler.program = "/bin/false";
  EXPECT_EQ(error_of(none, kSource), "'/bin/false --version' fails: it is not a compiler");
}

TEST_F(Cache, keeps_what_a_failing_compiler_says) {
  const LibrarySource wrong{"extern \"C\" int answer() { return forty_two; }\n"};
  const std::string error = error_of(options(), wrong);
  const std::string failed = entry(".failed");
  EXPECT_THAT(error, StartsWith(failed + "/source.cc: '" RECMILL_COMPILER
                                         "' fails with status 1: source.cc:1:"));
  EXPECT_THAT(error, HasSubstr("error: "));
  EXPECT_THAT(error, HasSubstr("forty_two"));
  EXPECT_THAT(error, EndsWith("; what it says is in " + failed + "/errors.txt"));
  EXPECT_THAT(error, Not(HasSubstr("\n")));
  const std::string said = *read_text(posix_files(), failed + "/errors.txt");
  EXPECT_THAT(said, HasSubstr(failed + "/source.cc:1:"));
  EXPECT_THAT(said, Not(HasSubstr(".tmp")));
  EXPECT_EQ(*read_text(posix_files(), failed + "/source.cc"), wrong.text);
  EXPECT_EQ(error_of(options(), wrong), error);  // and once more
}

TEST_F(Cache, calls_a_source_by_the_name_that_its_writer_knows) {
  const LibrarySource wrong{.text = "extern \"C\" int answer() { return forty_two; }\n",
                            .name = "of/my/own.cc"};
  const std::string error = error_of(options(), wrong);
  EXPECT_THAT(error, HasSubstr(" fails with status 1: of/my/own.cc:1:"));
  EXPECT_THAT(*read_text(posix_files(), entry(".failed") + "/errors.txt"),
              HasSubstr("of/my/own.cc:1:"));
}

TEST_F(Cache, of_several_processes_each_says_what_its_failing_compiler_says) {
  constexpr int kProcesses = 6;
  LibraryCacheOptions failing = options();
  // No compiler ends before all of them run.
  failing.compiler.program =
      script("[ \"$1\" = --version ] && echo 1 && exit\necho >> " + path("running") +
             "\nuntil [ $(wc -l < " + path("running") + ") -ge " + std::to_string(kProcesses) +
             " ]; do :; done\necho 'error: no'\nexit 3\n");
  std::vector<pid_t> processes(kProcesses);
  for (pid_t& process : processes) {
    process = fork();
    if (process != 0) continue;
    const std::string error = error_of(failing, kSource);
    _exit(error.find(" fails with status 3: error: no; what it says is in ") != error.npos ? 0 : 1);
  }
  for (const pid_t process : processes) {
    int status = 1;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(*read_text(posix_files(), entry(".failed") + "/errors.txt"), "error: no\n");
}

TEST_F(Cache, a_compiler_that_makes_nothing_has_failed) {
  LibraryCacheOptions idle = options();
  idle.compiler.program = script("echo idle\n");
  EXPECT_NE(error_of(idle, kSource).find("errors.txt"), std::string::npos);
  EXPECT_EQ(*read_text(posix_files(), entry(".failed") + "/errors.txt"), "idle\n");
}

TEST_F(Cache, ends_a_compiler_that_does_not) {
  LibraryCacheOptions endless = options();
  endless.compiler.program =
      script("[ \"$1\" = --version ] && echo 1 && exit\nwhile :; do :; done\n");
  endless.compiler.seconds = 1.0;
  const std::string error = error_of(endless, kSource);
  EXPECT_EQ(error,
            entry(".failed") + "/source.cc: '" + endless.compiler.program + "' took more than 1 s");
}

TEST_F(Cache, what_a_killed_process_left_is_removed_by_the_next_that_compiles) {
  const pid_t stopped = compile_until("STOP"), killed = compile_until("KILL");
  const std::string foreign = ".another-host." + std::to_string(killed) + ".0123456789abcdef";
  ASSERT_TRUE(posix_files().make_folder(path("cache/fedcba9876543210") + foreign + ".tmp").ok());
  ASSERT_TRUE(
      write_atomically(posix_files(), path("cache/fedcba9876543210") + foreign + ".lock", "").ok());
  const auto left = [&](const std::string& part) {
    return std::ranges::count_if(
        names(), [&](const auto& name) { return name.find(part) != std::string::npos; });
  };
  const auto number = [](pid_t process) { return "." + std::to_string(process) + "."; };
  EXPECT_EQ(names().size(), 6u);  // folders and their locks
  ASSERT_EQ(error_of(options(), kSource), "");
  EXPECT_EQ(left(foreign), 2);
  EXPECT_EQ(left(number(killed)), 2);  // the other machine's
  EXPECT_EQ(left(number(stopped)), 2);
  EXPECT_EQ(names().size(), 5u);
  kill(stopped, SIGKILL);
  ASSERT_EQ(waitpid(stopped, nullptr, 0), stopped);
  ASSERT_EQ(error_of(options(), {"extern \"C\" int answer() { return 43; }\n"}), "");
  EXPECT_EQ(left(number(stopped)), 0);
  EXPECT_EQ(left(foreign), 2);
}

// As that of a process in another container, of whose number there is none here.
TEST_F(Cache, a_folder_in_use_stays_whatever_became_of_the_process_of_its_number) {
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  ASSERT_EQ(waitpid(ended, nullptr, 0), ended);
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  const std::string stem =
      path("cache/fedcba9876543210.") + host + "." + std::to_string(ended) + ".0123456789abcdef";
  ASSERT_TRUE(posix_files().make_folder(stem + ".tmp").ok());
  auto lock = *posix_files().create_unless_open(stem + ".lock");
  ASSERT_NE(lock, nullptr);
  ASSERT_EQ(error_of(options(), kSource), "");
  EXPECT_TRUE(posix_files().exists(stem + ".tmp"));
  lock.reset();
  ASSERT_EQ(error_of(options(), {"extern \"C\" int answer() { return 43; }\n"}), "");
  EXPECT_FALSE(posix_files().exists(stem + ".tmp"));
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(Cache, leaves_nothing_beside_where_the_compiler_cannot_be_started) {
  LibraryCacheOptions vanishing = options();
  vanishing.compiler.program = script("echo 1\nrm \"$0\"\n");
  EXPECT_THAT(error_of(vanishing, kSource), StartsWith("cannot start the compiler"));
  EXPECT_TRUE(names().empty());
}

TEST_F(Cache, a_folder_that_cannot_be_written_is_named) {
  ASSERT_TRUE(write_atomically(posix_files(), path("file"), "").ok());
  LibraryCacheOptions nowhere = options();
  nowhere.folder = path("file") + "/cache";
  EXPECT_EQ(error_of(nowhere, kSource).find(nowhere.folder), 0u) << error_of(nowhere, kSource);
  // A disk that stops taking anything, at each of the first steps.
  for (int64_t step = 1; step <= 5; ++step) {
    FaultyFiles files;
    files.fail_from(step);
    LibraryCache cache(options(), files);
    EXPECT_FALSE(cache.load({&kSource, 1}).ok());
  }
}

TEST_F(Cache, a_damaged_library_is_never_loaded) {
  ASSERT_EQ(error_of(options(), kSource), "");
  for (const char* name : {"library.so", "source.cc", "checksum"}) {
    const std::string file = entry() + "/" + name, whole = *read_text(posix_files(), file);
    std::string damaged = whole;
    damaged[damaged.size() / 2] ^= 1;
    ASSERT_TRUE(write_atomically(posix_files(), file, damaged).ok());
    EXPECT_EQ(error_of(options(), kSource), entry() +
                                                "/library.so: damaged, its checksum does not "
                                                "hold; remove " +
                                                entry());
    ASSERT_TRUE(write_atomically(posix_files(), file, whole).ok());
  }
  EXPECT_EQ(error_of(options(), kSource), "");
}

}  // namespace
}  // namespace recmill::kernels::codegen
