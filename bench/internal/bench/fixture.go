package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
	"github.com/appsec-dev/findings-operator/bench/internal/load"
	"github.com/appsec-dev/findings-operator/bench/internal/plane"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// organization is the name of each fixture's organization.
	organization = "bench"
	// keys is the organization's number of keys. With small answers, a single key would exceed its
	// limit per minute.
	keys = 4
	// reader is a service account that may read the organization's namespace.
	reader = "bench-reader"
	// answerTimeout bounds requests that are not part of a measurement.
	answerTimeout = time.Minute
)

// Fixture is a control plane with an organization whose findings and reviews are loaded.
type Fixture struct {
	*plane.Plane
	// Size is the number of findings.
	Size         int
	Organization *plane.Organization
	Data         *dataset.Data
	// Loaded describes what is in etcd, and LoadTook how long loading took.
	Loaded   dataset.Loaded
	LoadTook time.Duration

	// readerToken authenticates the reader at the API server.
	readerToken string
	postgres    *Postgres
	endProfiles func() error
}

// Close ends everything.
func (f *Fixture) Close() error {
	var errs []error
	if f.endProfiles != nil {
		errs = append(errs, f.endProfiles())
	}
	if f.postgres != nil {
		errs = append(errs, f.postgres.close())
	}
	return errors.Join(append(errs, f.Stop())...)
}

// fill creates the organization and its reader, loads the data, and starts the REST API.
func (f *Fixture) fill(ctx context.Context, options dataset.Options) error {
	if err := f.StartController(ctx); err != nil {
		return err
	}
	var err error
	if f.Organization, err = f.NewOrganization(ctx, organization, keys); err != nil {
		return err
	}
	config, err := f.Member(ctx, f.Organization.Namespace, reader, testenv.Viewer)
	if err != nil {
		return err
	}
	f.readerToken = config.BearerToken
	if err := f.StopController(); err != nil {
		return err
	}
	options.Namespace, options.Now = f.Organization.Namespace, time.Now().UTC().Truncate(24*time.Hour)
	f.Data = dataset.New(options)
	began := time.Now()
	if f.Loaded, err = f.Data.Into(ctx, f.EtcdURL()); err != nil {
		return err
	}
	f.LoadTook = time.Since(began)
	return f.StartFacade(ctx)
}

// FacadeTarget returns a target that requests a path of the REST API, with each of the
// organization's keys in turn.
func (f *Fixture) FacadeTarget(name, path string) load.Target {
	target := load.Target{Name: name, Address: f.Facade.Address}
	for _, token := range f.Organization.Tokens {
		target.Requests = append(target.Requests, load.Get(f.Facade.Address, path, "Authorization: Bearer "+token))
	}
	return target
}

// KubeTarget returns a target that lists the organization's objects of a resource at the API
// server, as a service account that may read them; the query is that of a LIST.
func (f *Fixture) KubeTarget(name, resource, query string) (load.Target, error) {
	server, err := url.Parse(f.Config.Host)
	if err != nil {
		return load.Target{}, err
	}
	path := fmt.Sprintf("/apis/%s/namespaces/%s/%s?%s", v1alpha1.GroupVersion, f.Organization.Namespace, resource, query)
	request := load.Get(server.Host, path, "Authorization: Bearer "+f.readerToken, "Accept: application/json")
	return load.Target{Name: name, Address: server.Host, CA: f.Config.CAData, Requests: [][]byte{request}}, nil
}

// Get requests a path of the REST API once.
func (f *Fixture) Get(ctx context.Context, path string) ([]byte, error) {
	return get(ctx, "http://"+f.Facade.Address+path, f.Organization.Tokens[0])
}

func get(ctx context.Context, url, token string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	// As the measuring client does: a compressed body has another length.
	request.Header.Set("Accept-Encoding", "identity")
	return Ask(nil, request, token)
}

// Ask sends a request with the token of a key, and returns the body of its answer; any status but 200 and 202 is an
// error. A nil client means the default one.
func Ask(client *http.Client, request *http.Request, token string) ([]byte, error) {
	request.Header.Set("Authorization", "Bearer "+token)
	status, content, err := harness.Answer(client, request)
	if err == nil && status != http.StatusOK && status != http.StatusAccepted {
		err = fmt.Errorf("%s %s: %d: %s", request.Method, request.URL, status, content)
	}
	return content, err
}

// Walk reads a list of the REST API to its end. It passes each item to each, unless that is nil,
// and returns the paths of all pages.
func (f *Fixture) Walk(ctx context.Context, path string, each func(json.RawMessage) error) (pages []string, err error) {
	return walk(ctx, f.Get, path, each)
}

// walk is Walk for any server that answers as the REST API does.
func walk(ctx context.Context, get func(context.Context, string) ([]byte, error), path string,
	each func(json.RawMessage) error) (pages []string, err error) {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	at := path
	for {
		pages = append(pages, at)
		content, err := get(ctx, at)
		if err != nil {
			return nil, err
		}
		var page struct {
			Items      []json.RawMessage `json:"items"`
			NextCursor string            `json:"next_cursor"`
		}
		if err := json.Unmarshal(content, &page); err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if each == nil {
				break
			}
			if err := each(item); err != nil {
				return nil, err
			}
		}
		if page.NextCursor == "" {
			return pages, nil
		}
		at = path + separator + "cursor=" + url.QueryEscape(page.NextCursor)
	}
}

// KubePages returns the continue tokens of all pages of a LIST of findings with that limit; the first token is empty.
func (f *Fixture) KubePages(ctx context.Context, limit int64) (tokens []string, err error) {
	err = kube.Pages(func(token string) (next string, err error) {
		tokens = append(tokens, token)
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FindingList"))
		err = f.Client.List(ctx, list, client.InNamespace(f.Organization.Namespace),
			&client.ListOptions{Limit: limit, Continue: token})
		return list.Continue, err
	})
	return tokens, err
}
