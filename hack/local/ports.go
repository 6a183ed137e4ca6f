package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// loopback is the only address that anything here listens on.
const loopback = "127.0.0.1"

// checkPort reports early, with a clear message, that the REST API's port is taken.
func checkPort(ctx context.Context, port int) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address(port))
	if err != nil {
		return fmt.Errorf("port %d cannot be used (%w): stop what listens there, or give another: PORT=%d make run", port,
			err, port+1)
	}
	return listener.Close()
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
