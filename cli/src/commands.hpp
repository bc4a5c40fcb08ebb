// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options.hpp"
#include "refit/io/library.hpp"

namespace refit::cli {

// Each runs one command and returns its exit code.
int run_comparison(const Options& options, const io::Library& library);
int run_check(const Options& options, const io::Library& library);
int run_plan(const Options& options, const io::Library& library);
int run_simulate(const Options& options, const io::Library& library);
int run_show(const Options& options, const io::Library& library);
int run_fit(const Options& options, const io::Library& library);
int run_membership(const Options& options, const io::Library& library);
int run_validate(const Options& options, const io::Library& library);

}  // namespace refit::cli
