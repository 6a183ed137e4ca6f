package openapi

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// Parameters are the described parameters of a request, validated and with defaults.
type Parameters struct {
	values map[string]string
}

// Get returns the parameter's value, or its default; "" if it has neither.
func (p Parameters) Get(name string) string { return p.values[name] }

// Lookup returns the parameter's value or default, and whether it has one.
func (p Parameters) Lookup(name string) (value string, ok bool) {
	value, ok = p.values[name]
	return value, ok
}

// Values returns a copy of all values and defaults by name.
func (p Parameters) Values() map[string]string { return maps.Clone(p.values) }

// Empty reports whether there are neither values nor defaults.
func (p Parameters) Empty() bool { return len(p.values) == 0 }

// Int returns the value of an integer parameter.
func (p Parameters) Int(name string) int {
	number, _ := strconv.Atoi(p.values[name]) // checked against the schema before
	return number
}

// Number returns the value of a decimal parameter, nil if it is not given.
func (p Parameters) Number(name string) *float64 {
	number, err := strconv.ParseFloat(p.values[name], 64) // checked against the schema before
	if err != nil {
		return nil
	}
	return &number
}

// Bool returns the value of a boolean parameter, nil if it is not given.
func (p Parameters) Bool(name string) *bool {
	value, given := p.values[name]
	if !given {
		return nil
	}
	is := value == "true"
	return &is
}

// Time returns the value of a timestamp parameter, nil if it is not given.
func (p Parameters) Time(name string) *time.Time {
	value, given := p.values[name]
	if !given {
		return nil
	}
	at, err := v1alpha1.ParseTime(value) // checked against the schema before
	if err != nil {
		return nil
	}
	return &at.Time
}

// ParsePath parses the segments of a request's path by name, still percent-encoded. Its errors are
// InvalidErrors.
func (o *Operation) ParsePath(segments map[string]string) (Parameters, error) {
	values := make(map[string]string, len(o.path))
	for _, name := range sortedNames(o.path) {
		value, err := url.PathUnescape(segments[name])
		if err != nil {
			return Parameters{}, invalid(name, problem.CodeMalformed,
				"%s in the path is not percent-encoded as it should be", name)
		}
		if values[name], err = o.path[name].read(name+" in the path", value); err != nil {
			return Parameters{}, invalid(name, problem.CodeInvalid, "%v", err)
		}
	}
	return Parameters{values: values}, nil
}

// strictQueryExtension marks operations that refuse unknown parameters: a misspelled dry_run would import.
const strictQueryExtension = "x-strict-query"

// ParseQuery parses a request's raw query. Names that the contract does not describe are ignored, whatever
// their values, unless the operation is strict. A parameter with an empty value counts as not given, because many
// clients send unset values as "", unless the contract refuses it. Its errors are InvalidErrors.
func (o *Operation) ParseQuery(raw string) (Parameters, error) {
	values := make(map[string]string, len(o.query))
	var refused []string // have an empty value
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		given, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(given)
		schema, described := o.query[name]
		if err != nil || !described {
			if o.strictQuery && pair != "" {
				return Parameters{}, o.unknownParameter(given)
			}
			continue
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return Parameters{}, invalid(name, problem.CodeMalformed, "%s is not percent-encoded as it should be", name)
		}
		if value == "" {
			if schema.emptyIsRefused {
				refused = append(refused, name)
			}
			continue
		}
		if _, again := values[name]; again {
			return Parameters{}, invalid(name, problem.CodeRepeated, "%s is given more than once", name)
		}
		if values[name], err = schema.read(name, value); err != nil {
			return Parameters{}, invalid(name, problem.CodeInvalid, "%v", err)
		}
	}
	for _, name := range refused {
		if err := o.query[name].refuseEmpty(name, values); err != nil {
			return Parameters{}, err
		}
	}
	for name, schema := range o.query {
		if _, given := values[name]; !given && schema.byDefault != "" {
			values[name] = schema.byDefault
		}
	}
	return Parameters{values: values}, nil
}

// refuseEmpty returns an error for the parameter of that name, unless values hold its alternative.
func (s scalar) refuseEmpty(name string, values map[string]string) error {
	if s.alternative == "" {
		return invalid(name, problem.CodeInvalid, "%s is empty: give a value, or leave the parameter out", name)
	}
	if _, given := values[s.alternative]; given {
		return nil
	}
	return invalid(name, problem.CodeInvalid, "%s is empty, and %s is not given: give one of the two; without both, "+
		"the results count as those of the scan branch", name, s.alternative)
}

func (o *Operation) unknownParameter(name string) error {
	// Only uploads by GitHub's routes have none and refuse unknown ones.
	all := "this operation has none; uploads to /v2/repos/{id}/projects/{project_id}/scans have dry_run and force"
	if len(o.query) > 0 {
		all = "the parameters are " + strings.Join(sortedNames(o.query), ", ")
	}
	return invalid("", problem.CodeInvalid, "there is no parameter %s: %s", quote(name), all)
}

// sortedNames returns the names in a fixed order, so that a request with two errors always gets the same one
// reported.
func sortedNames[V any](schemas map[string]V) []string { return slices.Sorted(maps.Keys(schemas)) }
