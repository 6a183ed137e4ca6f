package importer

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const (
	// pageSize is the page size of a list. Objects are decoded and trimmed one by one as they arrive, so that a page of
	// large ones is never entirely in memory.
	pageSize = 500
	// maxExpired bounds how often a list is restarted because its continue token expired.
	maxExpired = 3
)

// List lists objects of a kind in a namespace, page by page, and returns the names of those that cannot be read, which
// do not affect the others. The objects are trimmed (kube.Trim).
func List[T any](ctx context.Context, c *Client, namespace string,
	selector fields.Selector) (objects []T, unreadable []string, err error) {
	options := metav1.ListOptions{FieldSelector: selector.String()}
	unreadable, err = eachPage(ctx, c, namespace, options, func(page []T, first bool) {
		if first {
			objects = nil
		}
		objects = append(objects, page...)
	})
	if err != nil {
		return nil, nil, err
	}
	return objects, unreadable, nil
}

// eachPage lists like List, but passes on each page. If the list is restarted, it passes on a first page again.
func eachPage[T any](ctx context.Context, c *Client, namespace string, options metav1.ListOptions,
	do func(page []T, first bool)) (unreadable []string, err error) {
	source := c.reader.In(namespace, kindOf[T]())
	options.Limit = pageSize
	for expired := 0; ; {
		var page []T
		var odd []string
		var meta metav1.ListMeta
		err := Retry(ctx, func(ctx context.Context) (err error) {
			page, odd = make([]T, 0, pageSize), nil
			meta, err = source.List(ctx, options, func(object runtime.Object) error {
				if u, is := object.(*kube.Unreadable); is {
					odd = append(odd, u.Name)
					return nil
				}
				if m, is := object.(metav1.Object); is {
					kube.Trim(m)
				}
				if object, is := any(object).(*T); is {
					page = append(page, *object)
				}
				return nil
			})
			return err
		})
		switch {
		case apierrors.IsResourceExpired(err) && expired < maxExpired:
			// Restart the list: it took longer than the API server keeps old versions.
			unreadable, options.Continue = nil, ""
			expired++
			continue
		case err != nil:
			return nil, err
		}
		do(page, options.Continue == "")
		unreadable = append(unreadable, odd...)
		if options.Continue = meta.Continue; options.Continue == "" {
			return unreadable, nil
		}
	}
}

// Read reads an object into its Go type. It returns nil if the object does not exist, and unreadable if it cannot be
// decoded.
func Read[T any](ctx context.Context, c *Client, namespace, name string) (object *T, unreadable bool, err error) {
	var read runtime.Object
	err = Retry(ctx, func(ctx context.Context) (err error) {
		read, err = c.reader.Read(ctx, namespace, name, kindOf[T]())
		return err
	})
	if kube.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	object, ok := any(read).(*T)
	return object, !ok, nil
}

// kindOf returns the kind of T, one of this project's.
func kindOf[T any]() kube.Kind {
	kind, _ := kube.KindOf(any(new(T)))
	return kind
}

// PassedOver returns the message that an object cannot be read.
func PassedOver(kind, name string) string {
	return fmt.Sprintf("%s %s cannot be read and is skipped; correct it with kubectl", kind, name)
}

// selector selects the objects of a tool in the project. The API server compares the fields in order until one differs,
// so the most selective ones come first.
func (im *Importer) selector(project, tool string) fields.Selector {
	return fields.AndSelectors(
		fields.OneTermEqualSelector("spec.projectRef.name", project),
		fields.OneTermEqualSelector("spec.tool", tool),
		fields.OneTermEqualSelector("spec.repositoryRef.name", im.target.Repository),
	)
}

// scans returns the scans of the tool in the project, under all its names, and the names of unreadable ones.
func (im *Importer) scans(ctx context.Context, j *job) (h history, unreadable []string, err error) {
	h = history{}
	for _, tool := range j.names() {
		odd, err := eachScan(ctx, im.client, im.target.Namespace, im.selector(j.project, tool), h.add)
		if err != nil {
			return nil, nil, fmt.Errorf("list the scans of project %s: %w", j.project, err)
		}
		unreadable = append(unreadable, odd...)
	}
	return h, unreadable, nil
}

// eachScan lists the scans without v1alpha1.UncountedLabel and passes on each page, some scans perhaps twice. Those of
// pull requests are large and may be very many.
func eachScan(ctx context.Context, c *Client, namespace string, selector fields.Selector,
	do func(page []v1alpha1.Scan)) (unreadable []string, err error) {
	options := metav1.ListOptions{FieldSelector: selector.String(), LabelSelector: "!" + v1alpha1.UncountedLabel}
	return eachPage(ctx, c, namespace, options, func(page []v1alpha1.Scan, _ bool) { do(page) })
}

// listed holds the findings of a tool in a project, under all its names. Jobs share it, so it does not change.
type listed struct {
	// scans lists the recorded scans of the tool when it is first called, which is later than the jobs' own list.
	scans    func() (history, error)
	findings []v1alpha1.Finding
	// unreadable are the names of findings that cannot be read.
	unreadable []string
}

// listFindings lists the findings of the job's tool in its project.
func (im *Importer) listFindings(ctx context.Context, j *job) (*listed, error) {
	findings, unreadable, err := j.findings(ctx, im.client, im.target.Namespace,
		func(tool string) fields.Selector { return im.selector(j.project, tool) })
	if err != nil {
		return nil, fmt.Errorf("list the findings of project %s: %w", j.project, err)
	}
	return &listed{findings: findings, unreadable: unreadable, scans: sync.OnceValues(func() (history, error) {
		scans, _, err := im.scans(ctx, j)
		return scans, err
	})}, nil
}

// known divides the listed findings by what the job may do with them.
func (j *job) known(l *listed) (*known, error) {
	j.summary.warnOf("finding", l.unreadable)
	former := func(f v1alpha1.Finding) bool { return f.Spec.Tool == j.GivenFormer }
	if j.GivenFormer != "" && !slices.ContainsFunc(l.findings, former) {
		j.summary.Warnings = append(j.summary.Warnings,
			fmt.Sprintf("no finding of the tool %q is in the project: there is nothing to take over", j.GivenFormer))
	}
	scans := j.scans
	if !scans.knowAll(l.findings) {
		// Another job may have begun since the scans were read.
		var err error
		if scans, err = l.scans(); err != nil {
			return nil, err
		}
	}
	k := scans.knownTo(j.Batch, l.findings, l.unreadable)
	k.renames, k.othersLater = j.group.renames, j != j.group.jobs[len(j.group.jobs)-1]
	k.adopted = j.group.adopted
	own, taken := divide(k.findings, func(f *v1alpha1.Finding) bool { return !k.adopted[f.Name] })
	if len(taken) > 0 {
		k.findings, k.others = own, slices.Concat(k.others, taken)
	}
	return k, nil
}

// Projects returns the projects of a repository, and the names of those that cannot be read.
func Projects(ctx context.Context, c *Client,
	repository client.ObjectKey) (list []v1alpha1.Project, unreadable []string, err error) {
	list, unreadable, err = List[v1alpha1.Project](ctx, c, repository.Namespace,
		fields.OneTermEqualSelector("spec.repositoryRef.name", repository.Name))
	if err != nil {
		err = fmt.Errorf("list the projects of repository %s: %w", repository.Name, err)
	}
	return list, unreadable, err
}
