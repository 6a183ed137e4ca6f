package corpus

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A Generator generates values that a schema accepts. Paths are those of the API server's errors,
// without indexes and keys: "spec.details.title".
type Generator struct {
	// Full fills every part to its bound; otherwise only required parts are present.
	Full bool
	// Target is a part that is always present, together with its parents. The items of a list of texts
	// or numbers are "path[]", and the names in a map "path{}".
	Target string
	// Instead, if set, is the value of the target.
	Instead any
}

// Value returns a value that the schema accepts. It panics if the schema has an unknown form.
func (g *Generator) Value(schema *apiextensionsv1.JSONSchemaProps, path string, index int64) any {
	if path == g.Target && g.Instead != nil {
		return g.Instead
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
		panic(fmt.Sprintf("%s: no value for type %q", path, schema.Type))
	}
}

// insteadOf holds members that a rule does not allow together with another member of the same
// object: the smaller of the two, and the other.
var insteadOf = map[string]string{"rotation": "secretRef", "undo": "select", "ids": "rule"}

// besides holds members that a rule requires, though the schema does not, by the object that contains them.
var besides = map[string][]string{"spec": {"select", "set"}, "spec.select": {"rule"}, "spec.set": {"userStatus"}}

func (g *Generator) wants(path string, required bool) bool {
	return g.Full || required || path == g.Target || strings.HasPrefix(g.Target, path+".") || g.Target == path+"[]" ||
		g.Target == path+"{}"
}

func (g *Generator) object(schema *apiextensionsv1.JSONSchemaProps, path string, index int64) map[string]any {
	out := map[string]any{}
	if schema.AdditionalProperties != nil {
		count := int64(1)
		if g.Full {
			count = *schema.MaxProperties
		}
		for i := range count {
			key := Unique("<", MaxKeyLength(schema), i)
			if name, ok := g.Instead.(string); ok && g.Target == path+"{}" {
				key = name
			}
			out[key] = g.Value(schema.AdditionalProperties.Schema, path+".*", i)
		}
		return out
	}
	for name, member := range schema.Properties {
		if other, alone := insteadOf[name]; alone && g.Full {
			if _, there := schema.Properties[other]; there {
				continue
			}
		}
		if g.wants(path+"."+name, slices.Contains(schema.Required, name) || slices.Contains(besides[path], name)) {
			out[name] = g.Value(&member, path+"."+name, index)
		}
	}
	return out
}

func (g *Generator) list(schema *apiextensionsv1.JSONSchemaProps, path string) []any {
	count := int64(1)
	if g.Full {
		count = *schema.MaxItems
	}
	if n := int64(len(schema.Items.Schema.Enum)); isSet(schema) && n > 0 {
		count = min(count, n) // a set contains each member once
	}
	out := []any{}
	for i := range count {
		if g.Target == path+"[]" && g.Instead != nil {
			out = append(out, g.Instead)
			continue
		}
		out = append(out, g.Value(schema.Items.Schema, path, i))
	}
	return out
}

func isSet(schema *apiextensionsv1.JSONSchemaProps) bool {
	return schema.XListType != nil && *schema.XListType == "set"
}

func (g *Generator) number(schema *apiextensionsv1.JSONSchemaProps, index int64) any {
	if !g.Full {
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

func (g *Generator) text(schema *apiextensionsv1.JSONSchemaProps, path string, index int64) string {
	switch {
	case len(schema.Enum) > 0:
		var value string
		if err := json.Unmarshal(schema.Enum[index%int64(len(schema.Enum))].Raw, &value); err != nil {
			panic(fmt.Sprintf("%s: %v", path, err))
		}
		return value
	case IsTime(schema):
		return "2026-01-02T03:04:05Z"
	case IsDuration(schema):
		return "24h"
	case schema.Pattern == scorePattern:
		return "10.0"
	}
	length := int64(1)
	if g.Full {
		length = *schema.MaxLength
	}
	prefix, character := g.shape(schema, path)
	length = max(length, int64(len(prefix))+1)
	return prefix + Unique(character, length-int64(len(prefix)), index)
}

// scorePattern is the pattern of a score, which no repetition of one character matches.
const scorePattern = `^(10\.0|[0-9]\.[0-9])$`

// IsTime reports whether a text is a time, judging by its validation rule.
func IsTime(schema *apiextensionsv1.JSONSchemaProps) bool { return hasRule(schema, "timestamp(self") }

// IsDuration reports whether a text is a duration, judging by its validation rule.
func IsDuration(schema *apiextensionsv1.JSONSchemaProps) bool {
	return hasRule(schema, "duration(self)")
}

func hasRule(schema *apiextensionsv1.JSONSchemaProps, prefix string) bool {
	return slices.ContainsFunc(schema.XValidations, func(rule apiextensionsv1.ValidationRule) bool {
		return strings.HasPrefix(rule.Rule, prefix)
	})
}

// shape returns a prefix, and a character that the pattern accepts repeatedly after it; "<" if
// possible, because it takes six bytes in storage.
func (g *Generator) shape(schema *apiextensionsv1.JSONSchemaProps, path string) (prefix, character string) {
	pattern := regexp.MustCompile(schema.Pattern)
	for _, prefix := range []string{"", "https://", "a."} {
		for _, character := range []string{"<", "a", "A"} {
			if pattern.MatchString(prefix + character) {
				return prefix, character
			}
		}
	}
	panic(fmt.Sprintf("%s: nothing made of one character matches the pattern %s", path, schema.Pattern))
}

// digits replaces the digits of the numbers that keep members distinct with letters, which more
// patterns accept.
var digits = strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8",
	"i", "9", "j")

// Unique repeats the character to the length; a suffix made of the index keeps the members of a
// list distinct.
func Unique(character string, length, index int64) string {
	end := ""
	if index > 0 {
		end = digits.Replace(fmt.Sprint(index))
	}
	return strings.Repeat(character, max(0, int(length)-len(end))) + end
}

// keyBound is the rule by which a CRD bounds the names in a map, which a schema cannot do.
var keyBound = regexp.MustCompile(`^self\.all\(name, size\(name\) <= (\d+)\)$`)

// MaxKeyLength returns the maximum length of the names in a map, or 0 without a bound.
func MaxKeyLength(schema *apiextensionsv1.JSONSchemaProps) int64 {
	for _, rule := range schema.XValidations {
		if match := keyBound.FindStringSubmatch(rule.Rule); match != nil {
			n, _ := strconv.ParseInt(match[1], 10, 64)
			return n
		}
	}
	return 0
}

// Part returns a valid spec or status in which the target has the value instead; nil leaves it valid.
func Part(schema *apiextensionsv1.JSONSchemaProps, part, target string, instead any) any {
	member := schema.Properties[part]
	g := &Generator{Target: target, Instead: instead}
	return g.Value(&member, part, 0)
}
