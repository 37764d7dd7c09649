/* One loop for sockets of both kinds: it listens over Fairwave and over TCP, and gives everybody back what he sends.
 *
 *     epoll                prints a ticket and a TCP port, and serves until it is killed
 */
#include <errno.h>
#include <fairwave.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { MOST = 4096 };

static void fail(const char *what)
{
    fprintf(stderr, "epoll: %s: %s\n", what, g_strerror(errno));
    exit(1);
}

static void watch(int set, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0)
        fail("epoll_ctl");
}

/* The calls of the library take descriptors of both kinds. */
static void echo(int fd)
{
    static char bytes[1 << 16];
    ssize_t got = g_recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0 || g_send(fd, bytes, (size_t)got, MSG_NOSIGNAL) != got)
        g_close(fd);
}

int main(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};
    socklen_t length = sizeof address;
    char ticket[1024];
    socklen_t room = sizeof ticket;
    struct epoll_event events[64];
    int set = epoll_create1(EPOLL_CLOEXEC);
    int tcp = socket(AF_INET6, SOCK_STREAM, 0);
    int fair = g_socket(AF_INET6, SOCK_STREAM, 0);

    if (set < 0 || tcp < 0 || fair < 0)
        fail("socket");
    if (listen(tcp, MOST) < 0 || getsockname(tcp, (struct sockaddr *)&address, &length) < 0)
        fail("listen");
    if (g_listen(fair, MOST) < 0 || g_getsockopt(fair, SOL_FAIRWAVE, FAIRWAVE_TICKET, ticket, &room) < 0)
        fail("listen");
    printf("%s\n%d\n", ticket, ntohs(address.sin6_port));
    fflush(stdout);
    watch(set, tcp);
    watch(set, fair);
    for (;;) {
        int count = epoll_wait(set, events, 64, -1);
        if (count < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int at = 0; at < count; at++) {
            int fd = events[at].data.fd;
            if (fd == tcp || fd == fair) {
                int came = fd == tcp ? accept(fd, NULL, NULL) : g_accept(fd, NULL, NULL);
                if (came >= 0)
                    watch(set, came);
            } else {
                echo(fd);
            }
        }
    }
}
