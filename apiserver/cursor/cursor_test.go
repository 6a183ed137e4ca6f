package cursor

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/test/harness"
)

var list = List{
	Organization: "acme", Endpoint: "v1/findings", Sort: "created_at", Order: "desc",
	Filters: map[string]string{"status": "open", "class": "CWE-89"},
}

func encode(t harness.T, c *Codec, list List, position Position) string {
	token, err := c.Encode(list, position)
	harness.Must(t, err)
	return token
}

func TestACursorIsReadAsItWasMade(t *testing.T) {
	c := NewRandom()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 300, 1500)
		list := List{
			Organization: text.Draw(t, "organization"), Endpoint: text.Draw(t, "endpoint"),
			Sort: text.Draw(t, "sort"), Order: text.Draw(t, "order"),
			Filters: rapid.MapOfN(rapid.StringN(1, 9, 9), text, 0, 3).Draw(t, "filters"),
		}
		position := Position{Value: text.Draw(t, "value"), ID: text.Draw(t, "id")}
		token := encode(t, c, list, position)
		if len(token) > MaxLength {
			t.Fatalf("the cursor has %d bytes", len(token))
		}
		if strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Fatalf("the cursor %q needs escapes in a URL", token)
		}
		if got, err := c.Decode(list, token); err != nil || got != position {
			t.Fatalf("got %+v, %v; want %+v", got, err, position)
		}
	})
}

func TestAPositionThatIsTooLongHasNoCursor(t *testing.T) {
	if _, err := NewRandom().Encode(list, Position{Value: strings.Repeat("x", maxText), ID: "y"}); err == nil {
		t.Error("no error")
	}
}

func TestCursorHoldsForItsListAlone(t *testing.T) {
	c := NewRandom()
	position := Position{Value: "2026-03-01T12:00:00Z", ID: "f-1"}
	token := encode(t, c, list, position)
	cases := []struct {
		reason string
		change func(*List)
	}{
		{"another organization", func(l *List) { l.Organization = "other" }},
		{"another endpoint", func(l *List) { l.Endpoint = "v2/findings" }},
		{"another sort", func(l *List) { l.Sort = "updated_at" }},
		{"another order", func(l *List) { l.Order = "asc" }},
		{"a filter with another value", func(l *List) { l.Filters["status"] = "closed" }},
		{"one filter more", func(l *List) { l.Filters["severity"] = "" }},
		{"one filter less", func(l *List) { delete(l.Filters, "class") }},
		{"values that changed places", func(l *List) { l.Filters["status"], l.Filters["class"] = "CWE-89", "open" }},
		{"texts that run into each other", func(l *List) { l.Organization, l.Endpoint = "acmev1", "/findings" }},
	}
	for _, tc := range cases {
		other := list
		other.Filters = maps.Clone(list.Filters)
		tc.change(&other)
		if _, err := c.Decode(other, token); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v", tc.reason, err)
		}
	}
	if _, err := NewRandom().Decode(list, token); !errors.Is(err, ErrInvalid) {
		t.Errorf("another process's key: got %v", err)
	}
}

func TestEveryChangeOfACursorIsNoticed(t *testing.T) {
	c := NewRandom()
	token := encode(t, c, list, Position{Value: "2026-03-01T12:00:00Z", ID: "f-1"})
	content, err := encoding.DecodeString(token)
	harness.Must(t, err)
	for i := range content {
		for bit := range 8 {
			changed := bytes.Clone(content)
			changed[i] ^= 1 << bit
			if _, err := c.Decode(list, encoding.EncodeToString(changed)); !errors.Is(err, ErrInvalid) {
				t.Fatalf("bit %d of byte %d: got %v", bit, i, err)
			}
		}
	}
	for _, changed := range []string{
		"", "A", token[1:], token[:len(token)-1], token + "A", token + "=", token + "\n", " " + token,
		strings.Repeat("A", MaxLength), strings.Repeat("A", MaxLength+1),
	} {
		if _, err := c.Decode(list, changed); !errors.Is(err, ErrInvalid) {
			t.Errorf("%.40q: got %v", changed, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	// A fixed key for all processes: otherwise a cursor found by one process would be invalid in all others.
	c := &Codec{}
	c.keys.Store(&[][]byte{make([]byte, minKeySize)})
	// One of each length at which bits of the last character may be left over.
	for _, id := range []string{"f-1", "f-12", "f-123"} {
		token := encode(f, c, list, Position{Value: "2026-03-01T12:00:00Z", ID: id})
		short, last := token[:len(token)-1], token[len(token)-1]
		for _, seed := range []string{token, short, short + string(last+1), token + "=", token[:9] + "\n" + token[9:]} {
			f.Add(seed)
		}
	}
	f.Add("AQA")
	f.Fuzz(func(t *testing.T, input string) {
		position, err := c.Decode(list, input)
		if err == nil && encode(t, c, list, position) != input {
			t.Errorf("%q was not made by Encode", input)
		}
		if err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
}

func writeKey(t *testing.T, folder, name string, fill byte) {
	t.Helper()
	harness.Must(t, os.WriteFile(filepath.Join(folder, name), bytes.Repeat([]byte{fill}, minKeySize), 0o600))
}

func TestTheTwoNewestKeysVerifyAndTheNewestSigns(t *testing.T) {
	folder := t.TempDir()
	writeKey(t, folder, "2026-01", 1)
	replica, err := Load(folder)
	harness.Must(t, err)
	position := Position{Value: "v", ID: "i"}
	first := encode(t, replica, list, position)
	valid := func(reason, token string, want bool) {
		t.Helper()
		if _, err := replica.Decode(list, token); (err == nil) != want {
			t.Errorf("%s: got %v", reason, err)
		}
	}
	reload := func() {
		t.Helper()
		if changed, err := replica.Reload(); err != nil || !changed {
			t.Fatalf("got %t, %v", changed, err)
		}
	}

	writeKey(t, folder, "2026-02", 2)
	reload()
	valid("the key before still verifies", first, true)
	second := encode(t, replica, list, position)
	if second == first {
		t.Error("the newest key does not sign")
	}

	writeKey(t, folder, "2026-03", 3)
	reload()
	third := encode(t, replica, list, position)
	valid("of three keys the two newest verify", second, true)
	valid("of three keys the oldest does not verify", first, false)

	if changed, err := replica.Reload(); changed || err != nil {
		t.Errorf("nothing has changed: got %t, %v", changed, err)
	}
	harness.Must(t, os.WriteFile(filepath.Join(folder, "2026-04"), []byte("short"), 0o600))
	_, err = replica.Reload()
	harness.ErrorContains(t, "a short key", err, "2026-04")
	valid("a file that is no key leaves the keys as they were", second, true)
	if replica, err = Load(folder); err != nil {
		t.Fatalf("a replica that starts does not use the older keys: %v", err)
	}
	valid("a replica that starts passes over a file that is no key", second, true)
	writeKey(t, folder, "2026-05", 5)
	reloaded, err := replica.Reload()
	if !reloaded || err == nil || encode(t, replica, list, position) == third {
		t.Errorf("a newer key is not used because of the file before it: got %t, %v", reloaded, err)
	}
}

func TestANewKeyIsReadWithoutARestart(t *testing.T) {
	g := gomega.NewWithT(t)
	folder := t.TempDir()
	writeKey(t, folder, "1", 1)
	replica, err := Load(folder)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		replica.Run(ctx, time.Millisecond, logr.Discard())
	}()
	before := encode(t, replica, list, Position{})
	writeKey(t, folder, "2", 2)
	g.Eventually(func() string { return encode(t, replica, list, Position{}) }, "10s").ShouldNot(gomega.Equal(before))
	cancel()
	g.Eventually(done, "10s").Should(gomega.BeClosed())
}

// A mounted Secret is a folder of links into a hidden folder that is replaced as a whole.
func TestTheKeysOfAMountedSecretAreRead(t *testing.T) {
	folder := t.TempDir()
	harness.Must(t, os.Mkdir(filepath.Join(folder, "..2026"), 0o700))
	writeKey(t, filepath.Join(folder, "..2026"), "key", 1)
	for link, target := range map[string]string{"..data": "..2026", "key": "..data/key"} {
		harness.Must(t, os.Symlink(target, filepath.Join(folder, link)))
	}
	c, err := Load(folder)
	if err != nil || len(c.verifying()) != 1 {
		t.Fatalf("got %v", err)
	}
}

func TestAFolderWithoutAGoodKeyIsRefused(t *testing.T) {
	cases := []struct {
		reason string
		files  map[string]int
		want   string
	}{
		{"a folder without a key", nil, "no cursor key"},
		{"hidden files are no keys", map[string]int{".key": 32}, "no cursor key"},
		{"a key that can be guessed", map[string]int{"key": 31}, "31 bytes"},
		{"a file that is no key", map[string]int{"key": maxKeySize + 1}, "needs 32 to 4096"},
	}
	for _, c := range cases {
		folder := t.TempDir()
		for name, size := range c.files {
			harness.Must(t, os.WriteFile(filepath.Join(folder, name), make([]byte, size), 0o600))
		}
		_, err := Load(folder)
		harness.ErrorContains(t, c.reason, err, c.want)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is not there: no error")
	}
}
