// SPDX-License-Identifier: Apache-2.0
// recmill server embedding
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/json/json.h"
#include "base/log.h"
#include "base/split_mix.h"
#include "cli/launched.h"
#include "cli/verb.h"
#include "disk/disk_versions.h"
#include "disk/rocksdb/rocksdb_library.h"
#include "remote/flight/flight_library.h"
#include "remote/metrics.h"
#include "remote/row_service.h"
#include "remote/secret.h"
#include "run/checkpoint/row_part.h"
#include "run/memory.h"
#include "server/guard.h"
#include "server/text_page.h"

namespace recmill::cli {
namespace {

struct ServerArguments {
  std::string listen = "127.0.0.1:0";
  std::string metrics;
  std::string token_file, tls_certificate, tls_key;
  std::string checkpoints;
  std::string disk;
  int64_t memory = 0, disk_memory = int64_t{1} << 30;
  bool insecure = false;
};

Result<remote::StreamSecurity> security_of(const ServerArguments& of) {
  if (of.tls_certificate.empty() != of.tls_key.empty())
    return Status::BadRequest("--tls-cert, --tls-key: TLS needs both");
  if (!remote::is_loopback(of.listen) && !of.insecure &&
      (of.token_file.empty() || of.tls_key.empty()))
    return Status::BadRequest("--listen " + of.listen +
                              ": is beyond this machine: give --token-file, --tls-cert and "
                              "--tls-key, or --insecure");
  if (!of.metrics.empty() && !remote::is_loopback(of.metrics) && !of.insecure)
    return Status::BadRequest("--metrics " + of.metrics +
                              ": is beyond this machine; give --insecure to show it there");
  remote::StreamSecurity security;
  RECMILL_ASSIGN_OR_RETURN(security.token,
                           remote::read_secret("--token-file", of.token_file, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(
      security.tls_certificate,
      remote::read_pem("--tls-cert", of.tls_certificate, "CERTIFICATE", posix_files()));
  RECMILL_ASSIGN_OR_RETURN(security.tls_key,
                           remote::read_pem("--tls-key", of.tls_key, "PRIVATE KEY", posix_files()));
  security.tls = !of.tls_key.empty();
  return security;
}

/// To who watches this process, if anybody.
void note_address(const std::string& host, int port) {
  const char* const descriptor = std::getenv(kNoteVariable);
  if (descriptor == nullptr) return;
  const bool anywhere = host == "0.0.0.0" || host == "[::]";
  const std::string note =
      server::address_note((anywhere ? "" : host) + ":" + std::to_string(port));
  (void)!write(std::atoi(descriptor), note.data(), note.size());
}

using MakeRows = decltype(remote::ServerOptions::make_rows);

/// The database of --disk, which goes with the result.
Result<std::unique_ptr<disk::RowDatabase>> open_database(const std::string& folder,
                                                         int64_t memory) {
  RECMILL_ASSIGN_OR_RETURN(disk::RowDatabases * databases, disk::rocksdb_databases());
  RECMILL_RETURN_IF_ERROR(posix_files().make_folder(folder).at("--disk"));
  auto database = databases->open(folder + "/served-rows", memory, /*keeps=*/false);
  if (!database.ok()) return database.status().at("--disk");
  return database;
}

/// Of a run at a time, in a database that goes when the run does. Null: in memory.
MakeRows rows_on_disk(const ServerArguments& of) {
  if (of.disk.empty()) return nullptr;
  return [folder = of.disk, memory = of.disk_memory](
             std::span<const TableSpec> tables) -> Result<std::unique_ptr<table::ServedRows>> {
    if (const int64_t need = disk::DiskVersions::need(tables); need > train::available_bytes())
      return Status::Failed("--disk: which rows are there takes " + std::to_string(need >> 20) +
                            " MiB of memory, which are not free");
    RECMILL_ASSIGN_OR_RETURN(auto database, open_database(folder, memory));
    auto rows = std::make_unique<disk::DiskVersions>(
        std::move(database), std::vector<TableSpec>(tables.begin(), tables.end()));
    RECMILL_RETURN_IF_ERROR(rows->clear());  // of what a server that was killed has left
    return std::unique_ptr<table::ServedRows>(std::move(rows));
  };
}

Status serve_rows(const ServerArguments& of) {
  const size_t colon = of.listen.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return Status::BadRequest("--listen: '" + of.listen + "' is not HOST:PORT");
  RECMILL_ASSIGN_OR_RETURN(const auto security, security_of(of));
  // Each run opens its own; what is wrong with the folder is said before any comes.
  if (!of.disk.empty()) RECMILL_RETURN_IF_ERROR(open_database(of.disk, of.disk_memory).status());
  RECMILL_ASSIGN_OR_RETURN(remote::Transport * transport, remote::flight_transport());
  const std::atomic<bool>& interrupted = watch_interrupts();
  const auto now =
      static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  const auto instance =
      static_cast<int64_t>(split_mix(now ^ split_mix(static_cast<uint64_t>(getpid()))) >> 2 | 1);
  const int64_t memory = of.memory > 0 ? of.memory : train::available_bytes() / 5 * 4;
  remote::RowService service(
      instance, [](const std::string& line) { log_info(line); },
      {.memory = memory,
       .make_rows = rows_on_disk(of),
       .checkpoints =
           of.checkpoints.empty() ? "" : std::filesystem::absolute(of.checkpoints).string()},
      [](const remote::RowServer::Write& ordered, table::RowSnapshot& rows) {
        return train::write_row_part(posix_files(), ordered.order.folder, ordered.order.number,
                                     ordered.run.tables, ordered.run.seed, rows);
      });
  auto server = transport->listen(of.listen, security, service);
  if (!server.ok())
    return Status::Failed("--listen " + of.listen +
                          ": another program may have the port, or another machine the address: " +
                          server.status().message());
  std::unique_ptr<server::TextPage> page;
  if (!of.metrics.empty()) {
    auto opened = server::TextPage::open(
        of.metrics, [&service] { return remote::metrics_text(service.status()); });
    if (!opened.ok()) return opened.status().at("--metrics");
    page = *std::move(opened);
  }
  const std::string host = of.listen.substr(0, colon);
  log_info("embedding server at " + host + ":" + std::to_string((*server)->port()) +
           (security.tls ? ", TLS" : "") + (security.token.empty() ? "" : ", token") +
           (of.disk.empty() ? ", rows in " + std::to_string(memory >> 20) + " MiB of memory at most"
                            : ", rows on a disk in " + of.disk));
  if (page != nullptr)
    log_info("metrics at http://" + of.metrics.substr(0, of.metrics.rfind(':')) + ":" +
             std::to_string(page->port()) + "/metrics");
  note_address(host, (*server)->port());
  while (!interrupted) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const Json status = Json::parse(service.status());
  const std::string run = status["run"];
  log_info("embedding server ends" + (run.empty() ? ""
                                                  : "; it had " + status["touched_rows"].dump() +
                                                        " rows of run '" + run + "'"));
  return {};
}

}  // namespace

void add_server(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<ServerArguments>();
  CLI::App* verb = app.add_subcommand("server", "serve what runs use");
  verb->require_subcommand(1);
  CLI::App* rows = verb->add_subcommand(
      "embedding",
      "store rows of runs whose lookahead.home is \"remote\", in this process's memory or on its "
      "disk, until it is interrupted");
  const CLI::Validator at_least_a_mebibyte(
      [](const std::string& bytes) {
        return std::strtoll(bytes.c_str(), nullptr, 10) < 1 << 20 ? "must be at least 1 MiB" : "";
      },
      "");
  rows->add_option("--listen", arguments->listen, "HOST:PORT; port 0 is any that is free")
      ->capture_default_str();
  rows->add_option("--memory", arguments->memory,
                   "bytes that rows and images of them may take, such as 8GiB, 1MiB or more; "
                   "default: 80 % of "
                   "what is free at the start. A commit is asked for when it gets scarce")
      ->transform(CLI::AsSizeValue(false))
      ->check(at_least_a_mebibyte);
  rows->add_option("--disk", arguments->disk,
                   "folder for rows of runs, in place of memory; they go when this server ends");
  rows->add_option("--disk-memory", arguments->disk_memory,
                   "bytes of memory for what is read from --disk and not written to it yet, such "
                   "as 4GiB; 1MiB or more")
      ->transform(CLI::AsSizeValue(false))
      ->check(at_least_a_mebibyte)
      ->capture_default_str();
  rows->add_option(
      "--checkpoints", arguments->checkpoints,
      "folder, of a file system that ranks see too, below which this server writes "
      "its own part of each checkpoint; without it ranks read its rows and write them");
  rows->add_option("--metrics", arguments->metrics,
                   "ADDRESS:PORT of a page of statistics, in the text format of Prometheus");
  rows->add_option("--token-file", arguments->token_file, "file with a token that ranks show");
  rows->add_option("--tls-cert", arguments->tls_certificate, "certificate of this server, in PEM");
  rows->add_option("--tls-key", arguments->tls_key, "key of the certificate, in PEM");
  rows->add_flag("--insecure", arguments->insecure,
                 "listen beyond this machine without a token or TLS");
  rows->callback(
      [arguments, &chosen] { chosen.action = [arguments] { return serve_rows(*arguments); }; });
}

}  // namespace recmill::cli
