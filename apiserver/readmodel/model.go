package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/changes"
	"github.com/appsec-dev/findings-operator/apiserver/newest"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// ErrNoOrganization is returned for an organization that does not exist, or that has no namespace yet.
var ErrNoOrganization = errors.New("there is no such organization")

// publishInterval is how long changes are gathered, after the first, before readers see them. In a burst, each
// node of a tree is then copied once per interval instead of once per change.
const publishInterval = 10 * time.Millisecond

const (
	// turnPatience is how long a count or a trend waits for its turn.
	turnPatience = 10 * time.Second
	// maxWaiting bounds the counts, and the trends, that wait in an organization.
	maxWaiting = 20
)

// listBatch is how many objects of a list are applied each time the mutex is taken, so that no other writer
// waits for a list of all findings.
const listBatch = 256

// Options of a Model.
type Options struct {
	// Config reaches the Kubernetes API. It is not used if Source is given.
	Config *rest.Config
	// Source returns the source of a kind, in all namespaces; nil means Config's cluster.
	Source func(kube.Kind) kube.Source
	// Unreadables records objects that cannot be read; may be nil.
	Unreadables *kube.Unreadables
	// Log; the zero value discards.
	Log logr.Logger
	// Registerer registers the metrics; may be nil.
	Registerer prometheus.Registerer
	// Clock; nil means the system clock.
	Clock clock.Clock
}

// Model is the read model of every organization. Its methods may be called concurrently.
type Model struct {
	log     logr.Logger
	clock   clock.Clock
	source  func(kube.Kind) kube.Source
	metrics metrics
	// contact holds when data of each kind last arrived; recordContact records it, and returns when.
	contact       *kube.Contact
	recordContact [kinds]func() time.Time
	// unreadables records objects that cannot be read.
	unreadables *kube.Unreadables

	// visible maps an organization's name to its view. The map never changes; it is replaced.
	visible atomic.Pointer[map[string]*view]
	// imports maps an organization's name to its spec.imports. The map never changes; it is replaced.
	imports atomic.Pointer[map[string]*v1alpha1.OrganizationImports]
	ready   atomic.Bool

	// counts and trends let one caller at a time count an organization's findings, and compute its trends. Counts should
	// not wait as long as trends take.
	counts, trends slots.Lines[*view]

	mu         sync.Mutex
	versions   [kinds]*newest.Versions
	synced     [kinds]bool
	partitions map[string]*partition
	// namespaces maps an organization's name to its namespace.
	namespaces map[string]string
	// queue holds the rows to render again; joining is set while some of them are being rendered.
	queue   queue
	joining bool
	// starting marks the end of what was queued when the last kind was listed for the first time; nil before that, and
	// once the model is ready.
	starting *mark
	// noticed holds changes until readers see them. applied holds the states of objects that the model showed
	// before the watch reported them.
	noticed [changes.Kinds][]noticed
	applied map[applied]unreported
	changes *changes.Log

	// changed and enqueued wake the publisher and the joiner.
	changed  chan struct{}
	enqueued chan struct{}
}

// New returns a model that is empty until Run fills it.
func New(options Options) (*Model, error) {
	m := &Model{
		log:         options.Log,
		clock:       options.Clock,
		source:      options.Source,
		unreadables: options.Unreadables,
		partitions:  map[string]*partition{},
		namespaces:  map[string]string{},
		counts:      slots.Lines[*view]{Most: maxWaiting, Patience: turnPatience},
		trends:      slots.Lines[*view]{Most: maxWaiting, Patience: turnPatience},
		queue:       queue{queued: map[rejoin]struct{}{}},
		applied:     map[applied]unreported{},
		changed:     make(chan struct{}, 1),
		enqueued:    make(chan struct{}, 1),
	}
	if m.clock == nil {
		m.clock = clock.RealClock{}
	}
	m.changes = changes.New(changes.DefaultLimits, m.clock)
	if m.unreadables == nil {
		m.unreadables = kube.NewUnreadables(options.Log, nil)
	}
	m.contact = kube.NewContact("findings_read_model_heard_seconds", m.clock)
	for k := range kinds {
		m.versions[k] = newest.New()
		m.recordContact[k] = m.contact.Watch(k.String())
	}
	m.visible.Store(&map[string]*view{})
	m.imports.Store(&map[string]*v1alpha1.OrganizationImports{})
	m.register(options.Registerer)
	if m.source != nil {
		return m, nil
	}
	if options.Config == nil {
		return nil, errors.New("the read model needs a Kubernetes client configuration or sources")
	}
	reader, err := kube.NewReader(options.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the read model: %w", err)
	}
	m.source = reader.Source
	return m, nil
}

// Run keeps the model up to date until ctx ends, and then returns nil. While the Kubernetes API does not
// answer, it retries with a growing delay, and the held data stays readable. It is called once.
func (m *Model) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.reflect(ctx) })
	group.Go(func() error { return m.runJoiner(ctx) })
	group.Go(func() error { return m.runPublisher(ctx) })
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// Ready reports whether every kind has been listed and every row of these lists joined. Once true, it stays true.
func (m *Model) Ready() bool { return m.ready.Load() }

// Namespace returns the namespace of the organization's resources. The error is ErrNoOrganization.
func (m *Model) Namespace(organization string) (string, error) {
	view, err := m.view(organization)
	if err != nil {
		return "", err
	}
	return view.namespace, nil
}

// view returns what readers see of an organization. The error is ErrNoOrganization.
func (m *Model) view(organization string) (*view, error) {
	view, ok := (*m.visible.Load())[organization]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrNoOrganization, organization)
	}
	return view, nil
}

func (m *Model) snapshot(organization string) (*indexes, error) {
	view, err := m.view(organization)
	if err != nil {
		return nil, err
	}
	return view.snapshot.Load(), nil
}

// nothing is what readers see of an organization that does not exist.
var nothing = newIndexes()

// shown is snapshot for readers of single objects: an organization that does not exist shows nothing.
func (m *Model) shown(organization string) *indexes {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return nothing
	}
	return snapshot
}

// add applies a watch event.
func (m *Model) add(c change) error {
	received := m.recordContact[c.kind]()
	m.fallBehind(received)
	if !c.deleted {
		c.object = m.preRender(c.object)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fallBehind(received)
	defer m.signal()
	return m.addEvent(c)
}

// replace applies a list of all objects of a kind, as of a version.
func (m *Model) replace(kind kind, objects []metav1.Object, listVersion string) error {
	received := m.recordContact[kind]()
	m.fallBehind(received)
	for batch := range slices.Chunk(objects, listBatch) {
		for i := range batch {
			batch[i] = m.preRender(batch[i])
		}
		if err := m.writeAll(kind, batch, listVersion); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fallBehind(received)
	defer m.signal()
	missing, err := m.versions[kind].Missing(objects, listVersion)
	if err != nil {
		return fmt.Errorf("list of %s: %w", kind, err)
	}
	for _, gone := range missing {
		if err := m.write(change{kind: kind, object: gone, deleted: true}); err != nil {
			return err
		}
	}
	m.noticeList(kind, listVersion)
	if !m.synced[kind] {
		m.synced[kind] = true
		m.log.Info("Listed", "kind", kind.String(), "objects", len(objects))
	}
	m.updateReady()
	return nil
}

// writeAll applies some of the objects of a list.
func (m *Model) writeAll(kind kind, objects []metav1.Object, listVersion string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, object := range objects {
		if err := m.write(change{kind: kind, object: object, listed: listVersion}); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) partition(namespace string) *partition {
	p := m.partitions[namespace]
	if p == nil {
		p = newPartition(namespace)
		m.partitions[namespace] = p
	}
	return p
}

// assignOwner assigns a namespace to the one organization whose status names it. If several name it, none gets it:
// showing findings to the wrong organization is worse than showing none.
func (m *Model) assignOwner(namespace string) {
	var owner string
	for organization, its := range m.namespaces {
		if its != namespace {
			continue
		}
		if owner != "" {
			m.log.Error(nil, "Two organizations name the same namespace in status; neither is shown",
				"namespace", namespace, "organizations", []string{owner, organization})
			owner = ""
			break
		}
		owner = organization
	}
	p := m.partition(namespace)
	before := p.organization()
	changed := p.claim(owner)
	if changed && before != "" {
		m.changes.Remove(before)
	}
	if changed && owner != "" {
		m.changes.Add(owner, m.lastNoticed())
		for k := organizations + 1; k < kinds && p.objects() > 0; k++ {
			m.enqueue(rejoin{namespace: namespace, rows: k, by: byAll})
			p.view.unjoined++
		}
	}
	if p.empty() {
		delete(m.partitions, namespace)
	}
}

// publishOrganizations shows readers the current organizations.
func (m *Model) publishOrganizations() {
	visible := make(map[string]*view, len(m.namespaces))
	for organization, namespace := range m.namespaces {
		if p := m.partitions[namespace]; p != nil && p.organization() == organization && p.view.unjoined == 0 {
			visible[organization] = p.view
		}
	}
	m.visible.Store(&visible)
}

// updateReady makes the model ready once every kind is listed and everything queued by then is joined. Later entries do
// not count, because an organization that keeps changing a repository would keep the model from becoming ready.
func (m *Model) updateReady() {
	switch {
	case m.ready.Load() || m.starting != nil || slices.Contains(m.synced[:], false):
	case m.joining || !m.queue.empty():
		end := m.queue.end()
		m.starting = &end
	default:
		m.becomeReady()
	}
}

func (m *Model) becomeReady() {
	m.starting = nil
	m.publishAll()
	m.ready.Store(true)
	m.log.Info("Ready: every kind is listed and joined")
}
