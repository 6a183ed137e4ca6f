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

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Users that are not service accounts. They authenticate with tokens that survive restarts.
const (
	administrator         = "admin"
	controllerManagerUser = "system:kube-controller-manager"
)

// staticUsers maps the users to their groups.
var staticUsers = map[string]string{administrator: "system:masters", controllerManagerUser: ""}

// renewBefore is how long before its expiry a certificate is replaced; it is valid for a year.
const renewBefore = 30 * 24 * time.Hour

// pki holds the credentials that survive a restart, so that old kubeconfigs and tokens stay valid.
type pki struct {
	harness.Credentials
	// tokens of the users in staticUsers, by name.
	tokens map[string]string
}

// loadPKI reads the credentials of an earlier run from the run folder and creates what is missing.
func loadPKI(o options) (*pki, error) {
	p := &pki{
		Credentials: harness.Credentials{
			CertificateFile: o.state("pki", "apiserver.crt"), KeyFile: o.state("pki", "apiserver.key"),
			ServiceAccountKeyFile: o.state("pki", "service-account.key"), TokensFile: o.state("pki", "tokens.csv"),
		},
		tokens: map[string]string{},
	}
	err := makeServingCertificate(p.CertificateFile, p.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("the API server's certificate: %w", err)
	}
	if _, _, err = keyutil.LoadOrGenerateKeyFile(p.ServiceAccountKeyFile); err != nil {
		return nil, fmt.Errorf("the service accounts' key: %w", err)
	}
	var users []byte
	for user, groups := range staticUsers {
		if p.tokens[user], err = secretFile(o.state("pki", strings.ReplaceAll(user, ":", "_")+".token")); err != nil {
			return nil, fmt.Errorf("the token of %s: %w", user, err)
		}
		users = fmt.Appendf(users, "%s,%s,%s,%s\n", p.tokens[user], user, user, groups)
	}
	p.AdminToken = p.tokens[administrator]
	if err := writeFile(p.TokensFile, users); err != nil {
		return nil, fmt.Errorf("write the users' tokens: %w", err)
	}
	if _, err = secretFile(o.state("cursor-keys", "1")); err != nil {
		return nil, fmt.Errorf("the key of the REST API's cursors: %w", err)
	}
	return p, nil
}

// makeServingCertificate writes the two files if they do not exist or expire soon.
func makeServingCertificate(certFile, keyFile string) error {
	content, err := os.ReadFile(certFile)
	if err == nil && validFor(content, renewBefore) {
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	content, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.ParseIP(loopback)}, nil)
	if err != nil {
		return err
	}
	return errors.Join(writeFile(keyFile, key), writeFile(certFile, content))
}

func validFor(content []byte, remaining time.Duration) bool {
	block, _ := pem.Decode(content)
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	return err == nil && time.Until(certificate.NotAfter) > remaining
}

// secretFile returns the secret stored in a file. It creates both if the file does not exist.
func secretFile(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return strings.TrimSpace(string(content)), err
	}
	secret := rand.Text() + rand.Text()
	return secret, writeFile(file, []byte(secret+"\n"))
}
