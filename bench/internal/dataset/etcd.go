package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	// prefix is where kube-apiserver keeps custom resources by default.
	prefix = "/registry/" + v1alpha1.GroupName + "/"
	// batch is the number of objects per transaction; etcd accepts 1.5 MB and 128 operations.
	batch = 96
	// writers is the number of concurrent batches.
	writers = 4
)

// Loaded describes what was put into etcd.
type Loaded struct {
	// Objects and Bytes count all objects and the bytes of their values; FindingBytes only those of the findings.
	Objects             int
	Bytes, FindingBytes int64
}

// put is one operation of a transaction of etcd's JSON interface, in which bytes are base64.
type put struct {
	Put struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	} `json:"requestPut"`
}

// after is put in last. All objects of a batch have the same revision, and an API server that has
// observed part of a batch already considers itself up to date with that revision. Once it observes a
// later revision, it has observed everything before.
var after = func() (p put) {
	p.Put.Key, p.Put.Value = []byte("/loaded"), []byte("{}")
	return p
}()

// Into puts everything into the etcd at that address, bypassing the API server, which observes the
// objects through its watch. Findings come last, because they refer to the others.
func (d *Data) Into(ctx context.Context, etcd string) (Loaded, error) {
	var before []put
	add := func(resource, name string, object any) {
		before = append(before, d.put(resource, name, object))
	}
	for _, o := range d.Repositories {
		add("repositories", o.Name, o)
	}
	for _, o := range d.Projects {
		add("projects", o.Name, o)
	}
	for _, o := range d.Reviews {
		add("reviews", o.Name, o)
	}
	for _, o := range d.Issues {
		add("reviewissues", o.Name, o)
	}
	bytes, err := write(ctx, etcd, len(before), func(i int) put { return before[i] })
	if err != nil {
		return Loaded{}, fmt.Errorf("load repositories and reviews: %w", err)
	}
	findingBytes, err := write(ctx, etcd, d.Findings(), func(i int) put {
		f := d.Finding(i)
		return d.put("findings", f.Name, f)
	})
	if err != nil {
		return Loaded{}, fmt.Errorf("load findings: %w", err)
	}
	if _, err := write(ctx, etcd, 1, func(int) put { return after }); err != nil {
		return Loaded{}, fmt.Errorf("end the load: %w", err)
	}
	return Loaded{Objects: len(before) + d.Findings(), Bytes: bytes + findingBytes, FindingBytes: findingBytes}, nil
}

func (d *Data) put(resource, name string, object any) put {
	var p put
	p.Put.Key = []byte(keysOf(d.options.Namespace, resource) + name)
	p.Put.Value = append(encode(object), '\n')
	return p
}

// write puts n objects in, and returns the bytes of their values.
func write(ctx context.Context, etcd string, n int, object func(int) put) (int64, error) {
	var written atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for from := 0; from < n && ctx.Err() == nil; from += batch {
		group.Go(func() error {
			var transaction struct {
				Success []put `json:"success"`
			}
			for i := from; i < min(n, from+batch); i++ {
				p := object(i)
				written.Add(int64(len(p.Put.Value)))
				transaction.Success = append(transaction.Success, p)
			}
			return call(ctx, etcd, "/v3/kv/txn", transaction, &struct{}{})
		})
	}
	err := group.Wait()
	return written.Load(), err
}

// Revision returns etcd's revision, which increases by one with every write.
func Revision(ctx context.Context, etcd string) (int64, error) {
	var answer struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	query := map[string]any{"key": []byte("/"), "countOnly": true}
	if err := call(ctx, etcd, "/v3/kv/range", query, &answer); err != nil {
		return 0, err
	}
	return strconv.ParseInt(answer.Header.Revision, 10, 64)
}

// RevisionsSince returns the revisions, by object name, of the namespace's objects of the resource that were written
// after that revision.
func RevisionsSince(ctx context.Context, etcd string, revision int64, namespace, resource string) (map[string]int64,
	error) {
	return revisionsSince(ctx, etcd, revision, keysOf(namespace, resource))
}

// AllSince returns the objects of all kinds that were written after that revision, as
// RESOURCE/NAMESPACE/NAME.
func AllSince(ctx context.Context, etcd string, revision int64) ([]string, error) {
	written, err := revisionsSince(ctx, etcd, revision, prefix)
	return slices.Sorted(maps.Keys(written)), err
}

// revisionsSince returns the revisions of the keys with that prefix, by the rest of the key.
func revisionsSince(ctx context.Context, etcd string, revision int64, begin string) (map[string]int64, error) {
	var answer struct {
		Kvs []struct {
			Key      []byte `json:"key"`
			Revision string `json:"mod_revision"`
		} `json:"kvs"`
	}
	query := map[string]any{"key": []byte(begin), "range_end": endOf(begin), "keysOnly": true,
		"minModRevision": strconv.FormatInt(revision+1, 10)}
	if err := call(ctx, etcd, "/v3/kv/range", query, &answer); err != nil {
		return nil, err
	}
	out := make(map[string]int64, len(answer.Kvs))
	for _, kv := range answer.Kvs {
		written, err := strconv.ParseInt(kv.Revision, 10, 64)
		if err != nil {
			return nil, err
		}
		out[strings.TrimPrefix(string(kv.Key), begin)] = written
	}
	return out, nil
}

// Stored returns the values of the objects of the namespace's resource.
func Stored(ctx context.Context, etcd, namespace, resource string) ([][]byte, error) {
	from := keysOf(namespace, resource)
	var answer struct {
		Kvs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	query := map[string]any{"key": []byte(from), "range_end": endOf(from)}
	if err := call(ctx, etcd, "/v3/kv/range", query, &answer); err != nil {
		return nil, err
	}
	values := make([][]byte, len(answer.Kvs))
	for i := range answer.Kvs {
		values[i] = answer.Kvs[i].Value
	}
	return values, nil
}

// keysOf returns the prefix of the keys of the namespace's resource.
func keysOf(namespace, resource string) string { return prefix + resource + "/" + namespace + "/" }

// endOf returns the end of the range of keys with that prefix.
func endOf(begin string) []byte {
	end := []byte(begin)
	end[len(end)-1]++
	return end
}

// patience bounds the retries while etcd is overloaded and answers that it is unavailable.
var patience = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 12, Cap: 10 * time.Second}

// call sends a request to etcd, and retries while etcd is overloaded: a repeated put has no further
// effect.
func call(ctx context.Context, etcd, path string, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var last error
	err = wait.ExponentialBackoffWithContext(ctx, patience, func(ctx context.Context) (bool, error) {
		last = callOnce(ctx, etcd, path, content, into)
		return !errors.Is(last, errBusy), nil
	})
	if last != nil {
		return last
	}
	return err
}

var errBusy = errors.New("etcd is busy")

func callOnce(ctx context.Context, etcd, path string, content []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, etcd+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	status, answer, err := harness.Answer(nil, request)
	switch {
	case err != nil:
		return err
	case status == http.StatusServiceUnavailable:
		return fmt.Errorf("%w: %.500s", errBusy, answer)
	case status != http.StatusOK:
		return fmt.Errorf("etcd answers %d: %.500s", status, answer)
	}
	return json.Unmarshal(answer, into)
}
