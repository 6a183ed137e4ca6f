// Package client is the Go client of the REST API, generated from openapi.yaml. It imports no other package of this
// module.
package client

import (
	"context"
	"net/http"
	"slices"
)

// New returns a client of the service at that address, for example "https://findings.example.com", that sends the API
// key with every request. The client follows the generated names: an operation of the contract, such as listFindingsV2,
// is the method ListFindingsV2WithResponse, and its result has a field for each status that the contract describes,
// such as JSON200. A field is nil if the response had another status. The headers are in HTTPResponse.
//
// These methods read a response to its end. Events have none and an export is long: use the methods StreamEvents and
// ExportFindings, which return the response once its headers have arrived, then read and close its body.
func New(address, apiKey string, options ...ClientOption) (*ClientWithResponses, error) {
	authorize := WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+apiKey)
		return nil
	})
	return NewClientWithResponses(address, append(slices.Clip(options), authorize)...)
}
