package main

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// readScore writes a score as selections have it, with one decimal: scores have no more, so that 7.25 asks for 7.3.
func readScore(text string, errs *[]error) string {
	if text == "" {
		return ""
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || !(number >= 0 && number <= findingquery.MaxScore/10) {
		*errs = append(*errs, fmt.Errorf("--min-score is %q and must be a number from 0 to 10", text))
		return ""
	}
	return strconv.FormatFloat(math.Ceil(number*10-1e-9)/10, 'f', 1, 64)
}

// readPeriod reads the bounds of a time: the first is in it, the second is not.
func readPeriod(name, since, until string, errs *[]error) (from, to *v1alpha1.Time) {
	from, to = readTime(name+"-since", since, errs), readTime(name+"-until", until, errs)
	if from != nil && to != nil && to.Before(from) {
		*errs = append(*errs, fmt.Errorf("--%s-until is before --%s-since", name, name))
	}
	return from, to
}

func readTime(flag, text string, errs *[]error) *v1alpha1.Time {
	if text == "" {
		return nil
	}
	at, err := v1alpha1.ParseTime(text)
	if err != nil {
		*errs = append(*errs, fmt.Errorf("--%s: %w", flag, err))
		return nil
	}
	return &at
}

// owned are the projects of the owner that is asked for.
type owned map[types.NamespacedName]bool

// in tells that owner of a namespace's projects.
func (o owned) in(namespace, owner string) findingquery.Owners {
	return func(project v1alpha1.ResourceName) string {
		if o[types.NamespacedName{Namespace: namespace, Name: string(project)}] {
			return owner
		}
		return ""
	}
}

// findOwned looks the owner's projects up, if an owner is asked for.
func (f *filter) findOwned(ctx context.Context, s *session, namespace string) error {
	if f.asked.Owner == "" {
		return nil
	}
	f.owned = owned{}
	options := client.ListOptions{
		Namespace: namespace, FieldSelector: fields.OneTermEqualSelector("spec.owner", f.asked.Owner),
	}
	_, err := s.eachPage(ctx, "Project", 0, options, func(items []unstructured.Unstructured) error {
		for _, item := range items {
			f.owned[types.NamespacedName{Namespace: item.GetNamespace(), Name: item.GetName()}] = true
		}
		return nil
	})
	return s.explain(err, need{what: "list projects", role: roleViewer, everywhere: namespace == ""})
}
