// UDT 4: memory from one end to the other by one stream. The words are those of src/args.rs.
#include <arpa/inet.h>
#include <udt/udt.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using Clock = std::chrono::steady_clock;

namespace {

// What a stream may have under way: more than any path of the comparison holds.
const int WINDOW_BYTES = 64 << 20;
// Memory that is handed over at a time.
const int PIECE_BYTES = 1 << 20;

double seconds(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "peer-udt: %s\n", what.c_str());
    std::exit(1);
}

[[noreturn]] void fail_udt(const std::string& what) { fail(what + ": " + UDT::getlasterror().getErrorMessage()); }

struct Args {
    bool serves = false;
    std::string address;
    int mtu = 1500;
    double time_s = 8;
    double rate_bps = 0;
};

Args read(int count, char** words) {
    Args args;
    if (count < 2) fail("the first word is serve or send");
    args.serves = std::strcmp(words[1], "serve") == 0;
    if (!args.serves && std::strcmp(words[1], "send") != 0) fail("the first word is serve or send");
    for (int at = 2; at < count; at += 2) {
        const std::string name = words[at];
        if (at + 1 == count) fail(name + " is without a value");
        const std::string value = words[at + 1];
        if (name == "--address") args.address = value;
        else if (name == "--mtu") args.mtu = std::atoi(value.c_str());
        else if (name == "--time") args.time_s = std::atof(value.c_str());
        else if (name == "--rate") args.rate_bps = std::atof(value.c_str());
        else if (name != "--cert") fail(name + ": there is no such option");  // UDT has no certificates.
    }
    return args;
}

sockaddr_in address_of(const std::string& text) {
    const size_t colon = text.rfind(':');
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    if (colon == std::string::npos || inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1)
        fail("--address " + text + ": write 192.0.2.7:9000");
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(text.substr(colon + 1).c_str())));
    return address;
}

template <typename T>
void set(UDTSOCKET socket, UDT::SOCKOPT option, T value) {
    if (UDT::setsockopt(socket, 0, option, &value, sizeof value) == UDT::ERROR) fail_udt("an option");
}

UDTSOCKET open(const Args& args) {
    const UDTSOCKET socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
    set(socket, UDT_MSS, args.mtu);
    set(socket, UDT_FC, WINDOW_BYTES / args.mtu);
    set(socket, UDT_SNDBUF, WINDOW_BYTES);
    set(socket, UDT_RCVBUF, WINDOW_BYTES);
    // The connection ends with the time: nothing is waited for.
    set(socket, UDT_LINGER, linger{0, 0});
    return socket;
}

void serve(const Args& args) {
    const sockaddr_in address = address_of(args.address);
    const UDTSOCKET listener = open(args);
    if (UDT::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == UDT::ERROR) fail_udt("bind");
    if (UDT::listen(listener, 1) == UDT::ERROR) fail_udt("listen");
    const UDTSOCKET socket = UDT::accept(listener, nullptr, nullptr);
    if (socket == UDT::INVALID_SOCK) fail_udt("accept");
    std::vector<char> piece(PIECE_BYTES);
    unsigned long long bytes = 0;
    Clock::time_point first, last;
    // The other end closes the connection when its time is over.
    for (int got; (got = UDT::recv(socket, piece.data(), PIECE_BYTES, 0)) > 0; bytes += got) {
        last = Clock::now();
        if (bytes == 0) first = last;
    }
    std::printf("{\"bytes\":%llu,\"seconds\":%.9f}\n", bytes, seconds(first, last));
}

void send(const Args& args) {
    const sockaddr_in address = address_of(args.address);
    const UDTSOCKET socket = open(args);
    if (UDT::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == UDT::ERROR)
        fail_udt("connect");
    // At a rate, what it sends in a millisecond or so.
    const int size = args.rate_bps > 0 ? std::clamp(static_cast<int>(args.rate_bps / 8e3), 1500, PIECE_BYTES) : PIECE_BYTES;
    const std::vector<char> piece(size);
    const Clock::time_point begin = Clock::now();
    double sent_bytes = 0;
    for (double elapsed_s = 0; elapsed_s < args.time_s; elapsed_s = seconds(begin, Clock::now())) {
        const double due_s = args.rate_bps > 0 ? sent_bytes * 8 / args.rate_bps : 0;
        if (due_s > elapsed_s) usleep(static_cast<useconds_t>((due_s - elapsed_s) * 1e6));
        for (int done = 0; done < size;) {
            const int sent = UDT::send(socket, piece.data() + done, size - done, 0);
            if (sent == UDT::ERROR) fail_udt("send");
            done += sent;
        }
        sent_bytes += size;
    }
    UDT::close(socket);
}

}  // namespace

int main(int count, char** words) {
    const Args args = read(count, words);
    UDT::startup();
    args.serves ? serve(args) : send(args);
    std::fflush(stdout);
    UDT::cleanup();
}
