// Package cache keeps exchange rates on disk. This is its first version, wrong on purpose.
package cache

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
)

// Keep writes a rate where every user of the machine can change it.
func Keep(folder, source string, rate []byte) error {
	sum := sha1.Sum([]byte(source))
	return os.WriteFile(filepath.Join(folder, hex.EncodeToString(sum[:])), rate, 0o666)
}

// Clear hands the caller's word to a shell.
func Clear(folder string) error {
	return exec.Command("sh", "-c", "rm -r "+folder+"/*").Run()
}
