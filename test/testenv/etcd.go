package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// PutIntoEtcd writes an object of one of this project's kinds directly into etcd, so that the API
// server serves it without having validated it. The namespace is "" for cluster-scoped kinds.
func (e *Environment) PutIntoEtcd(ctx context.Context, resource, namespace, name string, object []byte) error {
	key := "/registry/" + v1alpha1.GroupName + "/" + resource + "/"
	if namespace != "" {
		key += namespace + "/"
	}
	return e.AskEtcd(ctx, "/v3/kv/put", map[string][]byte{"key": []byte(key + name), "value": object}, nil)
}

// AskEtcd sends a question to etcd's JSON gateway and decodes the answer, unless it is nil. It waits for at most
// harness.Patience. The gateway encodes bytes as base64, and 64-bit numbers as strings.
func (e *Environment) AskEtcd(ctx context.Context, path string, question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, harness.Patience)
	defer cancel()
	content, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.EtcdURL()+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	status, body, err := harness.Answer(nil, request)
	switch {
	case err != nil:
		return fmt.Errorf("ask etcd by %s: %w", path, err)
	case status != http.StatusOK:
		return fmt.Errorf("ask etcd by %s: %d %.300s", path, status, body)
	case answer == nil:
		return nil
	}
	return json.Unmarshal(body, answer)
}
