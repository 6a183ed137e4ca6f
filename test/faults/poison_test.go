package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
)

// poisoned is the namespace of another organization whose objects cannot be read.
const poisoned = v1alpha1.NamespacePrefix + "poison"

// poison stores one object per kind that its Go type cannot hold, lets both processes observe them both at
// runtime and at startup, and removes them.
func (s *trial) poison() {
	s.t.Helper()
	crds, err := corpus.CRDs()
	s.must(err)
	kinds := slices.Sorted(maps.Keys(crds))
	s.verdict.injected(len(kinds))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: poisoned}}
	s.must(client.IgnoreAlreadyExists(s.Client.Create(s.t.Context(), namespace)))
	for _, kind := range kinds {
		content, err := corpus.Stored(crds[kind], poisoned, "poison", corpus.Unreadables()[kind])
		s.must(err)
		s.must(s.Put(s.t.Context(), crds[kind].Spec.Names.Plural, namespaceOf(crds[kind]), "poison", content))
	}
	s.awaitPoison(1)
	s.awaitProgress(coolDown)
	s.killFacade()
	s.must(s.leader().Restart())
	s.awaitPoison(1)
	s.awaitProgress(coolDown)
	for _, kind := range kinds {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
		object.Namespace, object.Name = namespaceOf(crds[kind]), "poison"
		s.must(s.Client.Delete(s.t.Context(), object))
	}
	s.awaitPoison(0)
}

func namespaceOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	if crd.Spec.Scope == apiextensionsv1.ClusterScoped {
		return ""
	}
	return poisoned
}

// awaitPoison waits until both processes count that many unreadable findings.
func (s *trial) awaitPoison(count int) {
	s.t.Helper()
	want := fmt.Sprintf("findings_unreadable_objects{kind=\"findings\"} %d\n", count)
	for name, process := range map[string]*rig.Replica{"the facade": s.Facade, "the controller": s.leader()} {
		s.eventually(name+" counts what cannot be read", func(ctx context.Context) error {
			_, body, err := fetch(ctx, "http://"+process.MetricsAddress+"/metrics")
			if err != nil || !strings.Contains(body, want) {
				return fmt.Errorf("it does not: %w", err)
			}
			return nil
		})
	}
}
