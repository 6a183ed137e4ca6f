// Package load sends requests over a few connections, each as soon as the previous one is answered,
// and measures how long answers take.
//
// Its cost is small and the same for every target: requests are prepared bytes, only the status and
// the length of an answer are parsed, and bodies are counted and dropped.
package load

import "time"

// Target describes the requests that are sent repeatedly.
type Target struct {
	// Name is shown to people.
	Name string `json:"name"`
	// Address is the host and port of the server.
	Address string `json:"address"`
	// CA is the PEM of the certificate that verifies the server. Empty: plain HTTP.
	CA []byte `json:"ca,omitempty"`
	// Requests are complete HTTP/1.1 requests as they are sent. Each connection sends them in turn,
	// beginning with a different one.
	Requests [][]byte `json:"requests"`
}

// Job is one run against a target.
type Job struct {
	Target Target `json:"target"`
	// Connections is the number of concurrent connections, each with one request in flight.
	Connections int `json:"connections"`
	// Apart gives each of n connections its own requests, every n-th, so that no two connections
	// send the same request. The number of requests must be a multiple of n.
	Apart bool `json:"apart,omitempty"`
	// For is how long requests are sent. Requests in flight at its end are still counted.
	For time.Duration `json:"for"`
}

// Get returns an HTTP/1.1 GET request with further header lines, as "Name: value".
func Get(host, path string, headers ...string) []byte {
	return Request("GET", host, path, nil, headers...)
}
