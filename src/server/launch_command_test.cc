// SPDX-License-Identifier: Apache-2.0
#include "server/launch_command.h"

#include <gtest/gtest.h>

namespace recmill::server {
namespace {

using Words = std::vector<std::string>;

std::string line(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

LaunchPlan plan(MpiKind kind) {
  return {.mpirun = "mpirun",
          .kind = kind,
          .hosts = {{.name = "a", .slots = 2}, {.name = "b", .slots = 4}},
          .ranks = 3,
          .remote_shell = "rsh",
          .folder = "/t",
          .inherited = {"X"},
          .program = {"recmill", "guard"}};
}

TEST(LaunchCommand, knows_launchers_by_what_they_print) {
  EXPECT_EQ(*mpi_kind("mpirun (Open MPI) 4.1.4\n"), MpiKind::open_mpi_4);
  EXPECT_EQ(*mpi_kind("mpiexec (OpenRTE) 4.1.4\n"), MpiKind::open_mpi_4);
  EXPECT_EQ(*mpi_kind("mpirun (Open MPI) 5.0.11\n"), MpiKind::open_mpi_5);
  EXPECT_EQ(*mpi_kind("HYDRA build details:\n    Version: 4.0.2\n"), MpiKind::hydra);
  EXPECT_EQ(mpi_kind("echo 1.0\nx").status().message(),
            "is not a launcher of Open MPI or MPICH: it calls itself 'echo 1.0'");
}

TEST(LaunchCommand, places_ranks_on_hosts_in_their_order) {
  EXPECT_EQ(line(launch_words(plan(MpiKind::open_mpi_4))),
            "mpirun --oversubscribe --bind-to none --map-by slot -n 3 --host a:2,b:1 "
            "--mca orte_tmpdir_base /t --quiet --mca orte_leave_session_attached 1 "
            "--mca plm_rsh_no_tree_spawn 1 --mca plm_rsh_agent rsh -x X recmill guard");
  EXPECT_EQ(line(launch_words(plan(MpiKind::open_mpi_5))),
            "mpirun --map-by slot:OVERSUBSCRIBE --bind-to none -n 3 --host a:2,b:1 "
            "--prtemca prte_tmpdir_base /t --prtemca plm_ssh_agent rsh -x X recmill guard");
  EXPECT_EQ(
      line(launch_words(plan(MpiKind::hydra))),
      "mpirun -n 3 -hosts a:2,b:1 -bind-to none -launcher ssh -launcher-exec rsh recmill guard");
  LaunchPlan here = plan(MpiKind::hydra);
  here.hosts.clear();
  here.remote_shell.clear();
  EXPECT_EQ(line(launch_words(here)), "mpirun -n 3 -hosts localhost:3 -bind-to none recmill guard");
}

TEST(LaunchCommand, a_remote_shell_reads_the_secret_and_gets_every_word_as_it_is) {
  const Words words = remote_words({.remote_shell = "rsh -q",
                                    .host = "a",
                                    .folder = "/my runs",
                                    .secret = "TOKEN",
                                    .variables = {{"AT", "1.2.3.4 5"}},
                                    .program = {"recmill", "it's", "{}"}});
  EXPECT_EQ(words, (Words{"rsh", "-q", "a",
                          "IFS= read -r TOKEN && export TOKEN && export AT='1.2.3.4 5' && cd "
                          "'/my runs' && exec 'recmill' 'it'\\''s' '{}'"}));
  EXPECT_EQ(remote_words({.remote_shell = "",
                          .host = "a",
                          .folder = "/",
                          .secret = "T",
                          .variables = {},
                          .program = {}})[0],
            "ssh");
}

TEST(LaunchCommand, training_that_had_begun_is_resumed_and_nothing_else) {
  const Words anew{"train", "a.toml", "--overwrite"};
  EXPECT_EQ(restart_words(anew, false, false), anew);
  EXPECT_EQ(line(restart_words(anew, true, false)), "train a.toml --resume");
  EXPECT_EQ(line(restart_words({"train", "a.toml", "--resume"}, true, true)),
            "train a.toml --resume --set train.ranks=0");
  EXPECT_EQ(line(restart_words({"verify", "a.toml"}, true, false)), "verify a.toml");
}

}  // namespace
}  // namespace recmill::server
