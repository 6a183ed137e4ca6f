// Package openapi holds the REST contract, openapi.yaml, and what is derived from it: the types in
// types.gen.go, and the tables that requests are validated with.
package openapi

import (
	_ "embed"
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
	"sigs.k8s.io/yaml"
)

//go:embed openapi.yaml
var document []byte

// Load reads the contract and checks that it is valid OpenAPI.
func Load() (*openapi3.T, error) {
	loader := openapi3.NewLoader()
	spec, err := loader.LoadFromData(document)
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	if err := spec.Validate(loader.Context, openapi3.IsOpenAPI31OrLater()); err != nil {
		return nil, fmt.Errorf("openapi.yaml is not valid OpenAPI: %w", err)
	}
	return spec, nil
}

// JSON returns the contract as JSON.
func JSON() ([]byte, error) {
	converted, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("convert openapi.yaml to JSON: %w", err)
	}
	return converted, nil
}
