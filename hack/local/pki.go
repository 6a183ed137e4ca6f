package main

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// renewBefore is how long before its end a certificate is made anew; it lives for a year.
const renewBefore = 30 * 24 * time.Hour

// pki is what outlives a restart, so that the kubeconfigs and tokens of before stay good.
type pki struct {
	// servingCA is the PEM of the certificate by which clients know the API server.
	servingCA []byte
	// servingCAFile and serviceAccountKeyFile are paths of PEM files.
	servingCAFile, serviceAccountKeyFile string
	// tokens of the users in staticUsers, by name.
	tokens map[string]string
}

// loadPKI reads what an earlier run left in the run folder and makes what is missing.
func loadPKI(o options) (*pki, error) {
	p := &pki{
		servingCAFile:         o.state("pki", "apiserver.crt"),
		serviceAccountKeyFile: o.state("pki", "service-account.key"),
		tokens:                map[string]string{},
	}
	var err error
	if p.servingCA, err = servingCertificate(p.servingCAFile, o.state("pki", "apiserver.key")); err != nil {
		return nil, fmt.Errorf("the API server's certificate: %w", err)
	}
	if _, _, err = keyutil.LoadOrGenerateKeyFile(p.serviceAccountKeyFile); err != nil {
		return nil, fmt.Errorf("the service accounts' key: %w", err)
	}
	for _, user := range staticUsers {
		if p.tokens[user.Name], err = secretFile(o.state("pki", strings.ReplaceAll(user.Name, ":", "_")+".token")); err != nil {
			return nil, fmt.Errorf("the token of %s: %w", user.Name, err)
		}
	}
	if _, err = secretFile(o.state("cursor-keys", "1")); err != nil {
		return nil, fmt.Errorf("the key of the REST API's cursors: %w", err)
	}
	return p, nil
}

// servingCertificate returns the PEM of the certificate. It writes the two files where they
// are not there or soon expire, under the names that kube-apiserver looks for in its --cert-dir.
func servingCertificate(certFile, keyFile string) ([]byte, error) {
	content, err := os.ReadFile(certFile)
	if err == nil && validFor(content, renewBefore) {
		return content, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	content, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.ParseIP(loopback)}, nil)
	if err != nil {
		return nil, err
	}
	return content, errors.Join(writeFile(keyFile, key), writeFile(certFile, content))
}

func validFor(content []byte, remaining time.Duration) bool {
	block, _ := pem.Decode(content)
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	return err == nil && time.Until(certificate.NotAfter) > remaining
}

// secretFile returns the secret that a file holds. It makes both where the file is not there.
func secretFile(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return strings.TrimSpace(string(content)), err
	}
	secret := rand.Text() + rand.Text()
	return secret, writeFile(file, []byte(secret+"\n"))
}
