package main

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificates are Mozilla's roots as Go's own maintainers publish them, at the version that
// go.mod pins: this machine's would be others tomorrow. Roots that Mozilla trusts only with a
// constraint are left out, since a PEM file cannot carry it.
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
