/* A server that gives back what it gets, a child process for each who calls; and who calls it.
 *
 *     echo                 prints a ticket, and serves until it is killed
 *     echo TICKET          sends its input there, and prints what comes back
 */
#include <errno.h>
#include <fairwave.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char *what)
{
    fprintf(stderr, "echo: %s: %s\n", what, g_strerror(errno));
    exit(1);
}

/* Sends all of it. */
static void send_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = g_send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent < 0)
            fail("send");
        bytes += sent;
        length -= (size_t)sent;
    }
}

static void serve_one(int fd)
{
    static char bytes[1 << 16];
    ssize_t got;

    while ((got = g_recv(fd, bytes, sizeof bytes, 0)) > 0)
        send_all(fd, bytes, (size_t)got);
    if (got < 0)
        fail("recv");
}

static void serve(void)
{
    char ticket[1024];
    socklen_t length = sizeof ticket;
    int listening = g_socket(AF_INET6, SOCK_STREAM, 0);

    if (listening < 0 || g_listen(listening, 16) < 0)
        fail("listen");
    if (g_getsockopt(listening, SOL_FAIRWAVE, FAIRWAVE_TICKET, ticket, &length) < 0)
        fail("ticket");
    puts(ticket);
    fflush(stdout);
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = g_accept(listening, NULL, NULL);
        if (fd < 0)
            fail("accept");
        /* The threads of the library are in this process: a child reads and writes what they move. */
        if (fork() == 0) {
            serve_one(fd);
            _exit(0);
        }
        g_close(fd);
    }
}

static void call(const char *ticket)
{
    static char bytes[1 << 16];
    int fd = g_socket(AF_INET6, SOCK_STREAM, 0);
    struct pollfd both[2] = {{.fd = 0, .events = POLLIN}, {.events = POLLIN}};
    ssize_t got;

    if (fd < 0 || g_setsockopt(fd, SOL_FAIRWAVE, FAIRWAVE_TICKET, ticket, (socklen_t)strlen(ticket)) < 0)
        fail("ticket");
    if (g_connect(fd, NULL, 0) < 0)
        fail("connect");
    both[1].fd = fd;
    for (;;) {
        if (g_poll(both, 2, -1) < 0)
            fail("poll");
        if (both[0].revents) {
            got = read(0, bytes, sizeof bytes);
            if (got > 0) {
                send_all(fd, bytes, (size_t)got);
            } else {
                /* No more input; what is on its way still comes back. */
                both[0].fd = -1;
                if (g_shutdown(fd, SHUT_WR) < 0)
                    fail("shutdown");
            }
        }
        if (both[1].revents) {
            got = g_recv(fd, bytes, sizeof bytes, 0);
            if (got < 0)
                fail("recv");
            if (got == 0)
                break;
            fwrite(bytes, 1, (size_t)got, stdout);
        }
    }
    g_close(fd);
}

int main(int argc, char **argv)
{
    if (argc == 1)
        serve();
    else
        call(argv[1]);
    return 0;
}
