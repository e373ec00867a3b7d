// The GPU's kernels on a CPU: what Python calls instead of launching a kernel. See cuda_on_cpu.h.
//
// KERNELS is the file of the kernels, EACH_KERNEL(DO) stands for DO(name) of each: nothing here knows their
// arguments. As a library it is called by Python; as a program it runs one launch, which is read from a file
// and written back to it, so that a sanitizer sees nothing else.
#include "cuda_on_cpu.h"
#include KERNELS

#include <cstdlib>
#include <fstream>
#include <memory>
#include <tuple>
#include <vector>

// Calls a kernel whose arguments lie in `slots` of eight bytes, pointers as well as numbers.
template <typename... Arguments>
std::function<void()> bound(void (*kernel)(Arguments...), const char* slots) {
    std::tuple<Arguments...> arguments;
    const auto read = [&](auto& argument) { std::memcpy(&argument, slots, sizeof argument), slots += 8; };
    std::apply([&](auto&... each) { (read(each), ...); }, arguments);
    return [=] { std::apply(kernel, arguments); };
}

extern "C" bool launch(const char* name, unsigned reversed, unsigned blocks, unsigned threads,
                       unsigned shared_bytes, const char* slots) {
    std::function<void()> body;
#define BIND(kernel) \
    if (std::string(name) == #kernel) body = bound(kernel, slots);
    EACH_KERNEL(BIND)
    emulation::reversed = reversed;
    return emulation::launch(blocks, threads, shared_bytes, body);
}

// Arguments: kernel, reversed (0 or 1), blocks, threads, shared bytes, file, and perhaps the file and line of
// a barrier to leave out. The file has for each argument the size of an array in 8 bytes and the array, or 0
// and 8 bytes with a number. Fails with 3 if the threads wait for one another for ever.
int main(int count, char** arguments) {
    if (count > 8) emulation::without_file = arguments[7], emulation::without_line = std::atoi(arguments[8]);
    std::fstream file(arguments[6], std::ios::in | std::ios::out | std::ios::binary);
    std::vector<std::unique_ptr<char[]>> arrays;  // each its own, so that an access beside it is seen
    std::vector<uint64_t> slots, sizes;
    uint64_t size, slot;
    while (file.read(reinterpret_cast<char*>(&size), 8)) {
        if (size > 0) {
            arrays.push_back(std::make_unique<char[]>(size));
            file.read(arrays.back().get(), size);
            slot = reinterpret_cast<uint64_t>(arrays.back().get());
        } else {
            file.read(reinterpret_cast<char*>(&slot), 8);
        }
        slots.push_back(slot);
        sizes.push_back(size);
    }
    const auto number = [&](int i) { return (unsigned)std::atoi(arguments[i]); };
    const char* packed = reinterpret_cast<const char*>(slots.data());
    if (!launch(arguments[1], number(2), number(3), number(4), number(5), packed)) std::_Exit(3);
    file.clear();
    file.seekp(0);
    for (size_t i = 0; i < sizes.size(); ++i) {
        file.seekp(8, std::ios::cur);
        if (sizes[i] == 0) file.seekp(8, std::ios::cur);
        else file.write(reinterpret_cast<const char*>(slots[i]), sizes[i]);
    }
    return 0;
}
