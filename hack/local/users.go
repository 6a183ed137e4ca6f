package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Users that are not service accounts.
const (
	administrator         = "admin"
	controllerManagerUser = "system:kube-controller-manager"
)

var staticUsers = []envtest.User{
	{Name: administrator, Groups: []string{"system:masters"}},
	{Name: controllerManagerUser},
}

// tokenFile lets the static users in by a token that stays the same across restarts. The
// client certificates that envtest makes otherwise end after a week and with their run.
type tokenFile struct {
	tokens map[string]string
	path   string
}

var _ envtest.Authn = (*tokenFile)(nil)

// Configure tells the API server of the file, before it starts.
func (f *tokenFile) Configure(folder string, arguments *envtest.Arguments) error {
	f.path = filepath.Join(folder, "tokens.csv")
	arguments.Set("token-auth-file", f.path)
	return nil
}

// Start writes the file.
func (f *tokenFile) Start() error {
	content := &bytes.Buffer{}
	writer := csv.NewWriter(content)
	for _, user := range staticUsers {
		if err := writer.Write([]string{f.tokens[user.Name], user.Name, user.Name, strings.Join(user.Groups, ",")}); err != nil {
			return err
		}
	}
	writer.Flush()
	if err := writer.Error(); err != nil {
		return err
	}
	if err := writeFile(f.path, content.Bytes()); err != nil {
		return fmt.Errorf("write the users' tokens: %w", err)
	}
	return nil
}

// AddUser gives a static user's credentials. The user "default" that envtest adds for its own
// old helpers gets none, and nothing here uses it.
func (f *tokenFile) AddUser(user envtest.User, base *rest.Config) (*rest.Config, error) {
	config := rest.CopyConfig(base)
	config.BearerToken = f.tokens[user.Name]
	return config, nil
}

// Stop has nothing to undo.
func (f *tokenFile) Stop() error { return nil }
