// SPDX-License-Identifier: Apache-2.0
// A certificate of this machine for tests and benchmarks, whose key everybody knows.
#pragma once

#include "remote/stream.h"

namespace recmill::remote {

/// For 127.0.0.1 and localhost, signed by itself, until 2126. Of both ends of a connection.
inline StreamSecurity test_certificate() {
  StreamSecurity security;
  security.tls = true;
  security.tls_certificate = R"(-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUerOav5IsydDntP/ouo10Ea/DPhgwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDE2MjIxN1oYDzIxMjYxMTA2
MTYyMjE3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAR9AUW1F8EfoRiVAzYrHsKh4cMKuucCqQAYDKzPKOfPFlOv/gXHggvZ
gJd16lWxkjXZ9LGSkpk1nlPy5c5b2oOco28wbTAdBgNVHQ4EFgQUdfgB9woaLDe/
aCrjh2zPnPZcgwUwHwYDVR0jBBgwFoAUdfgB9woaLDe/aCrjh2zPnPZcgwUwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARhwR/AAABgglsb2NhbGhvc3QwCgYIKoZI
zj0EAwIDSAAwRQIhALjEUoWIIT1+kfLN8BcnRy8go5dKiaJfdLIej52jTBWwAiBk
7+rvfMkHMuYyyXC184T/u7b0v7liSXxPeEyEHjx2Gg==
-----END CERTIFICATE-----
)";
  security.tls_roots = security.tls_certificate;
  security.tls_key = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgseb/uLW4kxerOwG5
2A1wdypr9MSJ70swBxF0z29PYQGhRANCAAR9AUW1F8EfoRiVAzYrHsKh4cMKuucC
qQAYDKzPKOfPFlOv/gXHggvZgJd16lWxkjXZ9LGSkpk1nlPy5c5b2oOc
-----END PRIVATE KEY-----
)";
  return security;
}

}  // namespace recmill::remote
