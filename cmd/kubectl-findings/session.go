package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const (
	// pageSize is the number of objects per page of a list.
	pageSize = 500
	// callTimeout bounds one request.
	callTimeout = time.Minute
	// fieldManager is the field manager of this program's writes.
	fieldManager = "kubectl-findings"
	// strict makes the API server refuse fields that its CRDs do not have. Otherwise it drops them: decisions would be
	// stored without their expiry, and triage operations without a filter.
	strict = client.FieldValidation(metav1.FieldValidationStrict)
)

// kindOperation is a kind that older versions of findings-operator lack.
const kindOperation = "TriageOperation"

// session is a connection to an API server and the namespace to work in.
type session struct {
	client    client.Client
	namespace string
	// config is how the client connects, and chosen are the arguments that chose it.
	config *rest.Config
	chosen []string
	// errOut gets warnings about unreadable objects, and unreadable counts them.
	errOut     io.Writer
	unreadable int
}

// open returns a session for the flags. It sends no request.
func (c cli) open() (*session, error) {
	namespace, err := c.kubeconfig.namespace()
	if err != nil {
		return nil, err
	}
	config, err := c.kubeconfig.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	connected, err := newClient(config)
	return &session{client: connected, namespace: namespace, config: config, chosen: c.kubeconfig.chosen(),
		errOut: c.streams.ErrOut}, err
}

// newClient returns a client without discovery.
func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme,
		authorizationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	mapper := kube.NewMapper()
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	return client.New(kube.ClientConfig(config), client.Options{Scheme: scheme, Mapper: mapper})
}

// get reads one object of the session's namespace.
func (s *session) get(ctx context.Context, name string, into client.Object) error {
	reading, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return unlessInterrupted(ctx, s.client.Get(reading, client.ObjectKey{Namespace: s.namespace, Name: name}, into))
}

// now returns the API server's time. It sends a request, because no response may have contained the time yet: any
// response does, even a refusal. Without a response the time is not guessed.
func (s *session) now(ctx context.Context) (time.Time, error) {
	reading, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := s.client.Get(reading, client.ObjectKey{Name: s.namespace},
		kube.MetadataOf(corev1.SchemeGroupVersion.WithKind("Namespace")))
	if err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		return time.Time{}, fmt.Errorf("read the time of the API server: %w", unlessInterrupted(ctx, err))
	}
	return apitime.Now(), nil
}

// unlessInterrupted returns the error of a read, or why ctx was canceled before it: the client library reports a
// cancellation while reading a response as a fault of the API server.
func unlessInterrupted(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

// create sends one write. Like patch, it completes even if the command is interrupted.
func (s *session) create(ctx context.Context, object client.Object) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	return s.explainUnknownFields(s.client.Create(ctx, object, client.FieldOwner(fieldManager), strict))
}

// patch sends one write. It completes even if the command is interrupted, so that its outcome is known.
func (s *session) patch(ctx context.Context, object client.Object, patch client.Patch,
	options ...client.PatchOption) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	options = append(options, client.FieldOwner(fieldManager), strict)
	return s.explainUnknownFields(s.client.Patch(ctx, object, patch, options...))
}

// explainUnknownFields explains fields that the API server does not know, because its own error quotes the whole
// object.
func (s *session) explainUnknownFields(err error) error {
	unknown := kube.UnknownFields(err)
	if unknown == "" {
		return err
	}
	return apierrors.NewBadRequest(fmt.Sprintf("nothing was written, because the CRDs of the API server %s are older "+
		"than this plugin (%s): upgrade its findings-operator, the CRDs too, or use a plugin of the server's version",
		s.server(), unknown))
}

// eachPage lists objects of a kind page by page, so that neither side holds a hundred thousand of them, and stops after
// limit; 0: no limit. Objects that visit could not read do not count, and after one visit may get more than limit.
func (s *session) eachPage(ctx context.Context, kind string, limit int64, options client.ListOptions,
	visit func([]unstructured.Unstructured) error) error {
	var seen int64
	before := s.unreadable
	return kube.Pages(func(token string) (next string, err error) {
		options.Limit, options.Continue = pageSize, token
		// After an unreadable object, request full pages: many may be unreadable, and would arrive one by one.
		if limit > 0 && s.unreadable == before {
			options.Limit = min(pageSize, limit-seen)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
		listing, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if err := unlessInterrupted(ctx, s.client.List(listing, list, &options)); err != nil {
			return "", err
		}
		if err := visit(list.Items); err != nil {
			return "", err
		}
		if seen += int64(len(list.Items)); limit > 0 && seen-int64(s.unreadable-before) >= limit {
			return "", nil
		}
		return list.GetContinue(), nil
	})
}

// errEnough is for a visit of eachPage that needs no further objects.
var errEnough = errors.New("enough")

// inNamespace selects the objects of the session's namespace.
func (s *session) inNamespace() client.ListOptions { return client.ListOptions{Namespace: s.namespace} }

// all returns every object of a kind in the namespace, for kinds with few objects. If there are none, it checks that
// the namespace exists.
func (s *session) all(ctx context.Context, n need) (items []unstructured.Unstructured, err error) {
	err = s.eachPage(ctx, n.kind, 0, s.inNamespace(),
		func(page []unstructured.Unstructured) error {
			items = append(items, page...)
			return nil
		})
	if err != nil {
		return nil, s.explain(err, n)
	}
	if len(items) == 0 {
		return nil, s.checkPlace(ctx)
	}
	return items, nil
}

// readable yields listed objects with their Go types. It leaves out unreadable ones, so that they do not affect the
// others, and reports each on standard error.
func readable[T any](s *session, items []unstructured.Unstructured) iter.Seq2[unstructured.Unstructured, *T] {
	return func(yield func(unstructured.Unstructured, *T) bool) {
		for _, item := range items {
			object, err := decode[T](item)
			if err != nil {
				s.warnOf(item, err)
			} else if !yield(item, &object) {
				return
			}
		}
	}
}

// repair returns the advice about an object that cannot be read.
func (s *session) repair(kind, name, namespace string) string {
	return "Upgrade the plugin if it is older than the service; else repair it with: " +
		s.commandIn(namespace, "edit", kube.Resource(kind)+"."+v1alpha1.GroupName, name)
}

func (s *session) warnOf(item unstructured.Unstructured, err error) {
	switch s.unreadable++; {
	case s.unreadable <= maxNamed:
		fmt.Fprintf(s.errOut, "%s %s cannot be read and is left out: %s\n%s\n", item.GetKind(), item.GetName(),
			printable(err.Error()), s.repair(item.GetKind(), item.GetName(), item.GetNamespace()))
	case s.unreadable == maxNamed+1:
		fmt.Fprintln(s.errOut, "More objects cannot be read and are left out: "+
			"the metric findings_unreadable_object_info names them")
	}
}

// decode converts a listed object to its Go type.
func decode[T any](object unstructured.Unstructured) (T, error) {
	var into T
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &into)
	return into, err
}

// await reads the object until done returns true or ctx ends. If another one has been created under its name, the error
// is that of a deleted object.
func (s *session) await(ctx context.Context, object client.Object, done func() (bool, error)) error {
	name, uid := object.GetName(), object.GetUID()
	return poll(ctx, func() (bool, error) {
		// Decoding would keep what is not in the response.
		if err := runtime.SetZeroValue(object); err != nil {
			return false, err
		}
		if err := s.get(ctx, name, object); err != nil {
			return false, err
		}
		if uid == "" { // only the name was known
			uid = object.GetUID()
		}
		if object.GetUID() != uid {
			return false, errors.Join(replaced(object), runtime.SetZeroValue(object))
		}
		return done()
	})
}

// replaced returns the error for an object that no longer exists, although another one has its name.
func replaced(another client.Object) error {
	kind, _ := kube.KindOf(another)
	gone := apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource(kind.Resource).GroupResource(), another.GetName())
	return fmt.Errorf("%w: it was deleted, and another one was created under its name", gone)
}
