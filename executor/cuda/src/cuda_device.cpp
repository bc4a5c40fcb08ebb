// SPDX-License-Identifier: Apache-2.0
#include "cuda_device.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "device_transport.hpp"
#include "kernels.hpp"
#include "refit/exec/cuda_transport.hpp"

namespace refit::exec::cuda {
namespace {

void* pointer(std::uint64_t address) {
    return reinterpret_cast<void*>(
        address);  // NOLINT(performance-no-int-to-ptr): copies keep addresses as numbers
}

class PlainAllocator final : public Allocator {
public:
    Result<void*> allocate(std::uint64_t bytes) override {
        void* memory = nullptr;
        if (auto done = check(cudaMalloc(&memory, bytes), "cudaMalloc"); !done) {
            return Failure{done.error()};
        }
        return memory;
    }
    void release(void* memory) noexcept override { cudaFree(memory); }
};

class CudaDevice final : public StreamDevice {
public:
    CudaDevice(int index, std::unique_ptr<Allocator> allocator)
        : index_{index}, allocator_{std::move(allocator)} {}
    ~CudaDevice() override {
        clear();
        if (event_ != nullptr) {
            cudaEventDestroy(event_);
        }
        std::ranges::for_each(streams_, cudaStreamDestroy);
    }
    CudaDevice(const CudaDevice&) = delete;
    CudaDevice& operator=(const CudaDevice&) = delete;

    Result<void> open() {
        if (auto done = select(); !done) {
            return done;
        }
        cudaDeviceProp properties{};
        if (auto done = check(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties");
            !done) {
            return done;
        }
        name_ = std::string{properties.name} + ", device " + std::to_string(index_);
        multiprocessors_ = properties.multiProcessorCount;
        if (auto done = open_streams(1); !done) {
            return done;
        }
        return check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
    }

    void clear() noexcept override {
        cudaSetDevice(index_);
        for (void* memory : memory_) {
            allocator_->release(memory);
        }
        std::ranges::for_each(graphs_, cudaGraphExecDestroy);
        std::ranges::for_each(marks_, cudaEventDestroy);
        memory_.clear();
        graphs_.clear();
        marks_.clear();
    }

    Result<void> open_streams(std::uint32_t count) override {
        auto done = select();
        while (done && streams_.size() < count) {
            cudaStream_t made = nullptr;
            done = check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreate");
            if (done) {
                streams_.push_back(made);
            }
        }
        return done;
    }

    /// Lets copies to `peer` go straight, where the machine can; else CUDA takes them through the host.
    void reach(int peer) {
        int can = 0;
        if (cudaDeviceCanAccessPeer(&can, index_, peer) == cudaSuccess && can != 0 && select()) {
            cudaDeviceEnablePeerAccess(peer, 0);
        }
        cudaGetLastError();
    }

    [[nodiscard]] cudaStream_t stream(std::uint32_t index) const override { return streams_.at(index); }
    [[nodiscard]] std::string describe() const override { return name_; }

    Result<std::uint64_t> available() override {
        std::size_t free = 0;
        std::size_t total = 0;
        if (auto done = select(); !done) {
            return Failure{done.error()};
        }
        if (auto done = check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"); !done) {
            return Failure{done.error()};
        }
        return free;
    }

    Result<std::uint64_t> allocate(std::uint64_t bytes) override {
        if (auto done = select(); !done) {
            return Failure{done.error()};
        }
        auto memory = allocator_->allocate(bytes);
        if (!memory) {
            return Failure{memory.error()};
        }
        memory_.push_back(*memory);
        return reinterpret_cast<std::uint64_t>(*memory);
    }

    // Both by the stream, so that they come after what was begun, and wait for themselves alone.
    Result<void> upload(std::uint64_t address, std::span<const std::byte> bytes) override {
        return transfer(pointer(address), bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
    }
    Result<void> download(std::uint64_t address, std::span<std::byte> bytes) override {
        return transfer(bytes.data(), pointer(address), bytes.size(), cudaMemcpyDeviceToHost);
    }

    Result<void> launch(const LoadedTable& table) override { return launch_on(0, table); }
    Result<void> launch_on(std::uint32_t stream, const LoadedTable& table) override {
        if (table.tiles == 0) {
            return {};
        }
        if (auto done = select(); !done) {
            return done;
        }
        const DeviceCopies copies{static_cast<const TiledCopy*>(pointer(table.copies)),
                                  static_cast<const std::uint32_t*>(pointer(table.first_tiles)),
                                  table.count,
                                  table.tiles};
        return check(launch_copies(copies, multiprocessors_, streams_.at(stream)), "the copy kernel");
    }

    Result<void> send(std::uint64_t from, Device& to_device, std::uint64_t to, std::uint64_t bytes) override {
        if (auto done = select(); !done) {
            return done;
        }
        const int peer = dynamic_cast<CudaDevice&>(to_device).index_;
        return check(cudaMemcpyPeerAsync(pointer(to), peer, pointer(from), index_, bytes, streams_.front()),
                     "cudaMemcpyPeerAsync");
    }

    Result<void> follow(Device& other) override {
        auto& before = dynamic_cast<CudaDevice&>(other);
        if (auto done = before.select(); !done) {
            return done;
        }
        if (auto done = check(cudaEventRecord(before.event_, before.streams_.front()), "cudaEventRecord"); !done) {
            return done;
        }
        if (auto done = select(); !done) {
            return done;
        }
        return check(cudaStreamWaitEvent(streams_.front(), before.event_, 0), "cudaStreamWaitEvent");
    }

    Result<void> fill(const RegionElements& elements, bool is_complemented) override {
        if (auto done = select(); !done) {
            return done;
        }
        return check(launch_fill(elements, is_complemented, streams_.front()), "the fill kernel");
    }

    Result<void> compare(const RegionElements& elements, std::uint64_t verdict) override {
        if (auto done = select(); !done) {
            return done;
        }
        return check(launch_compare(elements, static_cast<ElementVerdict*>(pointer(verdict)), streams_.front()),
                     "the compare kernel");
    }

    Result<bool> is_idle() override {
        if (auto done = select(); !done) {
            return Failure{done.error()};
        }
        return is_over(cudaStreamQuery(streams_.front()), "cudaStreamQuery");
    }

    Result<std::uint32_t> make_mark() override {
        if (auto done = select(); !done) {
            return Failure{done.error()};
        }
        cudaEvent_t made = nullptr;
        if (auto done = check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreate");
            !done) {
            return Failure{done.error()};
        }
        marks_.push_back(made);
        return static_cast<std::uint32_t>(marks_.size() - 1);
    }
    Result<void> set_mark(std::uint32_t mark, std::uint32_t stream) override {
        if (auto done = select(); !done) {
            return done;
        }
        return check(cudaEventRecord(marks_.at(mark), streams_.at(stream)), "cudaEventRecord");
    }
    Result<void> await_mark(std::uint32_t stream, std::uint32_t mark) override {
        if (auto done = select(); !done) {
            return done;
        }
        return check(cudaStreamWaitEvent(streams_.at(stream), marks_.at(mark), 0), "cudaStreamWaitEvent");
    }
    Result<bool> is_passed(std::uint32_t mark) override {
        if (auto done = select(); !done) {
            return Failure{done.error()};
        }
        return is_over(cudaEventQuery(marks_.at(mark)), "cudaEventQuery");
    }

    // Relaxed: threads of NCCL's own call CUDA meanwhile.
    Result<void> begin_capture() override {
        if (auto done = select(); !done) {
            return done;
        }
        return check(cudaStreamBeginCapture(streams_.front(), cudaStreamCaptureModeRelaxed),
                     "cudaStreamBeginCapture");
    }
    Result<std::uint32_t> end_capture() override {
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t ready = nullptr;
        auto done = select();
        done = done ? check(cudaStreamEndCapture(streams_.front(), &graph), "cudaStreamEndCapture") : done;
        if (done) {
            done = check(cudaGraphInstantiateWithFlags(&ready, graph, 0), "cudaGraphInstantiate");
        }
        if (graph != nullptr) {
            cudaGraphDestroy(graph);
        }
        if (!done) {
            return Failure{done.error()};
        }
        graphs_.push_back(ready);
        return static_cast<std::uint32_t>(graphs_.size() - 1);
    }
    Result<void> replay(std::uint32_t graph) override {
        if (auto done = select(); !done) {
            return done;
        }
        return check(cudaGraphLaunch(graphs_.at(graph), streams_.front()), "cudaGraphLaunch");
    }

private:
    static Result<bool> is_over(cudaError_t code, const char* call) {
        if (code == cudaErrorNotReady) {
            cudaGetLastError();
            return false;
        }
        if (auto done = check(code, call); !done) {
            return Failure{done.error()};
        }
        return true;
    }
    Result<void> select() const { return check(cudaSetDevice(index_), "cudaSetDevice"); }

    Result<void> transfer(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) const {
        if (auto done = select(); !done) {
            return done;
        }
        if (auto done = check(cudaMemcpyAsync(to, from, bytes, kind, streams_.front()), "cudaMemcpyAsync"); !done) {
            return done;
        }
        return check(cudaStreamSynchronize(streams_.front()), "cudaStreamSynchronize");
    }

    int index_;
    std::unique_ptr<Allocator> allocator_;
    std::string name_;
    int multiprocessors_ = 1;
    std::vector<cudaStream_t> streams_;
    cudaEvent_t event_ = nullptr;
    std::vector<cudaEvent_t> marks_;
    std::vector<cudaGraphExec_t> graphs_;
    std::vector<void*> memory_;
};

Result<std::unique_ptr<CudaDevice>> opened(int index, std::unique_ptr<Allocator> allocator) {
    auto device = std::make_unique<CudaDevice>(index, std::move(allocator));
    if (auto done = device->open(); !done) {
        return Failure{done.error()};
    }
    return device;
}

}  // namespace

std::unique_ptr<Allocator> plain_allocator() {
    return std::make_unique<PlainAllocator>();
}

Result<void> check(cudaError_t code, const char* call) {
    if (code == cudaSuccess) {
        return {};
    }
    cudaGetLastError();
    return fail(ErrorCode::kInfeasible,
                "transport",
                std::string{call} + ": " + cudaGetErrorName(code) + ", " + cudaGetErrorString(code));
}

Result<int> count_devices() {
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0) {
        cudaGetLastError();
        return fail(ErrorCode::kUnsupported,
                    "transport",
                    std::string{"there is no GPU that CUDA can use: "} +
                        (code == cudaSuccess ? "it counts none" : cudaGetErrorString(code)),
                    "--transport");
    }
    return count;
}

Result<std::unique_ptr<StreamDevice>> open_device(int index, std::unique_ptr<Allocator> allocator) {
    auto device = opened(index, std::move(allocator));
    if (!device) {
        return Failure{device.error()};
    }
    return std::unique_ptr<StreamDevice>{std::move(*device)};
}

}  // namespace refit::exec::cuda

namespace refit::exec {

Result<std::unique_ptr<Transport>> make_cuda_transport() {
    const auto count = cuda::count_devices();
    if (!count) {
        return Failure{count.error()};
    }
    std::vector<std::unique_ptr<Device>> devices;
    for (int index = 0; index < *count; ++index) {
        auto device = cuda::opened(index, cuda::plain_allocator());
        if (!device) {
            return Failure{device.error()};
        }
        for (int peer = 0; peer < *count; ++peer) {
            if (peer != index) {
                (*device)->reach(peer);
            }
        }
        devices.push_back(std::move(*device));
    }
    return make_device_transport(std::move(devices));
}

}  // namespace refit::exec
