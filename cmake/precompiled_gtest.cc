// SPDX-License-Identifier: Apache-2.0
// Nothing: GoogleTest's headers are compiled beside it, once for all tests (rooms.cmake).
