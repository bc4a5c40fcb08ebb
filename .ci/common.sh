# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Functions that the scripts `run` and `test` share. Pre: `root` is the repository, `script` the caller's name.

# What building refit takes; the programs that need more name it themselves.
build_packages=(cmake ninja-build g++ libcli11-dev nlohmann-json3-dev libexpected-dev libyaml-cpp-dev liblemon-dev libxxhash-dev libeigen3-dev)
# What the window takes beside it.
gui_packages=(qt6-base-dev qt6-svg-dev fonts-dejavu-core)

say() { printf '%s: %s\n' "$script" "$*" >&2; }

# Runs a command with its output in a log, which is shown only where the command fails.
quietly() {
    local log status=0
    log=$(mktemp)
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if ((status != 0)); then
        cat -- "$log" >&2
    fi
    rm -f -- "$log"
    return "$status"
}

# Installs those of the named Debian packages that are missing, as root or with sudo; exits 6 where it cannot.
# Without dpkg-query it leaves the check to cmake.
need_packages() {
    command -v dpkg-query >/dev/null || return 0
    local installed name missing=() prefix=()
    # shellcheck disable=SC2016  # the format is dpkg-query's
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null) || true
    for name in "$@"; do
        grep -qxF -- "$name installed" <<<"$installed" || missing+=("$name")
    done
    ((${#missing[@]})) || return 0
    local command="apt-get install -y --no-install-recommends ${missing[*]}"
    if ((EUID != 0)); then
        if ! command -v sudo >/dev/null; then
            say "these packages are missing: ${missing[*]}"
            say "there is no sudo here; as root, type: apt-get update && $command"
            exit 6
        fi
        prefix=(sudo)
    fi
    say "installing with apt-get: ${missing[*]}"
    prefix+=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
    quietly "${prefix[@]}" update || say "apt-get update failed; trying with the package lists there are"
    if ! quietly "${prefix[@]}" install --no-install-recommends "${missing[@]}"; then
        say "the packages could not be installed; as root, type: apt-get update && $command"
        exit 6
    fi
}

# Configures a preset unless it has been, in this very folder; ninja repeats it when a CMake file changes.
configure() {
    local build=$root/build/$1
    if [[ -f $build/build.ninja ]] &&
        grep -qxF -- "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
        return 0
    fi
    (cd -- "$root" && cmake --fresh --preset "$1")
}
