package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// readScore returns a score in the form of selections, with one decimal. Scores have no more decimals, so 7.25 means at
// least 7.3.
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

// readPeriod reads the bounds of a period: since is included, until is not.
func readPeriod(name, since, until string, errs *[]error) (from, to *v1alpha1.Time) {
	from, to = readBound(name+"-since", since, errs), readBound(name+"-until", until, errs)
	if from != nil && to != nil && to.Before(from) {
		*errs = append(*errs, fmt.Errorf("--%s-until is before --%s-since", name, name))
	}
	return from, to
}

// readBound returns a bound in the form of selections.
func readBound(flag, text string, errs *[]error) *v1alpha1.Time {
	at := readTime(flag, text, errs)
	if at == nil {
		return nil
	}
	return new(findingquery.Bound(at.Time))
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

// timeFlag is readTime with the zero time for a flag that is not set.
func timeFlag(flag, text string, errs *[]error) time.Time {
	if at := readTime(flag, text, errs); at != nil {
		return at.Time
	}
	return time.Time{}
}

// owned is the set of projects of the selected owner.
type owned map[types.NamespacedName]bool

// in returns a function that maps a namespace's project to its owner.
func (o owned) in(namespace, owner string) findingquery.Owners {
	return func(project v1alpha1.ResourceName) string {
		if o[types.NamespacedName{Namespace: namespace, Name: string(project)}] {
			return owner
		}
		return ""
	}
}

// findOwned looks up the owner's projects if the filter has an owner.
func (f *filter) findOwned(ctx context.Context, s *session, namespace string) error {
	if f.selection.Owner == "" {
		return nil
	}
	f.owned = owned{}
	options := client.ListOptions{
		Namespace: namespace, FieldSelector: fields.OneTermEqualSelector("spec.owner", f.selection.Owner),
	}
	err := s.eachPage(ctx, "Project", 0, options, func(items []unstructured.Unstructured) error {
		for _, item := range items {
			f.owned[types.NamespacedName{Namespace: item.GetNamespace(), Name: item.GetName()}] = true
		}
		return nil
	})
	return s.explain(err, need{what: "list projects", role: roleViewer, everywhere: namespace == ""})
}
