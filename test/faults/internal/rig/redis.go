package rig

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Redis is a Redis that a facade reaches through a door.
type Redis struct {
	Process *harness.Process
	Door    *Door
	// URLFile is the value of --redis-url-file.
	URLFile string

	address string
}

func newRedis(ctx context.Context, binary, folder string) (*Redis, error) {
	addresses, err := harness.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	address := addresses[0]
	_, port, _ := net.SplitHostPort(address)
	r := &Redis{address: address, URLFile: filepath.Join(folder, "redis-url")}
	r.Process = harness.NewProcess(folder, "redis", binary, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir",
		folder)
	if err := r.Process.Start(); err != nil {
		return r, err
	}
	if r.Door, err = NewDoor("redis", address); err != nil {
		return r, err
	}
	if err := os.WriteFile(r.URLFile, []byte("redis://"+r.Door.Address), 0o600); err != nil {
		return r, err
	}
	return r, harness.Until(ctx, "Redis listens", func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
