// Package triageoperation holds the rules of operations over many findings: what is recorded for each finding,
// what an operation decides about it, and what an undo restores. It is pure.
package triageoperation

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Entry is a finding of an operation's set, as it was when the set was made, unless a field says otherwise.
type Entry struct {
	Finding v1alpha1.ResourceName `json:"finding"`
	// Absent means that it did not exist, or could not be read.
	Absent bool `json:"absent,omitempty"`
	// Digest of the decision about it. Empty if the operation must leave it as it is.
	Digest string `json:"digest"`
	// Generation of the finding, which changes with every write of its spec, including those of scans. Once the operation
	// has decided, it is the one that the decision is based on, if known. For an undo that has not decided, if another
	// problem may have the finding's name by now, it is the one that the undone operation left.
	Generation int64 `json:"generation,omitempty"`
	// Facts is the basis of a decision made at that time.
	Facts string `json:"facts,omitempty"`
	// Before is the previous decision about it; nil if there was none.
	Before *v1alpha1.FindingTriage `json:"before,omitempty"`
	// Basis is the basis of the previous decision, if Before does not declare all of it: otherwise an undo would base the
	// decision on the facts at that time. Earlier versions kept none.
	Basis string `json:"basis,omitempty"`
	// Set is the decision that an undo restores; nil for other operations.
	Set *v1alpha1.FindingTriage `json:"set,omitempty"`
	// Lost means that there was no room for Before.
	Lost bool `json:"lost,omitempty"`
	// Unknown means that an undo cannot restore the decision: the undone operation had no room for it.
	Unknown bool `json:"unknown,omitempty"`
}

// NewEntry returns the entry of a finding.
func NewEntry(finding *v1alpha1.Finding) Entry {
	entry := Entry{
		Finding: v1alpha1.ResourceName(finding.Name), Generation: finding.Generation,
		Digest: Digest(&finding.Spec.Triage), Facts: findingstate.Basis(&finding.Spec), Basis: undeclared(finding),
	}
	if finding.Spec.Triage != (v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}) {
		entry.Before = finding.Spec.Triage.DeepCopy()
	}
	return entry
}

// Absent returns the entry of a finding that does not exist, or cannot be read. The operation leaves it as it is even
// if it is created or repaired later.
func Absent(finding v1alpha1.ResourceName) Entry { return Entry{Finding: finding, Absent: true} }

// undeclared returns the basis of the decision about the finding; "" if the decision declares all of it.
func undeclared(finding *v1alpha1.Finding) string {
	if basis := findingstate.RestsOn(finding); basis != finding.Spec.Triage.Basis {
		return basis
	}
	return ""
}

// Select returns the entry of a finding that the operation selects. An operation that is already committed may have
// waited for its turn. If a user has decided about the finding in that time, the entry has no digest, so that Plan
// leaves the decision alone.
func Select(operation *v1alpha1.TriageOperation, finding *v1alpha1.Finding, now time.Time) Entry {
	if operation.Spec.Commit && decidedSince(finding, operation.CreationTimestamp.Time, now) {
		return Entry{Finding: v1alpha1.ResourceName(finding.Name)}
	}
	return NewEntry(finding)
}

// decidedSince reports whether somebody has, or may have, decided about the finding in a later second than the given
// one: the time of a decision that is not recorded yet is that of the last write. Decisions of operations do not count:
// those that decided meanwhile were created earlier, and when a preview was committed is not recorded.
func decidedSince(finding *v1alpha1.Finding, second, now time.Time) bool {
	if findingstate.DecisionWaits(finding) && !isAuthor(finding.Spec.Triage.By) &&
		findingstate.UpdatedAt(finding, now).After(second) {
		return true
	}
	return slices.ContainsFunc(finding.Status.Transitions, func(t v1alpha1.Transition) bool {
		return t.Type == v1alpha1.TransitionTriaged && !isAuthor(t.By) && t.At.After(second)
	})
}

// isAuthor reports whether an operation has decided.
func isAuthor(by string) bool { return strings.HasPrefix(by, v1alpha1.OperationAuthorPrefix) }

// Digest returns a digest of a decision and its author. The resource version would not do, because it changes with each
// write of the status.
func Digest(triage *v1alpha1.FindingTriage) string {
	text, err := json.Marshal(triage)
	if err != nil {
		panic(fmt.Sprintf("encode a decision: %v", err)) // it was decoded from JSON
	}
	sum := sha256.Sum256(text)
	return base64.RawStdEncoding.EncodeToString(sum[:16])
}

// before returns the finding's previous decision, with its complete basis.
func (e *Entry) before() v1alpha1.FindingTriage {
	if e.Before == nil {
		return v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}
	}
	before := *e.Before
	before.Basis = cmp.Or(e.Basis, before.Basis)
	return before
}

// maxPartBytes bounds the uncompressed text of a part, so that reading a forged part is cheap.
const maxPartBytes = 16 << 20

// Encode returns the entries in the format of a part; fits reports whether the text, packed and unpacked, is within the
// bounds of a part.
func Encode(entries []Entry) (text string, fits bool, err error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	var size counter
	lines := json.NewEncoder(io.MultiWriter(compressed, &size))
	lines.SetEscapeHTML(false)
	for i := range entries {
		if err := lines.Encode(&entries[i]); err != nil {
			return "", false, fmt.Errorf("encode the entry of finding %s: %w", entries[i].Finding, err)
		}
	}
	if err := compressed.Close(); err != nil {
		return "", false, err
	}
	text = base64.StdEncoding.EncodeToString(out.Bytes())
	return text, len(text) <= v1alpha1.MaxPartLength && size <= maxPartBytes, nil
}

// counter counts the bytes that are written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// Decode decodes the entries of a part.
func Decode(part *v1alpha1.TriageOperationPart) ([]Entry, error) {
	return decodePart[Entry](part)
}

// Findings returns the names of a part's findings. Unlike Decode, it keeps none of their previous decisions, which take
// up to 16 MiB.
func Findings(part *v1alpha1.TriageOperationPart) ([]v1alpha1.ResourceName, error) {
	named, err := decodePart[struct {
		Finding v1alpha1.ResourceName `json:"finding"`
	}](part)
	names := make([]v1alpha1.ResourceName, len(named))
	for i := range named {
		names[i] = named[i].Finding
	}
	return names, err
}

func decodePart[T any](part *v1alpha1.TriageOperationPart) ([]T, error) {
	entries, err := decode[T](part.Spec.Entries)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read part %s: %w", part.Name, err)
	case len(entries) != int(part.Spec.Count):
		return nil, fmt.Errorf("read part %s: it has %d findings but declares %d", part.Name, len(entries), part.Spec.Count)
	}
	return entries, nil
}

func decode[T any](text string) (entries []T, err error) {
	compressed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		return nil, err
	}
	lines := json.NewDecoder(io.LimitReader(compressed, maxPartBytes))
	for {
		var entry T
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
