// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>

#include "remote/remote_home.h"
#include "table/home/testing/patient_home.h"

namespace recmill::remote::testing {

/// A home at servers that has begun, as the contract of homes polls it.
class PatientHome {
 public:
  PatientHome(const RowClientOptions& options, Transport& transport,
              std::chrono::microseconds moment)
      : home_(options, transport, {}), patient_(home_, moment) {
    const Status begun = home_.wait_until_begun();
    EXPECT_TRUE(begun.ok()) << begun.message();
  }
  table::RowHome& home() { return patient_; }

 private:
  RemoteHome home_;
  table::testing::PatientHome patient_;
};

}  // namespace recmill::remote::testing
