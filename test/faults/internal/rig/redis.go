package rig

import (
	"context"
	"os"
	"path/filepath"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Redis is a Redis that a facade reaches through a door.
type Redis struct {
	Process *harness.Process
	Door    *Door
	// URLFile is the value of --redis-url-file.
	URLFile string
}

func newRedis(ctx context.Context, binary, folder string) (*Redis, error) {
	process, address, err := harness.StartRedis(ctx, folder, binary)
	if err != nil {
		return nil, err
	}
	r := &Redis{Process: process, URLFile: filepath.Join(folder, "redis-url")}
	if r.Door, err = NewDoor("redis", address); err != nil {
		return r, err
	}
	return r, os.WriteFile(r.URLFile, []byte("redis://"+r.Door.Address), 0o600)
}
