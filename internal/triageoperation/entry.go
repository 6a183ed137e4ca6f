// Package triageoperation holds the rules of operations over many findings: what is kept of each finding, what an
// operation decides about it when its turn comes, and what an undo gives back. It is pure.
package triageoperation

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Entry is a finding of an operation's set, as it was when the set was made.
type Entry struct {
	Finding v1alpha1.ResourceName `json:"finding"`
	// Digest of the decision that it had.
	Digest string `json:"digest"`
	// Generation of the finding: each change of its spec moves it, that of a scan too.
	Generation int64 `json:"generation,omitempty"`
	// Facts that a decision made then rests on.
	Facts string `json:"facts,omitempty"`
	// Before is the decision that it had; nil: none.
	Before *v1alpha1.FindingTriage `json:"before,omitempty"`
	// Set is the decision that an undo gives back; nil otherwise.
	Set *v1alpha1.FindingTriage `json:"set,omitempty"`
	// Lost says that there was no room for Before.
	Lost bool `json:"lost,omitempty"`
	// Unknown says that an undo does not know what to restore: the operation that it undoes had no room for it.
	Unknown bool `json:"unknown,omitempty"`
}

// NewEntry returns the finding's.
func NewEntry(finding *v1alpha1.Finding) Entry {
	entry := Entry{
		Finding: v1alpha1.ResourceName(finding.Name), Generation: finding.Generation,
		Digest: Digest(&finding.Spec.Triage), Facts: findingstate.Basis(&finding.Spec),
	}
	if finding.Spec.Triage != (v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}) {
		entry.Before = finding.Spec.Triage.DeepCopy()
	}
	return entry
}

// Digest stands for a decision and its author. A resource version would not do: each write of the status moves it.
func Digest(triage *v1alpha1.FindingTriage) string {
	text, err := json.Marshal(triage)
	if err != nil {
		panic(fmt.Sprintf("encode a decision: %v", err)) // it has come out of JSON
	}
	sum := sha256.Sum256(text)
	return base64.RawStdEncoding.EncodeToString(sum[:16])
}

// before is the decision that the finding had.
func (e *Entry) before() v1alpha1.FindingTriage {
	if e.Before == nil {
		return v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}
	}
	return *e.Before
}

// maxPartBytes bounds the text of a part before it is compressed, so that reading a forged one costs little.
const maxPartBytes = 16 << 20

// Encode returns the entries as a part holds them.
func Encode(entries []Entry) (string, error) {
	var text bytes.Buffer
	compressed := gzip.NewWriter(&text)
	lines := json.NewEncoder(compressed)
	lines.SetEscapeHTML(false)
	for i := range entries {
		if err := lines.Encode(&entries[i]); err != nil {
			return "", fmt.Errorf("encode the entry of finding %s: %w", entries[i].Finding, err)
		}
	}
	if err := compressed.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(text.Bytes()), nil
}

// Decode reads what Encode has made.
func Decode(part *v1alpha1.TriageOperationPart) ([]Entry, error) {
	entries, err := decode(part.Spec.Entries)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read part %s: %w", part.Name, err)
	case len(entries) != int(part.Spec.Count):
		return nil, fmt.Errorf("read part %s: it holds %d findings and says %d", part.Name, len(entries), part.Spec.Count)
	}
	return entries, nil
}

func decode(text string) (entries []Entry, err error) {
	compressed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		return nil, err
	}
	lines := json.NewDecoder(io.LimitReader(compressed, maxPartBytes))
	for {
		var entry Entry
		switch err := lines.Decode(&entry); {
		case errors.Is(err, io.EOF):
			return entries, nil
		case err != nil:
			return nil, err
		case len(entries) == v1alpha1.MaxPartEntries:
			return nil, errors.New("too many findings")
		}
		entries = append(entries, entry)
	}
}
