package render_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// containers are objects that a sentence below the table speaks of.
var containers = map[string]bool{
	"project": true, "agent": true, "details": true, "project.context": true, "repo": true, "scan_details": true,
}

// docs/decisions/fields.md has a row for each member of both shapes of a finding, and no
// row for what there is not.
func TestEveryMemberHasARow(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", "decisions", "fields.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n## Finding\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for column, shape := range []any{openapi.FindingV1{}, openapi.FindingV2{}} {
		members := map[string]bool{}
		collect(reflect.TypeOf(shape), "", members)
		for _, row := range strings.Split(section, "\n") {
			cells := strings.Split(row, " | ")
			if !strings.HasPrefix(row, "| ") || len(cells) != 5 || strings.HasPrefix(row, "| v1 ") {
				continue
			}
			member := strings.Trim(strings.TrimPrefix(cells[column], "| "), "`")
			switch {
			case member == "-":
			case !members[member]:
				t.Errorf("%T has no member %q", shape, member)
			default:
				delete(members, member)
			}
		}
		for member := range members {
			if !containers[member] {
				t.Errorf("%T: no row, or two, for %q", shape, member)
			}
		}
	}
}

func collect(shape reflect.Type, prefix string, into map[string]bool) {
	switch shape.Kind() {
	case reflect.Pointer:
		collect(shape.Elem(), prefix, into)
		return
	case reflect.Slice:
		collect(shape.Elem(), prefix+"[]", into)
		return
	case reflect.Struct:
	default:
		return
	}
	if shape == reflect.TypeFor[time.Time]() {
		return
	}
	for i := range shape.NumField() {
		name, _, _ := strings.Cut(shape.Field(i).Tag.Get("json"), ",")
		if prefix != "" {
			name = prefix + "." + name
		}
		into[name] = true
		collect(shape.Field(i).Type, name, into)
	}
}
