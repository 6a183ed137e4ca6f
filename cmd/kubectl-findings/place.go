package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

func place(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return "any organization"
	}
	return "namespace " + namespace
}

// checkPlace returns an error if the session's namespace does not exist or belongs to no organization: an empty result
// there would be misleading. For a user who may not read namespaces, it does not report whether the namespace exists.
func (s *session) checkPlace(ctx context.Context) error {
	lookup, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	err := s.client.Get(lookup, client.ObjectKey{Name: s.namespace},
		kube.MetadataOf(corev1.SchemeGroupVersion.WithKind("Namespace")))
	if !kube.IsNotFound(err) {
		return s.outsideOrganizations()
	}
	missing := fmt.Errorf("there is no namespace %q: check --organization, --namespace and the kubeconfig's context",
		s.namespace)
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}}
	if s.client.List(lookup, list, client.Limit(maxCompared)) != nil {
		return missing
	}
	var organizations []string
	for _, namespace := range list.Items {
		if name, is := strings.CutPrefix(namespace.Name, v1alpha1.NamespacePrefix); is {
			organizations = append(organizations, name)
		}
	}
	asked := strings.TrimPrefix(s.namespace, v1alpha1.NamespacePrefix)
	near := similar(asked, organizations)
	if len(near) == 0 { // --organization was given the name of a namespace
		near = similar(strings.TrimPrefix(asked, v1alpha1.NamespacePrefix), organizations)
	}
	if len(near) > 0 {
		return fmt.Errorf("%w\nDid you mean --organization %s?", missing, strings.Join(near, " or "))
	}
	return missing
}

// checkOrganization returns an error before something is created in a namespace whose name cannot belong to an
// organization: REST, the console and the counts would not show it, and the controllers may not write findings there.
// If the API server does not know findings, that is the error, because no other namespace would help.
func (s *session) checkOrganization(ctx context.Context) error {
	outside := s.outsideOrganizations()
	if outside == nil {
		return nil
	}
	lookup, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	err := s.client.List(lookup, &v1alpha1.RepositoryList{}, client.InNamespace(s.namespace), client.Limit(1))
	if kube.IsUnknownKind(err) {
		return s.explain(err, need{})
	}
	return outside
}

// outsideOrganizations returns an error if the name of the session's namespace cannot belong to an organization.
func (s *session) outsideOrganizations() error {
	if strings.HasPrefix(s.namespace, v1alpha1.NamespacePrefix) {
		return nil
	}
	return fmt.Errorf("namespace %s belongs to no organization: choose one with --organization", s.namespace)
}

// checkAsked returns an error if the session's namespace or one of the named objects does not exist: an empty result
// would be misleading.
func (s *session) checkAsked(ctx context.Context, asked ...need) error {
	if err := s.checkPlace(ctx); err != nil {
		return err
	}
	var errs []error
	for _, n := range asked {
		errs = append(errs, s.checkNamed(ctx, n))
	}
	return errors.Join(errs...)
}

// checkNamed returns an error if the session's namespace has no object of that kind and name. It returns nil without a
// name, and if the user may not read the object.
func (s *session) checkNamed(ctx context.Context, n need) error {
	switch {
	case n.name == "":
		return nil
	case strings.Contains(n.name, "/"): // a full name, whose path would be that of another object
		return fmt.Errorf("there is no %[1]s %[2]q: give the name of the %[1]s, without a slash (%[3]s)",
			n.kind, n.name, s.command("get", kube.Resource(n.kind)))
	}
	ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	err := s.get(ctx, n.name, kube.MetadataOf(v1alpha1.GroupVersion.WithKind(n.kind)))
	if !kube.IsNotFound(err) {
		return nil
	}
	return s.notFound(ctx, err, n)
}

// noteUnused names the scanner and the class of a filter if no finding in any state has them: they may be misspelt.
// That is no error, because a selection may match nothing.
func (s *session) noteUnused(ctx context.Context, filter fields.Selector) {
	ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	for _, term := range filter.Requirements() {
		if term.Field != fieldTool && term.Field != fieldClass || term.Operator == selection.NotEquals || term.Value == "" {
			continue
		}
		options := s.inNamespace()
		options.FieldSelector = fields.OneTermEqualSelector(term.Field, term.Value)
		found := false
		err := s.eachPage(ctx, "Finding", 1, options, func(items []unstructured.Unstructured) error {
			found = found || len(items) > 0
			return nil
		})
		if err == nil && !found {
			fmt.Fprintf(s.errOut, "no finding of any state has the %s %q\n", strings.TrimPrefix(term.Field, "spec."), term.Value)
		}
	}
}
