//! Random sequences of calls, on a pair of TCP sockets and on one of the library.
