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

// A Generator makes values that a schema takes. Paths are those of the API server's errors, without
// indexes and keys: "spec.details.title".
type Generator struct {
	// Full fills every part to its bound; else only what is required is there.
	Full bool
	// Target is a part that is there whether required or not; with what lies on the way to it. The items
	// of a list of texts or numbers are "path[]", and the names in a map "path{}".
	Target string
	// Instead, where it is set, is the value of the target.
	Instead any
}

// Value returns one that the schema takes. It panics where the schema has a form that it does not know.
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

// insteadOf are members that a rule does not let stand beside another of the same object: the
// smaller of the two, and that other.
var insteadOf = map[string]string{"rotation": "secretRef", "undo": "select", "ids": "rule"}

// besides are members that a rule asks for, though the schema does not require them, by the object that they are in.
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
		count = min(count, n) // a set has each member once
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

// scorePattern is that of a score, which nothing made of one character matches.
const scorePattern = `^(10\.0|[0-9]\.[0-9])$`

// IsTime reports whether a text is a time, by the rule that checks it.
func IsTime(schema *apiextensionsv1.JSONSchemaProps) bool { return hasRule(schema, "timestamp(self") }

// IsDuration reports whether a text is a duration, by the rule that checks it.
func IsDuration(schema *apiextensionsv1.JSONSchemaProps) bool {
	return hasRule(schema, "duration(self)")
}

func hasRule(schema *apiextensionsv1.JSONSchemaProps, prefix string) bool {
	return slices.ContainsFunc(schema.XValidations, func(rule apiextensionsv1.ValidationRule) bool {
		return strings.HasPrefix(rule.Rule, prefix)
	})
}

// shape is a beginning, and a character that the pattern takes any number of after it; "<"
// where it may be, since that takes six bytes as stored.
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

// digits of the numbers that keep members apart; letters, since more patterns take them.
var digits = strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8",
	"i", "9", "j")

// Unique repeats the character; a number at the end keeps the members of a list apart.
func Unique(character string, length, index int64) string {
	end := ""
	if index > 0 {
		end = digits.Replace(fmt.Sprint(index))
	}
	return strings.Repeat(character, max(0, int(length)-len(end))) + end
}

// keyBound is how a CRD bounds the names in a map, which a schema cannot.
var keyBound = regexp.MustCompile(`^self\.all\(name, size\(name\) <= (\d+)\)$`)

// MaxKeyLength is how long the names in a map may be, or 0 where nothing says it.
func MaxKeyLength(schema *apiextensionsv1.JSONSchemaProps) int64 {
	for _, rule := range schema.XValidations {
		if match := keyBound.FindStringSubmatch(rule.Rule); match != nil {
			n, _ := strconv.ParseInt(match[1], 10, 64)
			return n
		}
	}
	return 0
}

// Part is a valid object's spec or status that holds the target with another value; nil leaves it valid.
func Part(schema *apiextensionsv1.JSONSchemaProps, part, target string, instead any) any {
	member := schema.Properties[part]
	g := &Generator{Target: target, Instead: instead}
	return g.Value(&member, part, 0)
}
