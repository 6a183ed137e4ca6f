package attack

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// texts returns all strings of a JSON value, except for member names, or all cells of a CSV that are not numbers, by
// their position.
func texts(t *testing.T, a *answer) map[string]string {
	t.Helper()
	out := map[string]string{}
	if strings.HasPrefix(a.header.Get("Content-Type"), "text/csv") {
		rows, err := csv.NewReader(bytes.NewReader(a.body)).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i, row := range rows[1:] {
			for j, cell := range row {
				if _, err := strconv.ParseFloat(cell, 64); err != nil {
					out[fmt.Sprintf("[%d].%s", i, rows[0][j])] = cell
				}
			}
		}
		return out
	}
	value := harness.Decoded[any](t, a.body)
	collect(out, "", value)
	return out
}

func collect(out map[string]string, path string, value any) {
	switch v := value.(type) {
	case string:
		out[path] = v
	case []any:
		for i, element := range v {
			collect(out, fmt.Sprintf("%s[%d]", path, i), element)
		}
	case map[string]any:
		for name, member := range v {
			collect(out, path+"."+name, member)
		}
	}
}
