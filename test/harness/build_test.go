package harness

import (
	"path/filepath"
	"testing"
)

func TestBuildTakesWhatMakeHasBuilt(t *testing.T) {
	t.Setenv("PATH", "") // no go command
	t.Setenv(built, "")
	if _, err := Build(t.Context()); err == nil {
		t.Errorf("without %s it builds nothing", built)
	}
	t.Setenv(built, "1")
	folder, err := Build(t.Context())
	Must(t, err)
	Same(t, "folder", filepath.Join(Root(), "bin"), folder)
}
