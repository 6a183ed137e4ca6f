// Package builder creates fixtures of every kind for tests. Fields that a test does not set are
// valid and carry no information. A builder is used once.
package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// apiObject is client.Object of controller-runtime, declared here so that tests which need no client do not link one.
type apiObject interface {
	metav1.Object
	runtime.Object
}

// base has what all builders have. B is the builder itself, O what it builds.
type base[B any, O apiObject] struct {
	self   B
	object O
}

func (b *base[B, O]) start(self B, kind, name string, object O) B {
	object.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	object.SetName(name)
	b.self, b.object = self, object
	return self
}

// In sets the namespace.
func (b *base[B, O]) In(namespace string) B {
	b.object.SetNamespace(namespace)
	return b.self
}

// Mutate changes what has no method of its own.
func (b *base[B, O]) Mutate(change func(O)) B {
	change(b.object)
	return b.self
}

// Build returns the object.
func (b *base[B, O]) Build() O { return b.object }
