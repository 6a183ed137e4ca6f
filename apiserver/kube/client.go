// Package kube makes the facade's clients of the Kubernetes API.
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
// needs neither discovery nor a REST mapper.
func NewClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	// The rate limiter of the API server knows more than one in the client would.
	config.QPS = -1
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the Kubernetes API: %w", err)
	}
	return client, nil
}
