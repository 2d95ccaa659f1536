// SPDX-License-Identifier: Apache-2.0
// recmill inspect, recmill export, recmill import
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "base/json/json.h"
#include "base/paths.h"
#include "checkpoint/digest.h"
#include "checkpoint/exchange.h"
#include "checkpoint/folder.h"
#include "checkpoint/npy.h"
#include "checkpoint/safetensors.h"
#include "cli/named_checkpoint.h"
#include "cli/verb.h"
#include "remote/flight/flight_library.h"
#include "remote/guest.h"
#include "remote/secret.h"

namespace recmill::cli {
namespace {

using checkpoint::Reader;

// --- inspect ---

struct InspectArguments {
  std::string checkpoint;
  std::string token_file, tls_ca;  // of a server
  bool verify = false, json = false;
};

Result<Json> describe_checkpoint(Reader& reader, bool verify) {
  if (verify) RECMILL_RETURN_IF_ERROR(reader.verify());
  RECMILL_ASSIGN_OR_RETURN(const auto digests, checkpoint::digests(reader));
  Json entries = Json::array();
  for (const checkpoint::Digest& digest : digests) {
    if (digest.shape.empty()) continue;  // properties are shown whole
    entries.push_back(
        {{"name", digest.name}, {"shape", digest.shape}, {"crc", crc_text(digest.crc)}});
  }
  Json all{{"checkpoint", reader.path()}, {"step", reader.step()}};
  if (verify) all["verified"] = true;
  all["properties"] = reader.properties();
  all["entries"] = std::move(entries);
  return all;
}

/// Whether it is HOST:PORT, and no folder of that name.
bool is_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  return colon != std::string::npos && colon > 0 && colon + 1 < text.size() &&
         text.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
         !posix_files().exists(text);
}

/// A run's rows at an embedding server.
Status inspect_server(const InspectArguments& of) {
  remote::StreamSecurity security;
  RECMILL_ASSIGN_OR_RETURN(security.token,
                           remote::read_secret("--token-file", of.token_file, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(security.tls_roots,
                           remote::read_pem("--tls-ca", of.tls_ca, "CERTIFICATE", posix_files()));
  security.tls = !of.tls_ca.empty();
  RECMILL_ASSIGN_OR_RETURN(remote::Transport * transport, remote::flight_transport());
  RECMILL_ASSIGN_OR_RETURN(
      const auto answer,
      remote::ask_as_guest(of.checkpoint, {remote::MessageKind::status}, *transport, security));
  const Json status = Json::parse(answer.body.text(), nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return Status::Failed(of.checkpoint + ": an answer that is no status");
  print_result(status, of.json);
  return {};
}

Status inspect(const InspectArguments& arguments) {
  if (is_address(arguments.checkpoint)) return inspect_server(arguments);
  RECMILL_ASSIGN_OR_RETURN(const auto reader, open_named_checkpoint(arguments.checkpoint));
  RECMILL_ASSIGN_OR_RETURN(Json all, describe_checkpoint(*reader, arguments.verify));
  if (arguments.json) {
    print_result(all, true);
    return {};
  }
  const Json entries = std::move(all["entries"]);
  Json properties = std::move(all["properties"]);
  for (auto& [key, value] : properties.items()) {
    if (value.dump().size() > 60) value = "(long: see --json)";
  }
  all.erase("entries");
  all.erase("properties");
  print_result(all, false);
  print_result(properties, false);
  for (const Json& entry : entries) {
    std::printf("%s  %-28s %s\n", entry["crc"].get<std::string>().c_str(),
                entry["shape"].get<std::string>().c_str(),
                entry["name"].get<std::string>().c_str());
  }
  return {};
}

// --- export ---

struct ExportArguments {
  std::string checkpoint, which, out;
  bool overwrite = false, json = false;
};

Status export_tensors(const ExportArguments& arguments) {
  Files& files = posix_files();
  RECMILL_RETURN_IF_ERROR(refuse_existing(arguments.out, arguments.overwrite));
  using checkpoint::Which;
  const Which which = arguments.which == "best"     ? Which::best
                      : arguments.which == "newest" ? Which::newest
                                                    : Which::best_or_newest;
  RECMILL_ASSIGN_OR_RETURN(const auto chosen, choose_checkpoint(arguments.checkpoint, which));
  checkpoint::Reader* const reader = chosen.reader.get();
  Json result{{"checkpoint", reader->path()}, {"step", reader->step()}, {"out", arguments.out}};
  if (!chosen.which.empty()) result["which"] = chosen.which;
  if (arguments.out.ends_with(".safetensors")) {
    RECMILL_RETURN_IF_ERROR(checkpoint::export_safetensors(files, *reader, arguments.out));
  } else {
    RECMILL_ASSIGN_OR_RETURN(result["files"],
                             checkpoint::export_npy(files, *reader, arguments.out));
  }
  print_result(result, arguments.json);
  return {};
}

// --- import ---

struct ImportArguments {
  std::string checkpoint, tensors, name, out;
  bool overwrite = false, json = false;
};

using TensorReaders = std::vector<std::unique_ptr<checkpoint::TensorReader>>;

Result<TensorReaders> open_tensors(const ImportArguments& arguments, const Reader& base) {
  Files& files = posix_files();
  const std::string& path = arguments.tensors;
  if (!files.exists(path)) return Status::BadRequest(whole_path(path) + ": no such file");
  const bool npy = path.ends_with(".npy") && !files.is_folder(path);
  if (!npy && !arguments.name.empty()) {
    return Status::BadRequest("--name: is for one .npy file; " + path +
                              " names its tensors itself");
  }
  if (files.is_folder(path)) return checkpoint::open_npy_folder(files, base, path);
  if (!npy && !path.ends_with(".safetensors")) {
    return Status::BadRequest(path +
                              ": must be a .safetensors file, a .npy file or a folder of those");
  }
  const std::string stem = std::filesystem::path(path).stem().string();
  const std::string name =
      arguments.name.empty() ? checkpoint::tensor_of_npy(base, stem) : arguments.name;
  RECMILL_ASSIGN_OR_RETURN(auto tensors, npy ? checkpoint::open_npy(files, path, name)
                                             : checkpoint::open_safetensors(files, path));
  TensorReaders readers;
  readers.push_back(std::move(tensors));
  return readers;
}

Status import_file(const ImportArguments& arguments) {
  RECMILL_ASSIGN_OR_RETURN(const auto base, open_named_checkpoint(arguments.checkpoint));
  const std::string written = arguments.out + "/" + checkpoint::folder_name(base->step());
  if (posix_files().exists(written)) {
    std::error_code ignored;  // then they are two
    if (std::filesystem::equivalent(written, base->path(), ignored)) {
      return Status::BadRequest("--out: would replace the checkpoint that is read, " + written);
    }
  }
  RECMILL_RETURN_IF_ERROR(refuse_existing(written, arguments.overwrite));
  RECMILL_ASSIGN_OR_RETURN(const auto readers, open_tensors(arguments, *base));
  RECMILL_RETURN_IF_ERROR(checkpoint::import_tensors(posix_files(), *base, readers, arguments.out,
                                                     arguments.overwrite
                                                         ? checkpoint::ExistingCheckpoint::replace
                                                         : checkpoint::ExistingCheckpoint::keep));
  size_t replaced = 0;
  for (const auto& reader : readers) replaced += reader->tensors().size();
  print_result({{"checkpoint", written}, {"replaced", replaced}}, arguments.json);
  return {};
}

}  // namespace

void add_inspect(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* verb =
      app.add_subcommand("inspect", "print what a checkpoint holds, or an embedding server");
  verb->add_option("checkpoint", arguments->checkpoint,
                   std::string(kNamedCheckpoint) + "; or HOST:PORT of an embedding server")
      ->required();
  verb->add_option("--token-file", arguments->token_file, "file with the server's token");
  verb->add_option("--tls-ca", arguments->tls_ca,
                   "file with certificates that the server's goes back to");
  verb->add_flag("--verify", arguments->verify, "check every checksum and that no row is missing");
  verb->add_flag("--json", arguments->json, "print one JSON object");
  verb->callback(
      [arguments, &chosen] { chosen.action = [arguments] { return inspect(*arguments); }; });
}

void add_export(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* verb = app.add_subcommand("export", "write a checkpoint's weights for other programs");
  verb->add_option("checkpoint", arguments->checkpoint, "a checkpoint's folder, or a run's")
      ->required();
  verb->add_option("--which", arguments->which,
                   "best or newest: a run's checkpoint; by default the best where the run keeps it "
                   "(train.checkpoint.keep_best), else the newest")
      ->check(CLI::IsMember({"best", "newest"}));
  verb->add_option("--out", arguments->out,
                   "a .safetensors file, or a folder of one .npy file a tensor")
      ->required();
  verb->add_flag("--overwrite", arguments->overwrite,
                 "replace the file, or the folder of an earlier export");
  verb->add_flag("--json", arguments->json, "print one JSON object");
  verb->callback(
      [arguments, &chosen] { chosen.action = [arguments] { return export_tensors(*arguments); }; });
}

void add_import(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* verb =
      app.add_subcommand("import", "write a checkpoint with some of its tensors replaced");
  verb->add_option("checkpoint", arguments->checkpoint, kNamedCheckpoint)->required();
  verb->add_option("tensors", arguments->tensors,
                   "a .safetensors file, a tensor as .npy, or a folder of those")
      ->required();
  verb->add_option("--name", arguments->name, "tensor that one .npy file is; else its file name");
  verb->add_option("--out", arguments->out, "folder in which the checkpoint step-N is written")
      ->required();
  verb->add_flag("--overwrite", arguments->overwrite, "replace a checkpoint that is there");
  verb->add_flag("--json", arguments->json, "print one JSON object");
  verb->callback(
      [arguments, &chosen] { chosen.action = [arguments] { return import_file(*arguments); }; });
}

}  // namespace recmill::cli
