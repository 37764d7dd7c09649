/* libfairwave: sockets over Fairwave. The calls match their POSIX namesakes; differences: docs/reference/c.md. */
#ifndef FAIRWAVE_H
#define FAIRWAVE_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Level of the options below. */
#define SOL_FAIRWAVE 0x4657

/* char[], null-terminated: the ticket that grants access. Set before g_connect, read after g_listen. */
#define FAIRWAVE_TICKET 1
/* double, 1e-6 to 1e6, default 1: weight of a connection relative to others. Set before g_connect or g_listen. */
#define FAIRWAVE_WEIGHT 2
/* uint64_t, bit/s, 0 for none: minimum rate, if the node rule supports one. Set before g_connect or g_listen. */
#define FAIRWAVE_MINIMUM 3
/* uint64_t, bit/s of IP packets, 0 for no limit: maximum send rate of this end. Set at any time. */
#define FAIRWAVE_DESIRED 4
/* int, FAIRWAVE_PATH_...: kind of the path, dedicated only if both ends set it. Set before g_bind. */
#define FAIRWAVE_PATH 5
#define FAIRWAVE_PATH_SHARED 0
#define FAIRWAVE_PATH_DEDICATED 1
/* int: whether data is sent unencrypted. Both ends must set it, before g_bind. */
#define FAIRWAVE_PLAIN 6
/* uint64_t, bytes, 64 KiB to 1 GiB, default 4 MiB: data requested ahead of what the program has read. It bounds the
   memory of a connection, and its rate to this amount per round trip. Set before g_connect or g_listen. */
#define FAIRWAVE_AHEAD 7
/* uint64_t, bit/s, 0 for the speed of the network card: capacity of this host. Set before g_bind. */
#define FAIRWAVE_CAPACITY 8
/* struct fairwave_stats, read-only. */
#define FAIRWAVE_STATS 9
/* char[], read-only: what has limited the connection since the last query, such as "path" or "peer node". */
#define FAIRWAVE_LIMITED_BY 10

/* Counters of a connection. Later versions append fields. */
struct fairwave_stats {
    uint64_t size;                 /* bytes of this structure that the library fills */
    uint64_t written_bytes;        /* written by the program */
    uint64_t written_taken_bytes;  /* of those, acknowledged as read by the peer */
    uint64_t came_bytes;           /* received in order for the program */
    uint64_t came_taken_bytes;     /* of those, read by the program or moved into its descriptor */
    uint64_t sent_packets;         /* data packets */
    uint64_t lost_packets;         /* of the data packets sent */
    uint64_t sent_wire_bytes;      /* including IP headers */
    uint64_t received_packets;
    uint64_t received_wire_bytes;
    uint64_t rtt_us;               /* smoothed; 0 if unknown */
    uint64_t expected_send_bps;    /* granted to this end; 0 if the capacity is unknown */
    uint64_t expected_receive_bps; /* granted by this end; 0 if the capacity is unknown */
};

int g_socket(int domain, int type, int protocol);
int g_bind(int fd, const struct sockaddr *address, socklen_t length);
int g_listen(int fd, int backlog);
int g_accept(int fd, struct sockaddr *address, socklen_t *length);
int g_connect(int fd, const struct sockaddr *address, socklen_t length);
ssize_t g_send(int fd, const void *bytes, size_t length, int flags);
ssize_t g_recv(int fd, void *room, size_t length, int flags);
ssize_t g_sendfile(int fd, int file, off_t *offset, size_t count);
int g_getsockopt(int fd, int level, int option, void *value, socklen_t *length);
int g_setsockopt(int fd, int level, int option, const void *value, socklen_t length);
int g_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int g_getpeername(int fd, struct sockaddr *address, socklen_t *length);
int g_poll(struct pollfd *descriptors, nfds_t count, int timeout_ms);
int g_shutdown(int fd, int how);
int g_close(int fd);
const char *g_strerror(int error);
const char *g_version(void);

#ifdef __cplusplus
}
#endif

#endif
