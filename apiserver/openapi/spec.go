// Package openapi holds the REST contract, openapi.yaml, and what is derived from it: the types in
// types.gen.go, and the tables that requests are validated with.
package openapi

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"sigs.k8s.io/yaml"
)

//go:embed openapi.yaml
var document []byte

// Load returns the contract, which is read once per process; callers must not change it. A test validates it.
var Load = sync.OnceValues(func() (*openapi3.T, error) {
	content, err := JSON()
	if err != nil {
		return nil, err
	}
	spec, err := openapi3.NewLoader().LoadFromData(content)
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	return spec, nil
})

// JSON returns the contract as JSON, which is converted once per process; callers must not change it.
var JSON = sync.OnceValues(func() ([]byte, error) {
	converted, err := yaml.YAMLToJSONStrict(document) // which refuses a member that occurs twice
	if err != nil {
		return nil, fmt.Errorf("convert openapi.yaml to JSON: %w", err)
	}
	return converted, nil
})
