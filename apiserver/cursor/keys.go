package cursor

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
)

const (
	// minKeySize and maxKeySize bound a key, in bytes.
	minKeySize = 32
	maxKeySize = 4096
	// keysVerifying is how many of the newest keys verify. Only the newest signs.
	keysVerifying = 2
)

// NewRandom returns a codec with a random key: its cursors end with the process, and other replicas cannot read
// them.
func NewRandom() *Codec {
	key := make([]byte, minKeySize)
	rand.Read(key) //nolint:errcheck // never fails: it ends the process instead
	c := &Codec{}
	c.keys.Store(&[][]byte{key})
	return c
}

// Load returns a codec with the keys of a folder, usually a mounted Secret: each file is a key of 32 to 4096 random
// bytes. The file whose name sorts last is the newest key and signs; it and the one before it verify. To rotate, add a
// file whose name sorts after the others, and remove the oldest once its cursors may become invalid. Files whose names
// start with a dot are ignored. Load skips an invalid file, and Run logs it; the error is for a folder without a key.
func Load(folder string) (*Codec, error) {
	keys, err := readKeys(folder)
	if len(keys) == 0 {
		return nil, err
	}
	c := &Codec{folder: folder}
	c.keys.Store(&keys)
	return c, nil
}

// Run reads the folder at once and every interval until ctx ends, and logs invalid files. If there is no key at all,
// the keys stay. Run returns at once for a random key.
func (c *Codec) Run(ctx context.Context, interval time.Duration, log logr.Logger) {
	if c.folder == "" {
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		changed, err := c.Reload()
		if err != nil {
			log.Error(err, "Cursor keys cannot be used; the others, or those read before, stay in use")
		}
		if changed {
			log.Info("Read new cursor keys", "folder", c.folder)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Reload reads the folder given to Load again, and reports whether the keys have changed. The error names what was
// skipped.
func (c *Codec) Reload() (changed bool, err error) {
	keys, err := readKeys(c.folder)
	if len(keys) == 0 {
		return false, err
	}
	before := c.keys.Swap(&keys)
	return !slices.EqualFunc(*before, keys, bytes.Equal), err
}

// verifying returns the keys that verify, the newest first, which signs.
func (c *Codec) verifying() [][]byte { return *c.keys.Load() }

// readKeys returns the newest keys, and an error about newer files that are invalid: a replica that starts must accept
// the same keys as those that run. Without a key it returns an error.
func readKeys(folder string) ([][]byte, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the cursor keys: %w", err)
	}
	var keys [][]byte
	var unusable []error
	for _, entry := range slices.Backward(entries) {
		// A mounted Secret holds its real files in hidden folders, with links to them.
		if strings.HasPrefix(entry.Name(), ".") || entry.IsDir() {
			continue
		}
		key, err := readKey(filepath.Join(folder, entry.Name()))
		if err != nil {
			unusable = append(unusable, err)
			continue
		}
		if keys = append(keys, key); len(keys) == keysVerifying {
			break
		}
	}
	if len(keys) == 0 && len(unusable) == 0 {
		return nil, fmt.Errorf("the folder %s holds no cursor key: put a file of %d random bytes there", folder, minKeySize)
	}
	return keys, errors.Join(unusable...)
}

func readKey(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the operator names the folder
	if err != nil {
		return nil, fmt.Errorf("read a cursor key: %w", err)
	}
	key, err := io.ReadAll(io.LimitReader(file, maxKeySize+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read a cursor key: %w", err)
	}
	if len(key) < minKeySize || len(key) > maxKeySize {
		return nil, fmt.Errorf("the cursor key %s has %d bytes: it needs %d to %d", path, len(key), minKeySize, maxKeySize)
	}
	// HMAC would take any length; hashing to a fixed length keeps the cost of signing constant.
	sum := sha256.Sum256(key)
	return sum[:], nil
}

// Derive returns keys of 32 bytes for another purpose, one per verifying key, the newest first. They reveal
// nothing about the cursors' keys. They change with Reload, so do not keep them.
func (c *Codec) Derive(purpose string) [][]byte {
	keys := c.verifying()
	derived := make([][]byte, len(keys))
	for i, key := range keys {
		var err error
		if derived[i], err = hkdf.Key(sha256.New, key, nil, purpose, sha256.Size); err != nil {
			panic(err) // the length is allowed
		}
	}
	return derived
}
