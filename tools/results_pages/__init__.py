# SPDX-License-Identifier: Apache-2.0
"""Pages of docs/results, which tools/results writes."""
