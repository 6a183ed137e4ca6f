package apiserver

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

type connectionKey struct{}

// withConnection stores a connection in the context for reset, and lets the system close it if its client is lost.
func withConnection(ctx context.Context, connection net.Conn) context.Context {
	closeLost(connection, lostAfter)
	return context.WithValue(ctx, connectionKey{}, connection)
}

// reset aborts the connection of a request in a way that cannot be mistaken for a complete response. With HTTP/1.0,
// which proxies use, a normal close would mark the end of the body.
func reset(r *http.Request) {
	connection, _ := r.Context().Value(connectionKey{}).(net.Conn)
	if encrypted, is := connection.(*tls.Conn); is {
		connection = encrypted.NetConn()
	}
	if tcp, is := connection.(interface{ SetLinger(seconds int) error }); is {
		_ = tcp.SetLinger(0)
		_ = connection.Close()
	}
}
