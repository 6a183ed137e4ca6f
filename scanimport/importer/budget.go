package importer

import (
	"fmt"
	"sync"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const (
	// spareTexts is how many bytes the texts of findings may take, whatever the size of the files.
	spareTexts = 32 << 20
	// textsPerByte is how many more bytes they may take per byte of the files.
	textsPerByte = 4
)

// TooLongError reports that the texts of findings take more than this many bytes.
type TooLongError struct{ Bytes int64 }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the texts and links of its findings unfold to more than %d MiB: "+
		"have the scanner write shorter descriptions and help texts of its rules, or report less", e.Bytes>>20)
}

// textBudget bounds the memory for the texts of findings. The texts of a rule and the path of a file become part of the
// texts of each of their results, so a small file could take gigabytes. Equal texts share memory. A nil budget has no
// bound.
type textBudget struct {
	most int64

	mu    sync.Mutex
	taken int64
	known map[string]string
}

func newTextBudget(files []File) *textBudget {
	b := &textBudget{most: spareTexts, known: map[string]string{}}
	for _, file := range files {
		b.most += textsPerByte * file.Log.Bytes
	}
	return b
}

// share replaces texts of a finding that are built from a rule's texts or a path by equal ones of other findings. If
// all texts together are too long, it returns an error for users.
func (b *textBudget) share(spec *v1alpha1.FindingSpec) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	details := &spec.Details
	b.replace(&spec.RuleID, &spec.Class, &spec.SecretType, &details.Title, &details.Description, &details.Remediation)
	if l := details.Location; l != nil {
		b.replace(&l.FilePath, &l.URL)
	}
	for i := range details.SupportingFiles {
		b.replace(&details.SupportingFiles[i].FilePath, &details.SupportingFiles[i].URL)
	}
	if b.taken > b.most {
		return &TooLongError{b.most}
	}
	return nil
}

// replace replaces each text by an equal known one, and counts those that are new.
func (b *textBudget) replace(all ...*string) {
	for _, text := range all {
		shared, known := b.known[*text]
		if !known {
			shared = *text
			b.known[shared] = shared
			b.taken += int64(len(shared))
		}
		*text = shared
	}
}
