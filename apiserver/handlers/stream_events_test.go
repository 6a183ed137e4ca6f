package handlers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/changes"
	"github.com/appsec-dev/findings-operator/apiserver/cursor"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A stream may last longer than the keys with which it began.
func TestAnIDOutlivesTheKeysOfItsStreamsBeginning(t *testing.T) {
	folder := t.TempDir()
	key := func(name string) {
		harness.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(strings.Repeat(name, 32)), 0o600))
	}
	key("1")
	codec, err := cursor.Load(folder)
	harness.Must(t, err)
	stream := (&Backend{Cursors: codec}).places("acme")
	at := changes.Position{1, 2, 3, 4, 5}
	before := stream.write(at)
	for _, name := range []string{"2", "3"} {
		key(name)
		_, err = codec.Reload()
		harness.Must(t, err)
	}
	restarted, err := cursor.Load(folder)
	harness.Must(t, err)
	resumed := (&Backend{Cursors: restarted}).places("acme")
	if got, ok := resumed.read(stream.write(at)); !ok || got != at {
		t.Errorf("an id from after the rotations is read as %v, %t", got, ok)
	}
	if _, ok := resumed.read(before); ok {
		t.Error("an id of a key that is gone is read")
	}
}
