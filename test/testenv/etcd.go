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
	// etcd's JSON gateway encodes bytes as base64.
	content, err := json.Marshal(map[string][]byte{"key": []byte(key + name), "value": object})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.EtcdURL()+"/v3/kv/put", bytes.NewReader(content))
	if err != nil {
		return err
	}
	status, answer, err := harness.Answer(nil, request)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("put %s into etcd: %d %.300s (%w)", key+name, status, answer, err)
	}
	return nil
}
