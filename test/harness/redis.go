package harness

import (
	"context"
	"net"
	"time"
)

// NewRedis describes a Redis that listens on the address of this machine and stores nothing, without starting it.
func NewRedis(folder, binary, address string, flags ...string) *Process {
	_, port, _ := net.SplitHostPort(address)
	own := []string{"--port", port, "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"}
	return NewProcess(folder, "redis", binary, append(own, flags...)...)
}

// StartRedis starts a Redis on a free address, and returns once it listens.
func StartRedis(ctx context.Context, folder, binary string) (redis *Process, address string, err error) {
	addresses, err := FreeAddresses(1)
	if err != nil {
		return nil, "", err
	}
	address = addresses[0]
	redis = NewRedis(folder, binary, address)
	if err := redis.Start(); err != nil {
		return nil, "", err
	}
	err = Until(ctx, "Redis listens", func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		redis.Kill()
		return nil, "", err
	}
	return redis, address, nil
}
