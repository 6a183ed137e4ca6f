package sarif

import (
	"io"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// passed returns the input that reaches the decoder.
func passed(t *testing.T, content string) string {
	t.Helper()
	all, err := io.ReadAll(&boundedReader{source: strings.NewReader(content), limits: DefaultLimits})
	harness.Must(t, err)
	return string(all)
}

// The decoder scans blanks again with each piece that it reads: 48 MiB of them would take it minutes.
func TestManyBlanksAreLeftOut(t *testing.T) {
	blanks := strings.Repeat(" \n\t\r", 3*maxBlanks)
	for name, content := range map[string]string{
		"nothing else":  blanks,
		"before":        blanks + file(`"results":[]`),
		"between":       strings.Replace(file(`"results":[]`), `"results"`, blanks+`"results"`, 1),
		"behind a name": strings.Replace(file(`"results":[]`), `"results"`, `"results"`+blanks, 1),
		"in a list":     file(`"results":[` + blanks + `]`),
		"behind":        file(`"results":[]`) + blanks,
	} {
		harness.Same(t, name+": bytes that are passed on", len(content)-len(blanks)+maxBlanks, len(passed(t, content)))
		_, err := Parse(strings.NewReader(content), Options{})
		if empty := err != nil && strings.Contains(err.Error(), "empty"); empty != (name == "nothing else") || err != nil && !empty {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBlanksInATextAndFewElsewhereStay(t *testing.T) {
	few := strings.Repeat(" ", maxBlanks)
	for _, content := range []string{`{"a":"x` + few + few + `\"` + few + `y"}`, "[" + few + "1," + few + "2" + few + "]"} {
		if passed(t, content) != content {
			t.Errorf("%.20q... is not passed on as it is", content)
		}
	}
}
