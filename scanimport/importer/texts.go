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

// texts bounds the memory that the texts of the findings of some files take. The texts of a rule, and the path of a
// file, become part of the texts of each of their results, so a small file could take gigabytes. Equal texts share
// their memory. A nil one bounds nothing.
type texts struct {
	most int64

	mu    sync.Mutex
	taken int64
	known map[string]string
}

func newTexts(files []File) *texts {
	t := &texts{most: spareTexts, known: map[string]string{}}
	for _, file := range files {
		t.most += textsPerByte * file.Log.Bytes
	}
	return t
}

// share replaces the texts of a finding that are made of a rule's texts or a path by equal ones of other findings. The
// error explains, for people, that all together are too long.
func (t *texts) share(spec *v1alpha1.FindingSpec) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	details := &spec.Details
	t.keep(&spec.RuleID, &spec.Class, &spec.SecretType, &details.Title, &details.Description, &details.Remediation)
	if l := details.Location; l != nil {
		t.keep(&l.FilePath, &l.URL)
	}
	for i := range details.SupportingFiles {
		t.keep(&details.SupportingFiles[i].FilePath, &details.SupportingFiles[i].URL)
	}
	if t.taken > t.most {
		return &TooLongError{t.most}
	}
	return nil
}

func (t *texts) keep(all ...*string) {
	for _, text := range all {
		shared, known := t.known[*text]
		if !known {
			shared = *text
			t.known[shared] = shared
			t.taken += int64(len(shared))
		}
		*text = shared
	}
}
