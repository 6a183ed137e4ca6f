package main

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificates returns Mozilla's roots as published by Go's maintainers, at the version in go.mod: this machine's own
// roots change over time. Roots that Mozilla trusts only with a constraint are left out, since a PEM file cannot
// express it.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) //nolint:errcheck // a buffer takes all
	}
	return out.Bytes()
}
