package openapi

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
)

// Parameters are the described parameters of a request, checked, defaults put in.
type Parameters struct {
	values map[string]string
}

// Get returns the parameter's value, or its default; "" where there is neither.
func (p Parameters) Get(name string) string { return p.values[name] }

// Lookup returns the parameter's value, and whether it or a default is there.
func (p Parameters) Lookup(name string) (value string, ok bool) {
	value, ok = p.values[name]
	return value, ok
}

// Int returns the value of an integer parameter.
func (p Parameters) Int(name string) int {
	number, _ := strconv.Atoi(p.values[name]) // checked against the schema before
	return number
}

// ParsePath takes the segments of a request's path by name, percent-encoded as they came.
// Its errors are fit for a client.
func (o *Operation) ParsePath(segments map[string]string) (Parameters, error) {
	values := make(map[string]string, len(o.path))
	for _, name := range sortedNames(o.path) {
		value, err := url.PathUnescape(segments[name])
		if err != nil {
			return Parameters{}, fmt.Errorf("%s in the path is not percent-encoded as it should be", name)
		}
		if err := o.path[name].check(name+" in the path", value); err != nil {
			return Parameters{}, err
		}
		values[name] = value
	}
	return Parameters{values: values}, nil
}

// ParseQuery takes a request's raw query. Names that the contract does not describe are
// ignored. Its errors are fit for a client.
func (o *Operation) ParseQuery(raw string) (Parameters, error) {
	given, err := url.ParseQuery(raw)
	if err != nil {
		return Parameters{}, errors.New("the query is not made of name=value pairs, percent-encoded and joined by &")
	}
	values := make(map[string]string, len(o.query))
	for _, name := range sortedNames(o.query) {
		schema := o.query[name]
		switch all := given[name]; len(all) {
		case 0:
			if schema.byDefault != "" {
				values[name] = schema.byDefault
			}
		case 1:
			if err := schema.check(name, all[0]); err != nil {
				return Parameters{}, err
			}
			values[name] = all[0]
		default:
			return Parameters{}, fmt.Errorf("%s is given %d times; once is allowed", name, len(all))
		}
	}
	return Parameters{values: values}, nil
}

// sortedNames makes the error that a client gets for two mistakes the same each time.
func sortedNames[V any](schemas map[string]V) []string {
	names := make([]string, 0, len(schemas))
	for name := range schemas {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
