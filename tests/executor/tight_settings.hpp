// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "refit/program_schedule.hpp"

namespace refit::testing_support {

/// By which even small plans take many waves, packs and chunks, with few operations in each.
inline program::Settings tight_settings() {
    program::Settings settings;
    settings.most_operations = 4;
    settings.wave_bytes = Bytes{2000U};
    settings.pack_bytes = Bytes{3000U};
    settings.least_chunk = Bytes{256U};
    return settings;
}

}  // namespace refit::testing_support
