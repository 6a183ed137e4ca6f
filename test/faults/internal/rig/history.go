package rig

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// registry is where the API server keeps this project's objects, and marker a key there that
// belongs to no resource: what was written before it has a lower revision.
const (
	registry = "/registry/appsec.dev/"
	marker   = registry + "zz-marker"
)

// historyTimeout bounds one reading of the history.
const historyTimeout = time.Minute

// Stored is a state that etcd has held of an object, or its removal.
type Stored struct {
	// Revision at which it came, in the order of the whole store.
	Revision int64
	// Resource, Namespace and Name of the object; Namespace is empty for cluster-scoped ones.
	Resource, Namespace, Name string
	// Created says that there was nothing under the name before, Deleted that there is nothing since.
	Created, Deleted bool
	// Object is its JSON; empty where it was deleted.
	Object []byte
}

// History reads every state of this project's objects that etcd has held after a revision, in
// order, and returns the revision that it got to. It is what the tests judge by: nothing that was
// stored for however short a time is missing.
func (r *Rig) History(ctx context.Context, after int64, each func(Stored) error) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	upTo, err := r.mark(ctx)
	if err != nil {
		return after, fmt.Errorf("mark the end of the history: %w", err)
	}
	body, err := r.etcd(ctx, "/v3/watch", map[string]any{"create_request": map[string]string{
		"key": encode(registry), "range_end": encode(registry[:len(registry)-1] +
			"0"), "start_revision": strconv.FormatInt(after+1, 10),
	}})
	if err != nil {
		return after, err
	}
	defer body.Close() //nolint:errcheck // only read from
	decoder := json.NewDecoder(body)
	for {
		var message watchMessage
		if err := decoder.Decode(&message); err != nil {
			return after, fmt.Errorf("read the history: %w", err)
		}
		if message.Result.Canceled {
			return after, fmt.Errorf("etcd ended the history: %s", message.Result.Reason)
		}
		for _, event := range message.Result.Events {
			revision, stored, err := event.stored()
			if err != nil {
				return after, err
			}
			if revision >= upTo {
				return upTo, nil
			}
			if stored.Name == "" {
				continue // the marker of an earlier reading
			}
			if err := each(stored); err != nil {
				return after, err
			}
		}
	}
}

// mark writes the marker and returns its revision.
func (r *Rig) mark(ctx context.Context) (int64, error) {
	body, err := r.etcd(ctx, "/v3/kv/put", map[string]string{"key": encode(marker), "value": encode("x")})
	if err != nil {
		return 0, err
	}
	defer body.Close() //nolint:errcheck // only read from
	var answer struct {
		Header struct{ Revision string }
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return 0, err
	}
	return strconv.ParseInt(answer.Header.Revision, 10, 64)
}

// Put stores an object under a resource's key in etcd, whatever the API server would say of it; an empty
// namespace means a cluster-scoped one.
func (r *Rig) Put(ctx context.Context, resource, namespace, name string, object []byte) error {
	key := path.Join(registry, resource, namespace, name)
	body, err := r.etcd(ctx, "/v3/kv/put", map[string]string{"key": encode(key), "value": encode(string(object))})
	if err != nil {
		return fmt.Errorf("put %s into etcd: %w", key, err)
	}
	return body.Close()
}

// etcd calls etcd's JSON gateway.
func (r *Rig) etcd(ctx context.Context, call string, message any) (io.ReadCloser, error) {
	content, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.EtcdAddress+call,
		bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("etcd answers %s", response.Status), response.Body.Close())
	}
	return response.Body, nil
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

type watchMessage struct {
	Result struct {
		Canceled bool         `json:"canceled"`
		Reason   string       `json:"cancel_reason"`
		Events   []watchEvent `json:"events"`
	} `json:"result"`
}

// watchEvent is a change of a key; etcd leaves out what is a zero value, the type of a put too.
type watchEvent struct {
	Type string `json:"type"`
	KV   struct {
		Key         []byte `json:"key"`
		Value       []byte `json:"value"`
		ModRevision string `json:"mod_revision"`
		Version     string `json:"version"`
	} `json:"kv"`
}

func (e *watchEvent) stored() (int64, Stored, error) {
	revision, err := strconv.ParseInt(e.KV.ModRevision, 10, 64)
	if err != nil {
		return 0, Stored{}, fmt.Errorf("a revision of %s: %w", e.KV.Key, err)
	}
	s := Stored{Revision: revision, Created: e.KV.Version == "1", Deleted: e.Type == "DELETE", Object: e.KV.Value}
	switch parts := strings.Split(strings.TrimPrefix(string(e.KV.Key), registry), "/"); len(parts) {
	case 2:
		s.Resource, s.Name = parts[0], parts[1]
	case 3:
		s.Resource, s.Namespace, s.Name = parts[0], parts[1], parts[2]
	}
	return revision, s, nil
}
