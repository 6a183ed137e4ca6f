package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// checkPlace returns an error if the session's namespace does not exist: an empty result there would be misleading. It
// returns nil if the user may not read namespaces.
func (s *session) checkPlace(ctx context.Context) error {
	lookup, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	err := s.client.Get(lookup, client.ObjectKey{Name: s.namespace},
		&metav1.PartialObjectMetadata{TypeMeta: namespaceType})
	if !apierrors.IsNotFound(err) {
		return nil
	}
	missing := fmt.Errorf("there is no namespace %q: check --organization, --namespace and the kubeconfig's context",
		s.namespace)
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}}
	if s.client.List(lookup, list, client.Limit(mostCompared)) != nil {
		return missing
	}
	var organizations []string
	for _, namespace := range list.Items {
		if name, is := strings.CutPrefix(namespace.Name, v1alpha1.NamespacePrefix); is {
			organizations = append(organizations, name)
		}
	}
	if near := similar(strings.TrimPrefix(s.namespace, v1alpha1.NamespacePrefix), organizations); len(near) > 0 {
		return fmt.Errorf("%w\nDid you mean --organization %s?", missing, strings.Join(near, " or "))
	}
	return missing
}

var namespaceType = metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Namespace"}
