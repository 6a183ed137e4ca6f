package etcdcost

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// request is a kind of write request to the API server.
type request struct {
	// resource includes its subresource, as in a role: "findings/status".
	resource string
	// verb is POST, PUT, PATCH, APPLY or DELETE.
	verb string
}

// counters are the counters of the API server and of etcd since their start, or the growth of
// these.
type counters struct {
	// requests counts the write requests that the API server granted, for this project's API group
	// and for events.
	requests map[request]float64
	// stored counts the writes of the API server to etcd, by resource. A request that changes
	// nothing is counted in requests but not here.
	stored map[string]float64
	// puts counts the puts of etcd, and putBytes the bytes of their keys and values. They include
	// the API server's own, a few in ten seconds.
	puts, putBytes float64
	// inUse is how many bytes etcd's database uses, including the history that is not yet
	// compacted.
	inUse float64
}

const eventsGroup = "events.k8s.io"

// read reads all counters.
func read(ctx context.Context) (*counters, error) {
	clients, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		return nil, err
	}
	ofServer, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	ofEtcd, err := harness.Get(ctx, nil, env.EtcdURL()+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("read etcd's metrics: %w", err)
	}
	c := &counters{requests: map[request]float64{}, stored: map[string]float64{}}
	if err := c.addRequests(string(ofServer)); err != nil {
		return nil, err
	}
	if err := c.addStored(string(ofServer)); err != nil {
		return nil, err
	}
	for metric, into := range map[string]*float64{
		"etcd_mvcc_put_total":                         &c.puts,
		"etcd_debugging_mvcc_total_put_size_in_bytes": &c.putBytes,
		"etcd_mvcc_db_total_size_in_use_in_bytes":     &c.inUse,
	} {
		if *into, err = harness.Sum(ofEtcd, metric, nil); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// stored is the state of this project's objects and of the events in etcd. Each write or deletion that lasts changes it.
type stored struct {
	// objects and events are the newest revisions and the numbers of both.
	objects, events revision
}

type revision struct{ newest, count string }

// readStored asks etcd, which takes milliseconds.
func readStored(ctx context.Context) (now stored, err error) {
	if now.objects, err = newest(ctx, "/registry/"+v1alpha1.GroupName+"/"); err != nil {
		return now, err
	}
	now.events, err = newest(ctx, "/registry/events/")
	return now, err
}

// newest returns the newest revision and the number of the keys with a prefix that ends in "/".
func newest(ctx context.Context, prefix string) (revision, error) {
	question := map[string]any{
		"key": []byte(prefix), "range_end": []byte(strings.TrimSuffix(prefix, "/") + "0"), // "0" is the character after "/"
		"keys_only": true, "limit": 1, "sort_order": "DESCEND", "sort_target": "MOD",
	}
	var answer struct {
		Count string
		Kvs   []struct {
			ModRevision string `json:"mod_revision"`
		}
	}
	if err := env.AskEtcd(ctx, "/v3/kv/range", question, &answer); err != nil || len(answer.Kvs) == 0 {
		return revision{count: answer.Count}, err
	}
	return revision{newest: answer.Kvs[0].ModRevision, count: answer.Count}, nil
}

// addRequests adds the requests that the API server granted.
func (c *counters) addRequests(text string) error {
	samples, err := harness.Samples(text, "apiserver_request_total")
	if err != nil {
		return err
	}
	for _, s := range samples {
		l := s.Labels
		if l["group"] != v1alpha1.GroupName && l["group"] != eventsGroup || !strings.HasPrefix(l["code"], "2") || l["dry_run"] != "" {
			continue
		}
		switch l["verb"] {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
		default:
			continue
		}
		resource := l["resource"]
		if l["subresource"] != "" {
			resource += "/" + l["subresource"]
		}
		c.requests[request{resource, l["verb"]}] += s.Value
	}
	return nil
}

// addStored adds the API server's writes to etcd.
func (c *counters) addStored(text string) error {
	samples, err := harness.Samples(text, "etcd_requests_total")
	if err != nil {
		return err
	}
	for _, s := range samples {
		switch s.Labels["operation"] {
		case "create", "update", "delete":
			c.stored[s.Labels["resource"]] += s.Value
		}
	}
	return nil
}

// since returns the growth since before.
func (c *counters) since(before *counters) *counters {
	return &counters{
		requests: growth(c.requests, before.requests),
		stored:   growth(c.stored, before.stored),
		puts:     c.puts - before.puts,
		putBytes: c.putBytes - before.putBytes,
		inUse:    c.inUse - before.inUse,
	}
}

func growth[K comparable](now, before map[K]float64) map[K]float64 {
	out := map[K]float64{}
	for key, value := range now {
		if grown := value - before[key]; grown != 0 {
			out[key] = grown
		}
	}
	return out
}

// sameWrites reports whether none of this project's objects was written between the two.
func (c *counters) sameWrites(other *counters) bool { return maps.Equal(c.requests, other.requests) }
