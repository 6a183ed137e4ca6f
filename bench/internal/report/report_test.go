package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func section(measured float64) *Section {
	return &Section{
		Name: "reads", Title: "Reads & more", Text: "How.",
		Rows:   []Row{AtLeast("of the ceiling", 0.5, measured, "%.2f").InSummary(), AtMost("time", 1.2, measured, "%.1f"), Missing("other", "at least 3", "not here")},
		Tables: []Table{{Columns: []string{"Who", "answers"}, Rows: [][]string{{"we", "7"}}}},
		Charts: []Chart{{Title: "Reads <all>", Unit: "a second", Groups: []Group{{Name: "few", Bars: []Bar{{"we", 1000}, {"they", 10}, {"nobody", 0}}}}}},
	}
}

var run = Run{Commit: "abc", Command: "make bench", Cores: 2, Memory: 24 << 30, At: time.Unix(0, 0).UTC()}

func TestTheSummaryIsPutBetweenItsMarksAndNothingElseIsTouched(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, documentName), "# Performance\n\nWritten by hand.\n\n"+
		"<!-- bench summary -->\nold\n<!-- end of bench summary -->\n\nMore by hand.\n")
	another := section(1)
	another.Name, another.Title = "writes", "Writes"
	for _, s := range []*Section{section(0.4), another, section(0.6)} {
		harness.Must(t, s.Write(folder, run))
	}
	const want = "# Performance\n\nWritten by hand.\n\n<!-- bench summary -->\n\n" +
		"| | Measure | Wanted | Measured | |\n|---|---|--:|--:|--:|\n" +
		"| [Reads & more](performance/reads.md) | of the ceiling | at least 0.50 | 0.60 | reached |\n" +
		"| [Reads & more](performance/reads.md) | other | at least 3 | not here | not run |\n" +
		"| [Reads & more](performance/reads.md) | 1 more figures |  |  | reached |\n" +
		"| [Writes](performance/writes.md) | of the ceiling | at least 0.50 | 1.00 | reached |\n" +
		"| [Writes](performance/writes.md) | other | at least 3 | not here | not run |\n" +
		"| [Writes](performance/writes.md) | 1 more figures |  |  | reached |\n\n" +
		"<!-- end of bench summary -->\n\nMore by hand.\n"
	harness.Same(t, documentName, want, harness.File(t, filepath.Join(folder, documentName)))
}

func TestADocumentWithoutASummaryGetsOneAtItsEnd(t *testing.T) {
	folder := t.TempDir()
	harness.Must(t, section(1).Write(folder, run))
	if text := harness.File(t, filepath.Join(folder, documentName)); !strings.HasPrefix(text, "# Performance\n\n"+summaryBegins) {
		t.Error(text)
	}
}

func TestASectionHasAPageAndAPicture(t *testing.T) {
	folder := t.TempDir()
	harness.Must(t, section(0.6).Write(folder, run))
	page := harness.File(t, filepath.Join(folder, pagesFolder, "reads.md"))
	harness.Contains(t, "the page", page,
		"# Reads & more\n\nHow.\n", "| of the ceiling | at least 0.50 | 0.60 | reached |", "| other | at least 3 | not here | not run |",
		"](reads.svg)", "| we | 7 |", "commit abc", "2 cores", "24 GB")
	harness.File(t, filepath.Join(folder, pagesFolder, "reads.svg"))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	harness.Must(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestWhatIsNotReachedIsSaid(t *testing.T) {
	for _, c := range []struct {
		row  Row
		want Verdict
	}{
		{AtLeast("", 0.5, 0.5, "%v"), Reached}, {AtLeast("", 0.5, 0.49, "%v"), NotReached},
		{AtMost("", 0, 0, "%v"), Reached}, {AtMost("", 0, 1, "%v"), NotReached},
	} {
		harness.Same(t, fmt.Sprintf("the verdict of %+v", c.row), c.want, c.row.Verdict)
	}
}

func TestThePictureNamesWhatItShowsAndHasABarForEachFigure(t *testing.T) {
	picture, err := section(1).SVG()
	harness.Must(t, err)
	decoder, text := xml.NewDecoder(bytes.NewReader(picture)), ""
	bars := map[string]bool{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		harness.Must(t, err)
		switch token := token.(type) {
		case xml.CharData:
			text += string(token) + "|"
		case xml.StartElement:
			for _, attribute := range token.Attr {
				for _, fill := range []string{"#0072B2", "#009E73", "#D55E00"} {
					if strings.Contains(attribute.Value, "fill:"+fill) {
						bars[fill] = true
					}
				}
			}
		}
	}
	if len(bars) != 3 {
		t.Errorf("there are bars of the colours %v; three are wanted:\n%s", bars, picture)
	}
	harness.Contains(t, "the text", text,
		"Reads <all> (a second, logarithmic)|", "few: |", "we |", "they |", "nobody |", "1000|", "10.0|", "0.00|")
}

// A section may have no figures, if nothing of it was run.
func TestAPictureWithoutFiguresIsDrawn(t *testing.T) {
	for _, charts := range [][]Chart{nil, {{Title: "Reads", Groups: []Group{{Bars: []Bar{{"we", 0}}}}}}} {
		_, err := (&Section{Charts: charts}).SVG()
		harness.NoError(t, "a picture without figures", err)
	}
}
