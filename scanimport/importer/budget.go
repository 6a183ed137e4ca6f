package importer

import (
	"fmt"
	"sync"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const (
	// spareTexts is how many bytes the texts of the findings of any files may take.
	spareTexts = 32 << 20
	// textsPerByte is how many bytes more they may take for each byte of the files.
	textsPerByte = 4
)

// TooLongError reports findings whose texts take more than that many bytes.
type TooLongError struct{ Bytes int64 }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the texts and links of its findings unfold to more than %d MiB: "+
		"have the scanner write shorter descriptions and help texts of its rules, or report less", e.Bytes>>20)
}

// textBudget bounds the memory that the texts of the findings of some files take. The texts of a rule, and the path of
// a file, become part of the texts of each of their results, so a small file could take gigabytes. Equal texts share
// their memory. A nil one bounds nothing.
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

// share replaces the texts of a finding that are made of a rule's texts or a path by equal ones of other findings. The
// error explains, for people, that all together are too long.
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
