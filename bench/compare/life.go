package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/plane"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// The steps of a finding's life.
const (
	createdStep = "created and reconciled"
	decidedStep = "decided and reconciled"
	againStep   = "seen again unchanged"
)

var costSteps = []string{createdStep, decidedStep, againStep}

// importerProcess ends with its step; the other processes run all the time. The REST API's is shown, but not part
// of the total.
const importerProcess = "importer"

var (
	paidProcesses = []string{"kube-apiserver", "etcd", "controller", importerProcess}
	costProcesses = append(paidProcesses, "facade")
)

// lifeCost holds the costs of one finding, averaged over a turn.
type lifeCost struct {
	// cpu is in milliseconds, by step and process.
	cpu map[string]map[string]float64
	// written, stored, owners and heap are in bytes.
	written, stored, owners, heap float64
}

func (c *lifeCost) total() (sum float64) {
	for _, step := range c.cpu {
		for _, process := range paidProcesses {
			sum += step[process]
		}
	}
	return sum
}

// turn is a control plane of one build that findings pass through.
type turn struct {
	*plane.Plane
	build             bench.Build
	folder, namespace string
	// count is the number of findings, which data makes.
	count    int
	data     *dataset.Data
	importer pluginImport
	decider  *decider
	// importerTime is the processor time of the last import.
	importerTime time.Duration
}

// measureLife measures what a finding costs a build from its creation on, with a control plane of its own.
func measureLife(ctx context.Context, b *bench.Bench, build bench.Build) (c *lifeCost, err error) {
	t := &turn{build: build, count: costFindings}
	if b.Short {
		t.count = costInShort
	}
	if t.folder, err = os.MkdirTemp(b.Folder(), "cost-"); err != nil {
		return nil, err
	}
	if t.Plane, err = plane.Start(build.Source, t.folder, build.Operator); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Stop()) }()
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	stop, err := b.Profiled(ctx, t.Config, t.count)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return t.measure(ctx)
}

// prepare creates an organization, and the identities of importer and decider.
func (t *turn) prepare(ctx context.Context) error {
	if err := t.StartController(ctx, t.build.ControllerFlags...); err != nil {
		return err
	}
	organization, err := t.NewOrganization(ctx, "cost", 1)
	if err != nil {
		return err
	}
	t.namespace = organization.Namespace
	t.data = dataset.New(dataset.Options{
		Namespace: t.namespace, Findings: t.count, Reviews: 1, Now: time.Now().UTC().Truncate(24 * time.Hour),
	})
	project := t.data.Projects[0]
	for _, object := range []client.Object{
		&v1alpha1.Repository{ObjectMeta: named(t.namespace, string(project.Spec.RepositoryRef.Name)),
			Spec: t.data.Repositories[0].Spec},
		&v1alpha1.Project{ObjectMeta: named(t.namespace, project.Name), Spec: project.Spec},
	} {
		if err := t.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	file, err := sarifOf(t.count, t.data.Finding)
	if err != nil {
		return err
	}
	if t.importer, err = newPluginImport(ctx, t.Plane, t.build.Plugin, t.folder, project, file); err != nil {
		return err
	}
	if t.decider, err = newTriager(ctx, t.Plane, t.namespace, "bench"); err != nil {
		return err
	}
	return t.StartFacade(ctx)
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func (t *turn) measure(ctx context.Context) (*lifeCost, error) {
	c := &lifeCost{cpu: map[string]map[string]float64{}}
	heap, err := bench.HeapCollected(ctx, t.Config)
	if err != nil {
		return nil, err
	}
	written, err := t.put(ctx)
	if err != nil {
		return nil, err
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
		// reconciles is how often the step reconciles each finding.
		reconciles int
	}{{createdStep, t.importFile, 1}, {decidedStep, t.decide, 1}, {againStep, t.importFile, 0}} {
		if c.cpu[step.name], err = t.step(ctx, step.do, step.reconciles); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	after, err := t.put(ctx)
	if err != nil {
		return nil, err
	}
	c.written = (after - written) / float64(t.count)
	if c.stored, c.owners, err = t.sizes(ctx); err != nil {
		return nil, err
	}
	heapAfter, err := bench.HeapCollected(ctx, t.Config)
	c.heap = float64(heapAfter-heap) / float64(t.count)
	return c, err
}

// step does the work, waits for the controllers, and returns the processor time per finding of each process, in
// milliseconds.
func (t *turn) step(ctx context.Context, do func(context.Context) error, reconciles int) (map[string]float64, error) {
	if err := measure.AwaitIdle(ctx, t.pids()); err != nil {
		return nil, err
	}
	reconciled, err := reconciledBy(ctx, t.Controller)
	if err != nil {
		return nil, err
	}
	before := t.ProcessorTimes()
	t.importerTime = 0
	if err := do(ctx); err != nil {
		return nil, err
	}
	if err := eventually(ctx, settleInterval, caughtUp, func(ctx context.Context) error {
		now, err := reconciledBy(ctx, t.Controller)
		if err == nil && now < reconciled+float64(reconciles*t.count) {
			err = fmt.Errorf("%.0f findings were reconciled", now-reconciled)
		}
		return err
	}); err != nil {
		return nil, err
	}
	if err := measure.AwaitIdle(ctx, t.pids()); err != nil {
		return nil, err
	}
	used := map[string]float64{importerProcess: inFindings(t.importerTime, t.count)}
	for name, after := range t.ProcessorTimes() {
		used[name] = inFindings(after-before[name], t.count)
	}
	return used, nil
}

func inFindings(d time.Duration, findings int) float64 {
	return float64(d) / float64(time.Millisecond) / float64(findings)
}

func (t *turn) pids() []int { return slices.Collect(maps.Values(t.PIDs())) }

// put returns the number of bytes put into etcd.
func (t *turn) put(ctx context.Context) (float64, error) {
	metrics, err := harness.Get(ctx, nil, t.EtcdURL()+"/metrics")
	if err != nil {
		return 0, err
	}
	return harness.Sum(metrics, "etcd_debugging_mvcc_total_put_size_in_bytes", nil)
}

func (t *turn) importFile(ctx context.Context) (err error) {
	t.importerTime, err = t.importer.run(ctx, "--output", "json")
	return err
}

// decide makes one decision about each finding.
func (t *turn) decide(ctx context.Context) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FindingList"))
	if err := t.Client.List(ctx, list, client.InNamespace(t.namespace)); err != nil {
		return err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	if len(names) != t.count {
		return fmt.Errorf("%d findings of %d were imported", len(names), t.count)
	}
	_, err := callAll(ctx, importConcurrent, len(names), func(ctx context.Context, i int) error {
		return t.decider.write(ctx, newDecision(names, "the comparison", i))
	})
	return err
}

// sizes returns the average bytes of a finding in etcd, and the bytes of its managedFields.
func (t *turn) sizes(ctx context.Context) (stored, owners float64, err error) {
	values, err := dataset.Stored(ctx, t.EtcdURL(), t.namespace, "findings")
	if err != nil {
		return 0, 0, err
	}
	for _, value := range values {
		var object struct {
			Metadata struct {
				Generation    int64           `json:"generation"`
				ManagedFields json.RawMessage `json:"managedFields"`
			} `json:"metadata"`
			Spec   v1alpha1.FindingSpec   `json:"spec"`
			Status v1alpha1.FindingStatus `json:"status"`
		}
		if err := json.Unmarshal(value, &object); err != nil {
			return 0, 0, err
		}
		if object.Spec.Triage.UserStatus == v1alpha1.UserStatusOpen ||
			object.Status.ObservedGeneration != object.Metadata.Generation {
			return 0, 0, fmt.Errorf("a finding was not decided or not reconciled: %s", value)
		}
		stored += float64(len(value))
		owners += float64(len(object.Metadata.ManagedFields))
	}
	n := float64(len(values))
	return stored / n, owners / n, nil
}

// pluginImport is the command that imports a SARIF file into a project as people do.
type pluginImport []string

// newPluginImport writes the file, and the credentials of a scanner, into the folder.
func newPluginImport(ctx context.Context, p *plane.Plane, plugin, folder string, project *v1alpha1.Project,
	sarif []byte) (pluginImport, error) {
	file, kubeconfig := filepath.Join(folder, "plugin.sarif"), filepath.Join(folder, "plugin.kubeconfig")
	if err := os.WriteFile(file, sarif, 0o600); err != nil {
		return nil, err
	}
	config, err := p.Member(ctx, project.Namespace, importAccount, testenv.Scanner)
	if err != nil {
		return nil, err
	}
	return pluginImport{plugin, "import", file, "--kubeconfig", kubeconfig, "--category", "Code",
		"--repository", string(project.Spec.RepositoryRef.Name), "--project", project.Name,
	}, harness.WriteKubeconfig(kubeconfig, config, project.Namespace)
}

// run runs the command with further flags, and returns the processor time that it used.
func (i pluginImport) run(ctx context.Context, flags ...string) (time.Duration, error) {
	command := exec.CommandContext(ctx, i[0], slices.Concat(i[1:], flags)...) //nolint:gosec // this project's own program
	if output, err := command.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("import: %w: %s", err, output)
	}
	return command.ProcessState.UserTime() + command.ProcessState.SystemTime(), nil
}
