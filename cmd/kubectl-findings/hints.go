package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// The ClusterRoles of findings-operator, bound in an organization's namespace.
const (
	roleViewer  = "findings-viewer"
	roleTriager = "findings-triager"
	roleScanner = "findings-scanner"
	roleAdmin   = "findings-admin"
)

// need describes the permissions of a request, for the message when it is refused.
type need struct {
	// what is done, such as "list findings".
	what string
	// role that allows it.
	role string
	// everywhere means that the request is for all namespaces.
	everywhere bool
	// kind and name of the object, if the request is for a single one.
	kind, name string
}

// explain adds advice to an API server's error.
func (s *session) explain(err error, n need) error {
	next := s.next(err, n)
	if next == "" {
		return err
	}
	return fmt.Errorf("%w\n%s", err, next)
}

func (s *session) next(err error, n need) string {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return ""
	case kube.IsUnknownKind(err) && n.kind == kindOperation:
		return fmt.Sprintf("The API server %s knows no triage operations: upgrade its findings-operator, the CRDs too, or use a plugin of the server's version. Decisions about findings that are named need no operations.", s.server())
	case kube.IsUnknownKind(err):
		return fmt.Sprintf("The API server %s knows no findings: install findings-operator there (docs/install.md), or choose another with --context or --kubeconfig.", s.server())
	case kube.LacksField(err):
		return fmt.Sprintf("The CRDs of the API server %s are older than this plugin: upgrade its findings-operator, the CRDs too, or use a plugin of the server's version.", s.server())
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("The API server %s does not accept these credentials: log in again, or choose others with --context or --user.", s.server())
	case kube.IsReasonRequired(err):
		return s.nextWithoutReason(n)
	case kube.IsQuotaExceeded(err):
		return "Delete what is no longer needed, or have spec.quotas of the Organization raised."
	case kube.IsQuotaUncounted(err):
		return "Kubernetes does not count these objects for the quota yet. That ends up to five minutes after their kind was " +
			"installed: try again then. If it lasts, check that kube-controller-manager runs."
	case apierrors.IsForbidden(err) && !importer.RefusesObject(err): // no role helps against these
		return s.nextWhenForbidden(n)
	}
	if _, odd := errors.AsType[*json.UnmarshalTypeError](err); odd && n.name != "" {
		return s.repair(n.kind, n.name, s.namespace)
	}
	return ""
}

// nextWithoutReason returns what to do if a reason is required. An operation gives all findings the same one.
func (s *session) nextWithoutReason(n need) string {
	next := "Give one with --reason, for example --reason " + string(v1alpha1.DecisionFalsePositive) + "."
	if n.kind == kindOperation {
		next += " It replaces the reason of findings that are muted already: to repeat their decisions with " +
			"their own reasons, name them: " + s.muteByName(runtime.GOOS)
	}
	return next
}

// muteByName returns the command that mutes findings by their names. Windows has no xargs.
func (s *session) muteByName(system string) string {
	if system == "windows" {
		return s.command("findings", "triage", "NAME...", "--mute")
	}
	return s.command("findings", "list") + " ... -o name | xargs " + s.command("findings", "triage") + " --mute"
}

func (s *session) nextWhenForbidden(n need) string {
	if n.everywhere {
		return fmt.Sprintf("To %s of all organizations you need the ClusterRole %s, bound by a ClusterRoleBinding; "+
			"for one organization use --organization.", n.what, n.role)
	}
	if outside := s.outsideOrganizations(); outside != nil { // a role would not help there
		return outside.Error()
	}
	question := ""
	if name, twice := strings.CutPrefix(s.namespace, v1alpha1.NamespacePrefix+v1alpha1.NamespacePrefix); twice {
		question = fmt.Sprintf("Did you mean --organization %s? It takes the name without %s.\n", name,
			v1alpha1.NamespacePrefix)
	}
	return question + fmt.Sprintf("To %s you need the ClusterRole %s in namespace %s. An administrator grants it:\n"+
		"  kubectl create rolebinding NAME -n %s --clusterrole=%s --user=YOU",
		n.what, n.role, s.namespace, s.namespace, n.role)
}

const (
	// maxCompared bounds how many names are compared with one that does not exist.
	maxCompared = 5000
	// suggestTimeout bounds the search for names similar to one that does not exist.
	suggestTimeout = 5 * time.Second
)

// notFound adds objects with a similar name to a not-found error.
func (s *session) notFound(ctx context.Context, err error, n need) error {
	if !kube.IsNotFound(err) {
		return s.explain(err, n)
	}
	var names []string
	listErr := s.eachPage(ctx, n.kind, maxCompared, s.inNamespace(),
		func(items []unstructured.Unstructured) error {
			for _, item := range items {
				names = append(names, item.GetName())
			}
			return nil
		})
	if near := similar(n.name, names); listErr == nil && len(near) > 0 {
		return fmt.Errorf("%w\nDid you mean %s?", err, strings.Join(near, " or "))
	}
	if missing := s.checkPlace(ctx); missing != nil {
		return missing
	}
	if hint := s.ofOtherKind(n); hint != "" {
		return fmt.Errorf("%w\n%s", err, hint)
	}
	if n.kind == kindOperation {
		err = fmt.Errorf("%w\nA finished operation is removed after 30 days, or the time in "+
			"spec.retention.finishedOperations of its Organization, and can no longer be undone", err)
	}
	return fmt.Errorf("%w\nIt is not in namespace %s; another organization is chosen with --organization", err,
		s.namespace)
}

// ofOtherKind returns which command to use instead if a finding's name looks like that of an issue, or the other way
// round; "" for other names. Imports make such names, but users may create findings with any name.
func (s *session) ofOtherKind(n need) string {
	switch {
	case n.kind == "Finding" && strings.HasPrefix(n.name, "i-") && n.role == roleViewer: // triage-issue shows nothing
		return fmt.Sprintf("%s looks like the name of an issue of a pull request: see its status.transitions with "+
			"%s -o yaml", n.name, s.command("get", "reviewissue", n.name))
	case n.kind == "Finding" && strings.HasPrefix(n.name, "i-"):
		return n.name + " looks like the name of an issue of a pull request: see kubectl findings triage-issue"
	case n.kind == "ReviewIssue" && strings.HasPrefix(n.name, "f-"):
		return n.name + " looks like the name of a finding: see kubectl findings triage"
	}
	return ""
}
