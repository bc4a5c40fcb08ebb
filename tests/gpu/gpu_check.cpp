// SPDX-License-Identifier: Apache-2.0
// What only a GPU can show: gpu_check plans | rates | self. Exit code 77 where there is no GPU that CUDA can
// use.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../executor/small_jobs.hpp"
#include "cuda_device.hpp"
#include "device_memory.hpp"
#include "refit/exec/cuda_transport.hpp"
#include "refit/exec/measure.hpp"
#if defined(REFIT_HAS_NCCL)
#include "communicators.hpp"
#endif

namespace {

using namespace refit;
using namespace refit::exec;

template <class T>
T sound(Result<T> result) {
    if (!result) {
        std::printf("%s\n", result.error().front().message.c_str());
        std::exit(1);
    }
    return std::move(*result);
}
void sound(const Result<void>& result) {
    if (!result) {
        std::printf("%s\n", result.error().front().message.c_str());
        std::exit(1);
    }
}

/// Every small plan, many ranks a GPU.
int run_plans() {
    int failures = 0;
    for (const auto& [name, layout] : testing_support::layouts_of_16(16)) {
        for (const Method method : testing_support::kMethods) {
            const auto small = testing_support::job_of(name, layout, method, 4);
            const auto schedule = small.schedule();
            Job job;
            job.schedule = &schedule;
            const auto transport = sound(make_cuda_transport());
            const auto measured = measure(*transport, job, {1, 3});
            failures += measured ? 0 : 1;
            std::printf("%s: %s\n",
                        small.name.c_str(),
                        measured ? "verified" : measured.error().front().message.c_str());
        }
    }
    return failures == 0 ? 0 : 1;
}

float milliseconds(StreamDevice& device, const LoadedTable& table) {
    constexpr int kRuns = 20;
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    sound(cuda::check(cudaEventCreate(&begin), "cudaEventCreate"));
    sound(cuda::check(cudaEventCreate(&end), "cudaEventCreate"));
    sound(device.launch(table));
    sound(cuda::check(cudaEventRecord(begin, device.stream(0)), "cudaEventRecord"));
    for (int run = 0; run < kRuns; ++run) {
        sound(device.launch(table));
    }
    sound(cuda::check(cudaEventRecord(end, device.stream(0)), "cudaEventRecord"));
    sound(cuda::check(cudaEventSynchronize(end), "cudaEventSynchronize"));
    float time = 0;
    sound(cuda::check(cudaEventElapsedTime(&time, begin, end), "cudaEventElapsedTime"));
    return time / kRuns;
}

/// Pack kernels against cudaMemcpyAsync of the same bytes, in turns: at least 85 % from runs of 1 KiB on.
int measure_rates() {
    constexpr std::uint64_t kBytes = std::uint64_t{1} << 30U;
    const auto device = sound(cuda::open_device(0, cuda::plain_allocator()));
    const auto from = sound(device->allocate(2 * kBytes));
    const auto to = sound(device->allocate(kBytes));
    int failures = 0;
    std::printf("%s\nrun B, packed GB/s, copied GB/s, share\n", device->describe().c_str());
    for (std::uint64_t run = 16; run <= 65536; run *= 4) {
        StridedCopy copy;
        copy.source = from;
        copy.destination = to;
        copy.run = run;
        copy.axes = 1;
        copy.count[0] = kBytes / run;
        copy.source_step[0] = 2 * run;
        copy.destination_step[0] = run;
        const auto table = sound(load(*device, make_copy_table(std::vector{copy})));
        std::vector<float> packed;
        std::vector<float> copied;
        for (int round = 0; round < 7; ++round) {
            packed.push_back(milliseconds(*device, table));
            cudaEvent_t begin = nullptr;
            cudaEvent_t end = nullptr;
            sound(cuda::check(cudaEventCreate(&begin), "cudaEventCreate"));
            sound(cuda::check(cudaEventCreate(&end), "cudaEventCreate"));
            sound(cuda::check(cudaEventRecord(begin, device->stream(0)), "cudaEventRecord"));
            for (int again = 0; again < 20; ++again) {
                sound(cuda::check(cudaMemcpyAsync(reinterpret_cast<void*>(to),
                                                  reinterpret_cast<const void*>(from),
                                                  kBytes,
                                                  cudaMemcpyDeviceToDevice,
                                                  device->stream(0)),
                                  "cudaMemcpyAsync"));
            }
            sound(cuda::check(cudaEventRecord(end, device->stream(0)), "cudaEventRecord"));
            sound(cuda::check(cudaEventSynchronize(end), "cudaEventSynchronize"));
            float time = 0;
            sound(cuda::check(cudaEventElapsedTime(&time, begin, end), "cudaEventElapsedTime"));
            copied.push_back(time / 20);
        }
        std::ranges::sort(packed);
        std::ranges::sort(copied);
        const double share = copied[3] / packed[3];
        std::printf("%6llu, %7.1f, %7.1f, %.2f\n",
                    static_cast<unsigned long long>(run),
                    static_cast<double>(kBytes) / packed[3] / 1e6,
                    static_cast<double>(kBytes) / copied[3] / 1e6,
                    share);
        failures += run >= 1024 && share < 0.85 ? 1 : 0;
    }
    return failures == 0 ? 0 : 1;
}

/// One rank of NCCL that sends to itself in a group, then by a graph: groups, registered memory, polling and capture, but no
/// network.
int run_self() {
#if defined(REFIT_HAS_NCCL)
    const auto library = sound(nccl::Library::open());
    const auto device = sound(cuda::open_device(0, cuda::plain_allocator()));
    constexpr std::uint64_t kBytes = std::uint64_t{64} << 20U;
    void* memory = nullptr;
    sound(library.check(library.mem_alloc(&memory, 2 * kBytes), "ncclMemAlloc"));
    const auto address = reinterpret_cast<std::uint64_t>(memory);
    const auto control = sound(join_job({}, {}, std::chrono::seconds{5}));
    program::RankProgram program;
    nccl::Communicators comms{library};
    sound(comms.make(program, {.rank = 0, .members = {0}, .domains = {}}, *control, std::chrono::seconds{60}));
    sound(comms.enroll(address, 2 * kBytes));
    RegionElements elements;
    elements.count = elements.extents[0] = kBytes / 2;
    elements.strides[0] = 1;
    elements.element_bytes = 2;
    const auto fill = [&](std::uint64_t place, bool is_complemented) {
        elements.address = address + place;
        sound(device->fill(elements, is_complemented));
    };
    const auto exchange = [&] {
        sound(library.check(library.group_start(), "ncclGroupStart"));
        const auto sent = library.send(memory, kBytes, ncclInt8, 0, comms.all(), device->stream(0));
        const auto received = library.recv(
            static_cast<std::byte*>(memory) + kBytes, kBytes, ncclInt8, 0, comms.all(), device->stream(0));
        sound(library.check(library.group_end(), "ncclGroupEnd"));
        sound(library.check(sent, "ncclSend"));
        sound(library.check(received, "ncclRecv"));
        sound(library.settle(comms.all(), "ncclGroupEnd", std::chrono::seconds{60}));
    };
    const auto place = sound(device->allocate(sizeof(ElementVerdict)));
    int failures = 0;
    const auto compare = [&](const char* what) {
        ElementVerdict verdict;
        sound(device->upload(place, std::as_bytes(std::span{&verdict, 1})));
        elements.address = address + kBytes;
        sound(device->compare(elements, place));
        sound(device->download(place, std::as_writable_bytes(std::span{&verdict, 1})));
        std::printf("NCCL self, %s: %s\n", what, verdict.first_wrong < elements.count ? "wrong" : "verified");
        failures += verdict.first_wrong < elements.count ? 1 : 0;
    };
    fill(0, false);
    exchange();
    compare("a group");
    fill(kBytes, true);
    sound(device->begin_capture());
    exchange();
    const auto graph = sound(device->end_capture());
    sound(device->replay(graph));
    compare("a graph");
    sound(comms.finish(std::chrono::seconds{60}));
    sound(library.check(library.mem_free(memory), "ncclMemFree"));
    return failures == 0 ? 0 : 1;
#else
    return 77;
#endif
}

}  // namespace

int main(int count, char** words) {
    const auto devices = cuda::count_devices();
    if (!devices) {
        std::printf("skipped: %s\n", devices.error().front().message.c_str());
        return 77;
    }
    const std::string_view what = count == 2 ? words[1] : "";
    return what == "plans"   ? run_plans()
           : what == "rates" ? measure_rates()
           : what == "self"  ? run_self()
                             : 2;
}
