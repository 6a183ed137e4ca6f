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
	"strconv"
	"strings"
	"time"
)

// registry is the prefix of this project's objects in etcd. marker is a key below it that belongs
// to no resource: everything written before it has a lower revision.
const (
	registry = "/registry/appsec.dev/"
	marker   = registry + "zz-marker"
)

// historyTimeout bounds one read of the history.
const historyTimeout = time.Minute

// Stored is a state of an object in etcd's history, or its removal.
type Stored struct {
	// Revision is the store-wide revision of the write.
	Revision int64
	// Resource, Namespace and Name identify the object; Namespace is empty for cluster-scoped
	// objects.
	Resource, Namespace, Name string
	// Created is set for the first state under the name, Deleted for the removal.
	Created, Deleted bool
	// Object is the JSON of the object; empty for a removal.
	Object []byte
}

// History reads every state of this project's objects in etcd's history after a revision, in order,
// and returns the last revision that it read. The tests rely on it because it contains even states
// that were stored very briefly.
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
				continue // the marker of an earlier read
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

// watchEvent is a change of a key; etcd omits zero values, including the type of a put.
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
