// SPDX-License-Identifier: Apache-2.0
// Messages over Arrow Flight: a stream is a DoExchange, a message a record batch with one column of
// bytes, its header the metadata beside it.
#include <arrow/api.h>
#include <arrow/flight/api.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "remote/flight/flight_build.h"
#include "remote/flight/flight_library.h"

namespace recmill::remote {
namespace {

namespace flight = arrow::flight;

constexpr char kCommand[] = "recmill-rows 1";
constexpr char kAuthorization[] = "authorization";
constexpr char kBearer[] = "Bearer ";
constexpr int kKeepAliveMilliseconds = 10'000;
constexpr int kConnectMilliseconds = 5'000;  // gRPC waits for 20 s for a port that says nothing

Status failed(const arrow::Status& status) {
  std::string message = status.message();
  const std::string_view before = ", with message: ";
  if (const size_t begin = message.find(before); begin != std::string::npos)
    message.erase(0, begin + before.size());
  // What follows is for those who debug gRPC.
  for (const char* behind : {". Detail: ", ". gRPC client debug context", ". Client context", "\n"})
    message.resize(std::min(message.size(), message.find(behind)));
  // What is wrong with a token or a certificate is wrong the next time, too.
  const auto detail = flight::FlightStatusDetail::UnwrapStatus(status);
  const bool is_refused = detail && detail->code() == flight::FlightStatusCode::Unauthenticated;
  const bool is_tls = message.find("certificate") != std::string::npos ||
                      message.find("Ssl handshake") != std::string::npos ||
                      message.find("handshak") != std::string::npos;
  return is_refused || is_tls ? Status::BadRequest(message) : Status::Failed(message);
}

std::shared_ptr<arrow::Schema> schema() {
  static const auto schema =
      arrow::schema({arrow::field("body", arrow::uint8(), /*nullable=*/false)});
  return schema;
}

/// Keeps the bytes of a message.
class BodyBuffer final : public arrow::Buffer {
 public:
  explicit BodyBuffer(Bytes bytes)
      : arrow::Buffer(reinterpret_cast<const uint8_t*>(bytes.view().data()),
                      static_cast<int64_t>(bytes.size())),
        bytes_(std::move(bytes)) {}

 private:
  const Bytes bytes_;
};

Status write(flight::MetadataRecordBatchWriter& writer, const Message& message) {
  const MessageHeader header = header_of(message);
  auto metadata = arrow::Buffer::FromString(
      std::string(reinterpret_cast<const char*>(header.data()), header.size()));
  if (message.body.size() == 0) {
    const auto written = writer.WriteMetadata(std::move(metadata));
    return written.ok() ? Status() : failed(written);
  }
  const auto count = static_cast<int64_t>(message.body.size());
  const auto column = arrow::ArrayData::Make(
      arrow::uint8(), count, {nullptr, std::make_shared<BodyBuffer>(message.body)}, 0);
  const auto batch = arrow::RecordBatch::Make(schema(), count, {column});
  const auto written = writer.WriteWithMetadata(*batch, std::move(metadata));
  return written.ok() ? Status() : failed(written);
}

Result<Message> read(flight::MetadataRecordBatchReader& reader) {
  auto chunk = reader.Next();
  if (!chunk.ok()) return failed(chunk.status());
  if (chunk->data == nullptr && chunk->app_metadata == nullptr)
    return Status::Failed("the connection has ended");
  Bytes body;
  if (chunk->data != nullptr) {
    if (!chunk->data->schema()->Equals(*schema()))
      return Status::Failed("a message with other columns than one of bytes");
    const auto& column = chunk->data->column_data(0);
    const auto& buffer = column->buffers[1];
    if (column->length > 0)
      body = Bytes(column, {reinterpret_cast<const std::byte*>(buffer->data()) + column->offset,
                            static_cast<size_t>(column->length)});
  }
  std::span<const std::byte> header;
  if (chunk->app_metadata != nullptr)
    header = {reinterpret_cast<const std::byte*>(chunk->app_metadata->data()),
              static_cast<size_t>(chunk->app_metadata->size())};
  auto message = message_of(header, std::move(body));
  if (!message) return Status::Failed("a message without a known header");
  return *std::move(message);
}

class ClientStream final : public MessageStream {
 public:
  static Result<std::unique_ptr<MessageStream>> connect(const std::string& address,
                                                        const StreamSecurity& security) {
    auto stream = std::make_unique<ClientStream>();
    auto location =
        flight::Location::Parse((security.tls ? "grpc+tls://" : "grpc+tcp://") + address);
    if (!location.ok()) return failed(location.status());
    auto options = flight::FlightClientOptions::Defaults();
    options.tls_root_certs = security.tls_roots;
    options.generic_options = {{"grpc.keepalive_time_ms", kKeepAliveMilliseconds},
                               {"grpc.keepalive_timeout_ms", kKeepAliveMilliseconds},
                               {"grpc.keepalive_permit_without_calls", 1},
                               {"grpc.min_reconnect_backoff_ms", kConnectMilliseconds},
                               {"grpc.http2.max_pings_without_data", 0},
                               {"grpc.use_local_subchannel_pool", 1}};
    auto client = flight::FlightClient::Connect(*location, options);
    if (!client.ok()) return failed(client.status());
    stream->client_ = *std::move(client);
    flight::FlightCallOptions call;
    if (!security.token.empty())
      call.headers.emplace_back(kAuthorization, kBearer + security.token);
    auto exchange = stream->client_->DoExchange(call, flight::FlightDescriptor::Command(kCommand));
    if (!exchange.ok()) return failed(exchange.status());
    stream->writer_ = std::move(exchange->writer);
    stream->reader_ = std::move(exchange->reader);
    if (const auto begun = stream->writer_->Begin(schema()); !begun.ok()) return failed(begun);
    return std::unique_ptr<MessageStream>(std::move(stream));
  }

  ~ClientStream() override {
    if (reader_ == nullptr) return;
    reader_->Cancel();
    (void)writer_->Close();
  }
  Status send(const Message& message) override { return write(*writer_, message); }
  Result<Message> receive() override { return read(*reader_); }
  void cancel() override { reader_->Cancel(); }

 private:
  std::unique_ptr<flight::FlightClient> client_;
  std::unique_ptr<flight::FlightStreamWriter> writer_;
  std::unique_ptr<flight::FlightStreamReader> reader_;
};

/// The server's end, within DoExchange. To cancel it is to end the call, which the handler does.
class ServerStream final : public MessageStream {
 public:
  ServerStream(flight::FlightMessageReader& reader, flight::FlightMessageWriter& writer)
      : reader_(reader), writer_(writer) {}
  Status send(const Message& message) override { return write(writer_, message); }
  Result<Message> receive() override { return read(reader_); }
  void cancel() override {}

 private:
  flight::FlightMessageReader& reader_;
  flight::FlightMessageWriter& writer_;
};

/// Compares in a time that does not depend on where texts differ.
bool equal(std::string_view a, std::string_view b) {
  unsigned differ = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    differ |= static_cast<unsigned>(a[i] ^ (b.empty() ? 1 : b[i % b.size()]));
  return differ == 0;
}

class NoMiddleware final : public flight::ServerMiddleware {
 public:
  void SendingHeaders(flight::AddCallHeaders*) override {}
  void CallCompleted(const arrow::Status&) override {}
  std::string name() const override { return "token"; }
};

class TokenCheck final : public flight::ServerMiddlewareFactory {
 public:
  explicit TokenCheck(std::string token) : expected_(kBearer + std::move(token)) {}
  arrow::Status StartCall(const flight::CallInfo&, const flight::ServerCallContext& context,
                          std::shared_ptr<flight::ServerMiddleware>* middleware) override {
    const auto& headers = context.incoming_headers();
    const auto shown = headers.find(kAuthorization);
    if (shown == headers.end() || !equal(shown->second, expected_))
      return flight::MakeFlightError(flight::FlightStatusCode::Unauthenticated,
                                     shown == headers.end() ? "the server asks for a token"
                                                            : "another token than the server's");
    *middleware = std::make_shared<NoMiddleware>();
    return arrow::Status::OK();
  }

 private:
  const std::string expected_;
};

class FlightServer final : public flight::FlightServerBase, public MessageServer {
 public:
  explicit FlightServer(StreamHandler& handler) : handler_(handler) {}
  ~FlightServer() override {
    if (!is_listening_) return;
    const auto now = std::chrono::system_clock::now();
    (void)Shutdown(&now);  // ends calls
  }

  arrow::Status DoExchange(const flight::ServerCallContext&,
                           std::unique_ptr<flight::FlightMessageReader> reader,
                           std::unique_ptr<flight::FlightMessageWriter> writer) override {
    if (reader->descriptor().cmd != kCommand)
      return arrow::Status::Invalid("not a stream of rows: its command is not '", kCommand, "'");
    ARROW_RETURN_NOT_OK(writer->Begin(schema()));
    ServerStream stream(*reader, *writer);
    handler_.serve(stream);
    return arrow::Status::OK();
  }
  int port() const override { return flight::FlightServerBase::port(); }

  Status begin(const flight::FlightServerOptions& options) {
    const auto begun = Init(options);
    is_listening_ = begun.ok();
    return begun.ok() ? Status() : failed(begun);
  }

 private:
  bool is_listening_ = false;
  StreamHandler& handler_;
};

class FlightTransport final : public Transport {
 public:
  Result<std::unique_ptr<MessageStream>> connect(const std::string& address,
                                                 const StreamSecurity& security) override {
    return ClientStream::connect(address, security);
  }

  Result<std::unique_ptr<MessageServer>> listen(const std::string& address,
                                                const StreamSecurity& security,
                                                StreamHandler& handler) override {
    auto location =
        flight::Location::Parse((security.tls ? "grpc+tls://" : "grpc+tcp://") + address);
    if (!location.ok()) return failed(location.status());
    flight::FlightServerOptions options(*location);
    if (security.tls)
      options.tls_certificates.push_back({security.tls_certificate, security.tls_key});
    if (!security.token.empty())
      options.middleware.emplace_back("token", std::make_shared<TokenCheck>(security.token));
    auto server = std::make_unique<FlightServer>(handler);
    RECMILL_RETURN_IF_ERROR(server->begin(options));
    return std::unique_ptr<MessageServer>(std::move(server));
  }
};

}  // namespace
}  // namespace recmill::remote

extern "C" __attribute__((visibility("default"))) recmill::remote::Transport*
recmill_flight_library(const char* build) {
  if (std::string_view(build) != recmill::remote::flight_build()) return nullptr;
  static recmill::remote::FlightTransport transport;
  return &transport;
}
