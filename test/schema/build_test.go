package schema_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A generator makes values that a schema takes. Paths are those of the API server's errors, without
// indexes and keys: "spec.details.title".
type generator struct {
	t *testing.T
	// full fills every part to its bound; else only what is required is there.
	full bool
	// target is a part that is there whether required or not; with what lies on the way to it.
	target string
	// instead, where it is set, is the value of the target.
	instead any
}

func (g *generator) value(schema *apiextensionsv1.JSONSchemaProps, path string, index int64) any {
	if path == g.target && g.instead != nil {
		return g.instead
	}
	switch schema.Type {
	case "string":
		return g.text(schema, path, index)
	case "array":
		return g.list(schema, path)
	case "object":
		return g.object(schema, path, index)
	case "integer":
		return g.number(schema, index)
	case "boolean":
		return true
	default:
		g.t.Fatalf("%s: no value for type %q", path, schema.Type)
		return nil
	}
}

// insteadOf are members that a rule does not let stand beside another of the same object: the
// smaller of the two, and that other.
var insteadOf = map[string]string{"rotation": "secretRef"}

func (g *generator) wants(path string, required bool) bool {
	return g.full || required || path == g.target || strings.HasPrefix(g.target, path+".")
}

func (g *generator) object(schema *apiextensionsv1.JSONSchemaProps, path string, index int64) map[string]any {
	out := map[string]any{}
	if schema.AdditionalProperties != nil {
		count := int64(1)
		if g.full {
			count = *schema.MaxProperties
		}
		for i := range count {
			key := unique("<", maxKeyLength(schema), i)
			out[key] = g.value(schema.AdditionalProperties.Schema, path+".*", i)
		}
		return out
	}
	for name, member := range schema.Properties {
		if other, alone := insteadOf[name]; alone && g.full {
			if _, there := schema.Properties[other]; there {
				continue
			}
		}
		if g.wants(path+"."+name, slices.Contains(schema.Required, name)) {
			out[name] = g.value(&member, path+"."+name, index)
		}
	}
	return out
}

func (g *generator) list(schema *apiextensionsv1.JSONSchemaProps, path string) []any {
	count := int64(1)
	if g.full {
		count = *schema.MaxItems
	}
	if n := int64(len(schema.Items.Schema.Enum)); isSet(schema) && n > 0 {
		count = min(count, n) // a set has each member once
	}
	out := []any{}
	for i := range count {
		out = append(out, g.value(schema.Items.Schema, path, i))
	}
	return out
}

func isSet(schema *apiextensionsv1.JSONSchemaProps) bool {
	return schema.XListType != nil && *schema.XListType == "set"
}

func (g *generator) number(schema *apiextensionsv1.JSONSchemaProps, index int64) any {
	if !g.full {
		if schema.Minimum != nil {
			return int64(*schema.Minimum)
		}
		return int64(0)
	}
	switch {
	case schema.Maximum != nil:
		return int64(*schema.Maximum)
	case schema.Format == "int32":
		return int64(1<<31-1) - index
	default:
		return int64(1<<53-1) - index
	}
}

func (g *generator) text(schema *apiextensionsv1.JSONSchemaProps, path string, index int64) string {
	switch {
	case len(schema.Enum) > 0:
		var value string
		if err := json.Unmarshal(schema.Enum[index%int64(len(schema.Enum))].Raw, &value); err != nil {
			g.t.Fatalf("%s: %v", path, err)
		}
		return value
	case isTime(schema):
		return "2026-01-02T03:04:05Z"
	case isDuration(schema):
		return "24h"
	case schema.Pattern == scorePattern:
		return "10.0"
	}
	length := int64(1)
	if g.full {
		length = *schema.MaxLength
	}
	prefix, character := g.shape(schema, path)
	length = max(length, int64(len(prefix))+1)
	return prefix + unique(character, length-int64(len(prefix)), index)
}

// scorePattern is that of a score, which nothing made of one character matches.
const scorePattern = `^(10\.0|[0-9]\.[0-9])$`

// isTime and isDuration know strings of these forms by the rules that check them.
func isTime(schema *apiextensionsv1.JSONSchemaProps) bool { return hasRule(schema, "timestamp(self") }

func isDuration(schema *apiextensionsv1.JSONSchemaProps) bool {
	return hasRule(schema, "duration(self)")
}

func hasRule(schema *apiextensionsv1.JSONSchemaProps, prefix string) bool {
	return slices.ContainsFunc(schema.XValidations, func(rule apiextensionsv1.ValidationRule) bool {
		return strings.HasPrefix(rule.Rule, prefix)
	})
}

// shape is a beginning, and a character that the pattern takes any number of after it; "<"
// where it may be, since that takes six bytes as stored.
func (g *generator) shape(schema *apiextensionsv1.JSONSchemaProps, path string) (prefix, character string) {
	pattern := regexp.MustCompile(schema.Pattern)
	for _, prefix := range []string{"", "https://", "a."} {
		for _, character := range []string{"<", "a", "A"} {
			if pattern.MatchString(prefix + character) {
				return prefix, character
			}
		}
	}
	g.t.Fatalf("%s: nothing made of one character matches the pattern %s", path, schema.Pattern)
	return "", ""
}

// digits of the numbers that keep members apart; letters, since more patterns take them.
var digits = strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j")

// unique repeats the character; a number at the end keeps the members of a list apart.
func unique(character string, length, index int64) string {
	end := ""
	if index > 0 {
		end = digits.Replace(fmt.Sprint(index))
	}
	return strings.Repeat(character, max(0, int(length)-len(end))) + end
}

// withPart is a valid object's part that holds the target.
func withPart(t *testing.T, schema *apiextensionsv1.JSONSchemaProps, part, target string, instead any) any {
	t.Helper()
	member := schema.Properties[part]
	g := &generator{t: t, target: target, instead: instead}
	return g.value(&member, part, 0)
}
