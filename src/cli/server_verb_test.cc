// SPDX-License-Identifier: Apache-2.0
// `recmill server embedding` as a user meets it. RECMILL_PYTHON has pyarrow; RECMILL_DOCS is the
// folder of the documents.
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/testing/serving_program.h"

namespace recmill::cli {
namespace {

using ::testing::HasSubstr;

class ServerVerb : public ServingProgram {
 protected:
  void SetUp() override { write("a.toml", config(kDlrm, "", "iterations = 30")); }
  Words training(const std::string& name, const std::string& servers, const Words& sets = {}) {
    Words words{"train",
                "a.toml",
                "--quiet",
                "--set",
                "name=" + name,
                "--set",
                "embedding.store=cached",
                "--set",
                "lookahead.home=remote",
                "--set",
                "lookahead.servers=[" + servers + "]"};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return words;
  }
  void refuse(const Words& words, const std::string& message, int status = 2) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
};

TEST_F(ServerVerb, servers_serve_one_run_after_another_and_tell_of_it) {
  const std::string first = serve(), second = serve();
  const std::string both = in_quotes(first) + "," + in_quotes(second);
  ASSERT_EQ(run({"train", "a.toml", "--quiet", "--set", "name=local"}).status, 0);
  for (const char* name : {"one", "two"}) {
    const Outcome outcome = run(training(name, both));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(run({"verify", "--checkpoints", "runs/local", std::string("runs/") + name}).status,
              0);
    EXPECT_THAT(*read_text(posix_files(), path(newest_checkpoint(name) + "/manifest")),
                ::testing::StartsWith("recmill-checkpoint 2 "));  // rows that were put alone
    const Outcome shown = run({"inspect", first, "--json"});
    const Json status = Json::parse(shown.out);
    EXPECT_TRUE(status["run"].get<std::string>().starts_with(name)) << shown.out;
    EXPECT_EQ(status["ranks"], 1);
    EXPECT_EQ(status["servers"], 2);
    EXPECT_GT(status["touched_rows"].get<int64_t>(), 0);
  }
  EXPECT_EQ(run({"eval", "runs/one"}).status, 0);  // without servers
  // Another order of the same servers is another split of the rows, of a new run.
  EXPECT_EQ(run(training("three", in_quotes(second) + "," + in_quotes(first))).status, 0);
}

/// What a page says over HTTP.
std::string read_page(const std::string& url) {
  return said_by(std::string(RECMILL_PYTHON) +
                 " -c 'import sys, urllib.request as r;"
                 "print(r.urlopen(sys.argv[1]).read().decode(), end=str())' " +
                 url);
}

TEST_F(ServerVerb, tells_of_a_run_before_it_takes_rows_and_shows_metrics) {
  const std::string address = serve({"--metrics", "127.0.0.1:0"});
  const auto said = [&] { return *read_text(posix_files(), path("server0")); };
  const std::string before = "metrics at ";
  while (said().find(before) == std::string::npos || said().back() != '\n') sleep_milliseconds(5);
  const std::string text = said();
  const size_t at = text.find(before) + before.size();
  const std::string url = text.substr(at, text.find('\n', at) - at);
  EXPECT_THAT(read_page(url), HasSubstr("\nrecmill_connections 0\n"));
  ASSERT_EQ(run(training("a", in_quotes(address))).status, 0);
  EXPECT_THAT(said(), HasSubstr(", start 1, 1 rank: 26 tables; when all of its "));
  const std::string page = read_page(url);
  EXPECT_THAT(page, HasSubstr("# TYPE recmill_fetches_total counter\nrecmill_fetches_total "));
  EXPECT_THAT(page, HasSubstr("\nrecmill_mark{rank=\"0\"} "));
  EXPECT_THAT(page, ::testing::ContainsRegex("\nrecmill_touched_rows [1-9]"));
}

TEST_F(ServerVerb, verify_finds_the_bits_of_plain_training_at_any_number_of_ranks_and_servers) {
  write("a.toml", config(kDlrm,
                         "mapping = 'dictionary'\nout_of_range = 'clamp'\nprecision = 'bfloat16'\n"
                         "optimizer.kind = 'adam'",
                         "iterations = 30\nevaluate_every = 4"));
  std::string servers;
  for (int count = 1; count <= 3; ++count) {
    // The second one has its rows on a disk.
    servers +=
        (count > 1 ? "," : "") + in_quotes(serve(count == 2 ? Words{"--disk", "rows"} : Words{}));
    for (const char* design : {"forward", "lrpp"}) {
      Words words = training("v", servers,
                             {std::string("lookahead.design=") + design,
                              count == 2 ? "lookahead.batches=0" : "train.seed=1"});
      words.erase(words.begin(), words.begin() + 5);
      words.insert(words.begin(), {"verify", "a.toml", "--ranks", "1,2,4", "--iterations", "9"});
      const Outcome outcome = run(words);
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("ranks 4: bitwise the same"));
    }
  }
}

TEST_F(ServerVerb, what_servers_had_goes_on_elsewhere_and_what_was_elsewhere_there) {
  const std::string first = serve(), second = serve();
  const Words more{"train", "a.toml", "--quiet", "--resume", "--set", "train.iterations=60"};
  const auto resumed = [&](const std::string& name, Words words) {
    words.insert(words.end(), {"--set", "name=" + name});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  };
  const auto at_servers = [&](const std::string& addresses) {
    Words words = more;
    words.insert(words.end(), {"--set", "embedding.store=cached", "--set", "lookahead.home=remote",
                               "--set", "lookahead.servers=[" + addresses + "]"});
    return words;
  };
  ASSERT_EQ(run({"train", "a.toml", "--quiet", "--set", "name=local"}).status, 0);
  ASSERT_EQ(run(training("remote", in_quotes(first))).status, 0);
  const std::string copy = "cp -r " + path("runs/local") + " " + path("runs/moved");
  ASSERT_EQ(std::system(copy.c_str()), 0);
  resumed("local", more);
  resumed("moved", at_servers(in_quotes(first)));
  // Rows that were as they are made cost nothing at the server.
  const int64_t touched = Json::parse(run({"inspect", first, "--json"}).out)["touched_rows"];
  EXPECT_LT(touched, 26 * 500);
  resumed("remote", at_servers(in_quotes(second) + "," + in_quotes(first)));
  for (const char* name : {"runs/moved", "runs/remote"})
    EXPECT_EQ(run({"verify", "--checkpoints", "runs/local", name}).status, 0) << name;
}

TEST_F(ServerVerb, a_start_goes_on_from_the_last_commit_where_all_servers_have_it) {
  const std::string first = serve(), second = serve();
  const std::string both = in_quotes(first) + "," + in_quotes(second);
  ASSERT_EQ(run({"train", "a.toml", "--quiet", "--set", "name=local"}).status, 0);
  const auto train = [&](const std::string& name, const std::string& servers, const Words& sets,
                         const Words& options = {}) {
    Words words = training(name, servers, sets);
    words.insert(words.end(), options.begin(), options.end());
    std::erase(words, "--quiet");
    return run(words);
  };
  const Words some{"train.iterations=25", "lookahead.commit_every=10",
                   "train.checkpoint.at_end=false"};
  // As many ranks, or fewer: from the commit after iteration 20, with no checkpoint at all.
  for (const char* ranks : {"2", "1"}) {
    const std::string name = std::string("ranks") + ranks;
    ASSERT_EQ(train(name, both, some, {"--set", "train.ranks=2"}).status, 0);
    const Outcome outcome = train(name, both, {"lookahead.commit_every=10"},
                                  {"--resume", "--set", std::string("train.ranks=") + ranks});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("resumes after iteration 20\n"));
    EXPECT_EQ(run({"verify", "--checkpoints", "runs/local", "runs/" + name}).status, 0);
  }
  // The same on a disk, of as many ranks; with fewer it begins with the newest checkpoint, or anew.
  for (const char* ranks : {"2", "1"}) {
    const auto on_disk = [&](Words words, const char* of_ranks) {
      words.insert(
          words.end(),
          {"--set", std::string("name=disk") + ranks, "--set", "embedding.store=cached", "--set",
           "lookahead.home=disk", "--set", std::string("lookahead.disk_path=rows") + ranks, "--set",
           "lookahead.commit_every=10", "--set", std::string("train.ranks=") + of_ranks});
      return run(words);
    };
    ASSERT_EQ(on_disk({"train", "a.toml", "--set", "train.iterations=25", "--set",
                       "train.checkpoint.at_end=false"},
                      "2")
                  .status,
              0);
    const Outcome outcome = on_disk({"train", "a.toml", "--resume"}, ranks);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    if (ranks[0] == '2') {
      EXPECT_THAT(outcome.err, HasSubstr("resumes after iteration 20\n"));
    }
    EXPECT_EQ(
        run({"verify", "--checkpoints", "runs/local", std::string("runs/disk") + ranks}).status, 0);
  }
  // A checkpoint that is newer is taken, and so is it when a server has lost its rows.
  ASSERT_EQ(train("saved", both, {"train.iterations=25", "lookahead.commit_every=0"}).status, 0);
  EXPECT_THAT(train("saved", both, {}, {"--resume"}).err,
              HasSubstr("resumes after iteration 25\n"));
  ASSERT_EQ(train("lost", both, some).status, 0);
  ASSERT_EQ(train("other", in_quotes(second), {"train.iterations=1"}).status, 0);
  const Outcome lost = train("lost", both, {}, {"--resume"});
  EXPECT_EQ(lost.status, 0) << lost.err;
  EXPECT_THAT(lost.err, HasSubstr("server " + second + " no longer has rows of this run"));
  EXPECT_EQ(run({"verify", "--checkpoints", "runs/local", "runs/lost"}).status, 0);
  // Another configuration is refused before anything is changed.
  ASSERT_EQ(train("changed", both, some).status, 0);
  refuse(
      [&] {
        Words words = training("changed", both, {"train.batch_size=64"});
        words.push_back("--resume");
        return words;
      }(),
      "train.batch_size");
}

TEST_F(ServerVerb, servers_write_their_own_parts_of_checkpoints_from_memory_and_from_a_disk) {
  const std::string first = serve({"--checkpoints", folder_.path()});
  const std::string second = serve({"--checkpoints", folder_.path(), "--disk", "rows"});
  ASSERT_EQ(run({"train", "a.toml", "--quiet", "--set", "name=local"}).status, 0);
  const Outcome outcome = run(training("own", in_quotes(first) + "," + in_quotes(second),
                                       {"train.ranks=2", "train.checkpoint.every=10"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::vector<int64_t> bytes;
  for (int part = 0; part < 4; ++part)
    bytes.push_back(std::filesystem::file_size(
        path(newest_checkpoint("own") + "/part-" + std::to_string(part))));
  EXPECT_EQ(bytes[1], 0);
  EXPECT_GT(bytes[2], 1000);
  EXPECT_GT(bytes[3], 1000);
  EXPECT_EQ(run({"verify", "--checkpoints", "runs/local", "runs/own"}).status, 0);
  EXPECT_EQ(run({"eval", "runs/own"}).status, 0);
}

TEST_F(ServerVerb, a_row_is_read_by_the_program_in_the_document_of_the_messages) {
  const std::string address = serve();
  ASSERT_EQ(run(training("a", in_quotes(address))).status, 0);
  const std::string page = *read_text(posix_files(), RECMILL_DOCS "/formats/row_service.md");
  const std::string open = "```python\n";
  const size_t begin = page.find(open) + open.size();
  write("read_row.py", page.substr(begin, page.find("```", begin) - begin));
  const auto read = [&](const std::string& row, const std::string& fence) {
    return said_by(std::string(RECMILL_PYTHON) + " " + path("read_row.py") + " " + address + " 0 " +
                   row + " " + fence);
  };
  EXPECT_THAT(read("1", "-1"), ::testing::MatchesRegex("([0-9a-f]{2})+\n"));
  EXPECT_THAT(read("99999999", "-1"), HasSubstr("row 99999999 is outside of its"));
  // A fetch with a fence is answered when the rank has put that far.
  std::string err = std::exchange(err_, "training"), out = std::exchange(out_, "training.out");
  const pid_t trains =
      start(training("b", in_quotes(address), {"train.iterations=4000", "train.epochs=1000"}));
  err_ = std::move(err);
  out_ = std::move(out);
  const auto mark = [&]() -> int64_t {
    const Json status = Json::parse(run({"inspect", address, "--json"}).out);
    return status["run"].get<std::string>().starts_with("b-") ? status["marks"][0].get<int64_t>()
                                                              : -1;
  };
  while (mark() < 0 && kill(trains, 0) == 0) sleep_milliseconds(5);
  const int64_t fence = mark() + 1000;
  EXPECT_THAT(read("1", std::to_string(fence)), ::testing::MatchesRegex("([0-9a-f]{2})+\n"));
  EXPECT_GE(mark(), fence);
  kill(trains, SIGKILL);
  waitpid(trains, nullptr, 0);
}

TEST_F(ServerVerb, refuses_what_cannot_be_with_a_line) {
  write("secret", "abc\n");
  write("other", "abd");
  write("empty", "\n");
  const std::string address = serve(), guarded = serve({"--token-file", "secret"});
  const auto token = [](const std::string& file) { return "lookahead.token_file='" + file + "'"; };
  EXPECT_EQ(run(training("a", in_quotes(guarded), {token("secret")})).status, 0);
  refuse(training("b", in_quotes(guarded)), "the server asks for a token");
  refuse(training("b", in_quotes(guarded), {token("other")}), "another token than the server's");
  refuse(training("b", in_quotes(guarded), {token("empty")}), "lookahead.token_file: ");
  refuse(training("b", ""), "lookahead.servers: home = \"remote\" needs the addresses");
  refuse(training("b", in_quotes("nowhere")), "lookahead.servers: 'nowhere' is not HOST:PORT");
  refuse(training("b", in_quotes("10.1.2.3:4")), "10.1.2.3:4 is beyond this machine");
  refuse(training("b", in_quotes("127.0.0.1:1"), {"lookahead.deadline=0.5"}),
         "server 0 (127.0.0.1:1) cannot be reached", 1);
  refuse({"server", "embedding", "--listen", "0.0.0.0:0"}, "is beyond this machine");
  refuse({"server", "embedding", "--listen", "here"}, "--listen: 'here' is not HOST:PORT");
  refuse({"server", "embedding", "--listen", address}, "--listen " + address, 1);
  refuse({"server", "embedding", "--token-file", "none"}, "/none: cannot open");
  refuse({"server", "embedding", "--metrics", "0.0.0.0:0"}, "--metrics 0.0.0.0:0: is beyond");
  refuse({"server", "embedding", "--metrics", "127.0.0.300:0"},
         "--metrics: 127.0.0.300:0 is not ADDRESS:PORT");
  refuse({"inspect", "127.0.0.1:1"}, "127.0.0.1:1: ", 1);
  EXPECT_FALSE(posix_files().exists(path("runs/b")));
  refuse({"server", "embedding", "--memory", "lots"}, "--memory");
  refuse(training("full", in_quotes(serve({"--memory", "1MiB"}))),
         "its memory of 1 MiB (--memory) is full: rows take ", 1);
  refuse({"server", "embedding", "--disk", "secret/rows"}, "--disk: ", 1);
  refuse({"server", "embedding", "--memory", "1000"}, "--memory");
  refuse({"server", "embedding", "--tls-cert", "secret", "--tls-key", "secret"},
         "--tls-cert: secret has no CERTIFICATE in PEM");
  refuse(training("b", in_quotes(address), {"lookahead.tls_ca=other"}),
         "has no CERTIFICATE in PEM");
  refuse(training("b", in_quotes(address) + "," + in_quotes(address)),
         "lookahead.servers: " + address + " is named twice");
  refuse({"train", "a.toml", "--set", "lookahead.home=disk"},
         "lookahead.home: \"disk\" needs embedding.store = \"cached\"");
  EXPECT_EQ(run(training("c", in_quotes(address))).status, 0);
}

}  // namespace
}  // namespace recmill::cli
