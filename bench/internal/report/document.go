package report

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// documentName is the page with the summary. Each section has a page and a picture in pagesFolder beside it.
	documentName = "performance.md"
	pagesFolder  = "performance"

	summaryBegins = "<!-- bench summary -->"
	summaryEnds   = "<!-- end of bench summary -->"
)

// Write writes the section's page and picture, and updates its figures in the summary of the folder's
// document.
func (s *Section) Write(folder string, run Run) error {
	pages := filepath.Join(folder, pagesFolder)
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(pages, s.Name+".md"), []byte(s.Markdown(run)), 0o644); err != nil {
		return err
	}
	if len(s.Charts) > 0 {
		picture, err := s.SVG()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(pages, s.Name+".svg"), picture, 0o644); err != nil {
			return err
		}
	}
	path := filepath.Join(folder, documentName)
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		content, err = []byte("# Performance\n"), nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(s.summarize(string(content))), 0o644)
}

// summarize returns the document with the section's lines in its summary, which replace those of an earlier
// run. A section that is new to the summary comes last; a document without a summary gets one at its end.
func (s *Section) summarize(document string) string {
	before, rest, found := strings.Cut(document, summaryBegins)
	if !found {
		before = strings.TrimRight(document, "\n") + "\n\n"
	}
	old, after, found := strings.Cut(rest, summaryEnds)
	if !found {
		after = "\n" + rest
	}
	var lines []string
	for line := range strings.Lines(old) {
		if strings.HasPrefix(line, "| [") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	mine := func(line string) bool { return strings.HasPrefix(line, "| "+s.link()+" |") }
	at := slices.IndexFunc(lines, mine)
	if at < 0 {
		at = len(lines)
	}
	lines = slices.Insert(slices.DeleteFunc(lines, mine), at, s.lines()...)
	return before + summaryBegins + "\n\n| | Measure | Wanted | Measured | |\n|---|---|--:|--:|--:|\n" +
		strings.Join(lines, "\n") + "\n\n" + summaryEnds + after
}
