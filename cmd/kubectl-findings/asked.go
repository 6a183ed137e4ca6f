package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
)

// asked are the filters that the REST API has and the API server does not: the plugin looks at each finding.
type asked struct {
	owner, text, minScore                                  string
	createdSince, createdUntil, updatedSince, updatedUntil string

	// What the flags mean, once read.
	created, updated period
	tenths           int
	words            []string
	// projects are those of the owner.
	projects map[types.NamespacedName]bool
}

// period bounds a time: from is in it, until is not. The zero time is no bound.
type period struct{ from, until time.Time }

// holds reports whether a time is in the period, in whole seconds as the REST API shows times.
func (p period) holds(at time.Time) bool {
	at = at.Truncate(time.Second)
	return !at.Before(p.from) && (p.until.IsZero() || at.Before(p.until))
}

func (a *asked) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.owner, "owner", "", "only findings of projects of this owner")
	flags.StringVar(&a.text, "text", "",
		"only findings of which the title or the path holds each of these words, whatever the case")
	flags.StringVar(&a.minScore, "min-score", "", "only findings of this score at least, from 0 to 10")
	flags.StringVar(&a.createdSince, "created-since", "",
		"only findings that were found at this time or later, as 2026-01-31T12:00:00Z")
	flags.StringVar(&a.createdUntil, "created-until", "", "only findings that were found before this time")
	flags.StringVar(&a.updatedSince, "updated-since", "", "only findings that changed at this time or later")
	flags.StringVar(&a.updatedUntil, "updated-until", "", "only findings that did not change at this time or later")
}

func (a *asked) empty() bool {
	return a.owner+a.text+a.minScore+a.createdSince+a.createdUntil+a.updatedSince+a.updatedUntil == ""
}

// read says what the flags mean.
func (a *asked) read() error {
	var errs []error
	a.created = readPeriod("created", a.createdSince, a.createdUntil, &errs)
	a.updated = readPeriod("updated", a.updatedSince, a.updatedUntil, &errs)
	if a.words = findingquery.Words(a.text); len(a.words) > findingquery.MaxWords {
		errs = append(errs, fmt.Errorf("--text has %d words and may have %d", len(a.words), findingquery.MaxWords))
	}
	if a.minScore != "" {
		number, err := strconv.ParseFloat(a.minScore, 64)
		if err != nil || !(number >= 0 && number <= findingquery.MaxScore/10) {
			errs = append(errs, fmt.Errorf("--min-score is %q and must be a number from 0 to 10", a.minScore))
		}
		a.tenths = int(math.Ceil(number*10 - 1e-9))
	}
	return errors.Join(errs...)
}

func readPeriod(name, since, until string, errs *[]error) (p period) {
	for flag, into := range map[string]struct {
		text string
		at   *time.Time
	}{name + "-since": {since, &p.from}, name + "-until": {until, &p.until}} {
		if into.text == "" {
			continue
		}
		at, err := v1alpha1.ParseTime(into.text)
		if err != nil {
			*errs = append(*errs, fmt.Errorf("--%s: %w", flag, err))
		}
		*into.at = at.Time
	}
	if since != "" && until != "" && p.until.Before(p.from) {
		*errs = append(*errs, fmt.Errorf("--%s-until is before --%s-since", name, name))
	}
	return p
}

// findOwned looks the owner's projects up, if an owner is asked for.
func (a *asked) findOwned(ctx context.Context, s *session, namespace string) error {
	if a.owner == "" {
		return nil
	}
	a.projects = map[types.NamespacedName]bool{}
	options := client.ListOptions{Namespace: namespace, FieldSelector: fields.OneTermEqualSelector("spec.owner", a.owner)}
	_, err := s.eachPage(ctx, "Project", 0, options, func(items []unstructured.Unstructured) error {
		for _, item := range items {
			a.projects[types.NamespacedName{Namespace: item.GetNamespace(), Name: item.GetName()}] = true
		}
		return nil
	})
	return s.explain(err, need{what: "list projects", role: roleViewer, everywhere: namespace == ""})
}

func (a *asked) match(f *v1alpha1.Finding) bool {
	if a.owner != "" && !a.projects[types.NamespacedName{Namespace: f.Namespace, Name: string(f.Spec.ProjectRef.Name)}] {
		return false
	}
	if a.minScore != "" {
		if tenths, ok := findingquery.Tenths(f.Spec.Details.Score); !ok || tenths < a.tenths {
			return false
		}
	}
	if len(a.words) > 0 && !findingquery.HasWords(findingquery.Text(&f.Spec.Details), a.words) {
		return false
	}
	return (a.created == period{} || a.created.holds(findingstate.CreatedAt(f).Time)) &&
		(a.updated == period{} || a.updated.holds(updatedAt(f)))
}

// updatedAt is the time that the REST API shows.
func updatedAt(f *v1alpha1.Finding) time.Time {
	at, _ := lastwrite.Shown(f, lastwrite.Observed{Generation: f.Status.ObservedGeneration, UpdatedAt: f.Status.UpdatedAt},
		time.Now())
	return at
}
