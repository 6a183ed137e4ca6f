// Package kube reads and writes this project's kinds through the Kubernetes API, for the controllers and the facade.
//
// An unreadable object never stops its lists and watches: only that object is missing.
package kube

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// CallTimeout bounds a call to the Kubernetes API.
const CallTimeout = 5 * time.Second

// NewClient returns a client of this project's kinds at the API server that config names. It
// needs neither discovery nor a REST mapper. An object that cannot be decoded is an error.
func NewClient(config *rest.Config) (rest.Interface, error) {
	_, serializer, err := decoding()
	if err != nil {
		return nil, err
	}
	return newClient(config, serializer)
}

// NewReader returns a client for lists and watches. Its watches return an object that cannot be decoded as an
// Unreadable.
func NewReader(config *rest.Config) (*Reader, error) {
	scheme, serializer, err := decoding()
	if err != nil {
		return nil, err
	}
	client, err := newClient(config, tolerant{serializer, scheme})
	return &Reader{client}, err
}

// As returns the config of a client that impersonates a namespace's service account.
func As(config *rest.Config, namespace, account string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + account}
	return config
}

func decoding() (*runtime.Scheme, runtime.NegotiatedSerializer, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("register the API group: %w", err)
	}
	return scheme, serializer.NewCodecFactory(scheme).WithoutConversion(), nil
}

func newClient(config *rest.Config, serializer runtime.NegotiatedSerializer) (rest.Interface, error) {
	config = ClientConfig(config)
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the Kubernetes API: %w", err)
	}
	return client, nil
}
