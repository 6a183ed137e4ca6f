package apiserver

import (
	"crypto/tls"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// closeLost makes the system close a connection whose peer has acknowledged nothing for that long. By default it
// resends for a quarter of an hour, during which the stream of a client that vanished keeps its place. Errors are
// ignored, and leave the default.
func closeLost(connection net.Conn, after time.Duration) {
	if encrypted, is := connection.(*tls.Conn); is {
		connection = encrypted.NetConn()
	}
	socket, is := connection.(syscall.Conn)
	if !is {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
	})
}
