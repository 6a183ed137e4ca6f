// Package load sends requests over a few connections, each as soon as the last one is answered,
// and measures how long answers take.
//
// It costs little and the same whatever is measured: requests are bytes made before, of an answer
// nothing is read but the status and the length, and bodies are counted and dropped.
package load

import "time"

// Target is what is asked, over and over.
type Target struct {
	// Name is for people.
	Name string `json:"name"`
	// Network and Address are as for net.Dial; Network is tcp where it is not given.
	Network string `json:"network,omitempty"`
	Address string `json:"address"`
	// CA is the PEM of the certificate that the server is known by. Empty: plain HTTP.
	CA []byte `json:"ca,omitempty"`
	// Requests are whole HTTP/1.1 requests as they go over the wire. A connection sends them in
	// turn, each connection beginning with another one.
	Requests [][]byte `json:"requests"`
}

// Job is one run against a target.
type Job struct {
	Target Target `json:"target"`
	// Connections are open at a time, each with one request under way.
	Connections int `json:"connections"`
	// Apart gives each of n connections requests of its own, every n-th, so that no two send the
	// same one. It needs a number of requests that n divides.
	Apart bool `json:"apart,omitempty"`
	// For is how long requests are sent. The ones under way at its end are still counted.
	For time.Duration `json:"for"`
}

// Result of one run.
type Result struct {
	// Requests that were answered with 200.
	Requests int `json:"requests"`
	// Elapsed is the time from the first request to the last answer.
	Elapsed time.Duration `json:"elapsed"`
	// P50 and P99 of the time from a request's first byte sent to its answer's last byte read.
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
	// Bytes of the bodies of one answer, on average.
	Bytes int `json:"bytes"`
	// Error is why the run is worth nothing: no connection, or an answer that is not 200.
	Error string `json:"error,omitempty"`
}

// Get returns a GET request of HTTP/1.1 with further header lines, as "Name: value".
func Get(host, path string, headers ...string) []byte {
	return Request("GET", host, path, nil, headers...)
}
