package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func section(measured float64) *Section {
	return &Section{
		Name: "reads", Title: "Reads & more", Text: "How.",
		Rows:   []Row{AtLeast("of the ceiling", 0.5, measured, "%.2f"), AtMost("time", 1.2, measured, "%.1f"), Missing("other", "at least 3", "not here")},
		Tables: []Table{{Columns: []string{"Who", "answers"}, Rows: [][]string{{"we", "7"}}}},
		Charts: []Chart{{Title: "Reads <all>", Unit: "a second", Groups: []Group{{Name: "few", Bars: []Bar{{"we", 1000}, {"they", 10}, {"nobody", 0}}}}}},
	}
}

var run = Run{Commit: "abc", Command: "make bench", Cores: 2, Memory: 24 << 30, At: time.Unix(0, 0).UTC()}

func TestASectionIsPutBetweenItsMarksAndNothingElseIsTouched(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, documentName)
	const mine = "# Performance\n\nWritten by hand.\n\n<!-- bench reads -->\nold\n<!-- end of bench reads -->\n\nMore by hand.\n"
	if err := os.WriteFile(path, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, measured := range []float64{0.4, 0.6} {
		if err := section(measured).Write(folder, run); err != nil {
			t.Fatal(err)
		}
	}
	another := section(1)
	another.Name = "writes"
	if err := another.Write(folder, run); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for _, want := range []string{
		"# Performance\n\nWritten by hand.\n\n<!-- bench reads -->\n\n## Reads & more\n", "<!-- end of bench reads -->\n\nMore by hand.\n", "<!-- bench writes -->",
		"| of the ceiling | at least 0.50 | 0.60 | reached |", "| other | at least 3 | not here | not run |", "performance/reads.svg", "commit abc", "2 cores", "24 GB",
	} {
		if strings.Count(text, want) < 1 {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	for _, gone := range []string{"old", "| 0.40 |"} {
		if strings.Contains(text, gone) {
			t.Errorf("%q is still there", gone)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, picturesFolder, "writes.svg")); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotReachedIsSaid(t *testing.T) {
	for _, c := range []struct {
		row  Row
		want Verdict
	}{
		{AtLeast("", 0.5, 0.5, "%v"), Reached}, {AtLeast("", 0.5, 0.49, "%v"), NotReached},
		{AtMost("", 0, 0, "%v"), Reached}, {AtMost("", 0, 1, "%v"), NotReached},
	} {
		if c.row.Verdict != c.want {
			t.Errorf("%+v: want %s", c.row, c.want)
		}
	}
}

func TestThePictureIsXMLWithABarForEachFigure(t *testing.T) {
	decoder, bars := xml.NewDecoder(strings.NewReader(section(1).SVG())), 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "rect" {
			bars++
		}
	}
	if bars != 1+3 {
		t.Errorf("%d rectangles; the ground and three bars are wanted", bars)
	}
}
