package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

const (
	// documentName is the document in the folder that is written to, picturesFolder that of the pictures beside it.
	documentName   = "performance.md"
	picturesFolder = "performance"
)

// Write puts the section into the document of the folder and its picture beside it.
func (s *Section) Write(folder string, run Run) error {
	path := filepath.Join(folder, documentName)
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		content, err = []byte("# Performance\n"), nil
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(replace(string(content), s.Name, s.Markdown(run, picturesFolder))), 0o644); err != nil {
		return err
	}
	if len(s.Charts) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(folder, picturesFolder), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, picturesFolder, s.Name+".svg"), []byte(s.SVG()), 0o644)
}

// replace puts the text between the marks of that name, which are added at the end where they are not.
func replace(document, name, text string) string {
	begin, end := "<!-- bench "+name+" -->", "<!-- end of bench "+name+" -->"
	block := begin + "\n\n" + text + "\n" + end
	before, rest, found := strings.Cut(document, begin)
	if !found {
		return strings.TrimRight(document, "\n") + "\n\n" + block + "\n"
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return before + block + "\n" + rest
	}
	return before + block + after
}
