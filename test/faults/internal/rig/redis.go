package rig

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Redis is one that a facade reaches through a door.
type Redis struct {
	Process *Process
	Door    *Door
	// URLFile is for --redis-url-file.
	URLFile string

	address string
}

func newRedis(ctx context.Context, binary, folder string) (*Redis, error) {
	address, err := localAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	r := &Redis{address: address, URLFile: filepath.Join(folder, "redis-url")}
	r.Process = NewProcess("redis", binary, filepath.Join(folder, "redis.log"), "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", folder)
	if err := r.Process.Start(); err != nil {
		return r, err
	}
	if r.Door, err = NewDoor("redis", address); err != nil {
		return r, err
	}
	if err := os.WriteFile(r.URLFile, []byte("redis://"+r.Door.Address), 0o600); err != nil {
		return r, err
	}
	return r, until(ctx, "Redis listens", func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
