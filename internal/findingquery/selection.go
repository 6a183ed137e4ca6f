package findingquery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
)

// Selection is a parsed v1alpha1.FindingSelection.
type Selection struct {
	spec     *v1alpha1.FindingSelection
	ids      sets.Set[v1alpha1.ResourceName]
	words    []string
	minScore int
	labels   labels.Selector
	fields   fields.Selector
}

// NewSelection parses a selection. The error names each invalid member.
func NewSelection(spec *v1alpha1.FindingSelection) (*Selection, error) {
	s := &Selection{spec: spec, ids: sets.New(spec.IDs...), words: Words(spec.Text)}
	var errs []error
	// Refuse a member that is set but restricts nothing, because an operation would decide about every finding.
	errs = append(errs, CheckText(spec.Text))
	check := func(rule func(string, time.Time) error, member string, at *v1alpha1.Time) {
		if at != nil {
			errs = append(errs, rule(member, at.Time))
		}
	}
	check(CheckSince, "createdSince", spec.CreatedSince)
	check(CheckUntil, "createdUntil", spec.CreatedUntil)
	check(CheckSince, "updatedSince", spec.UpdatedSince)
	check(CheckUntil, "updatedUntil", spec.UpdatedUntil)
	if len(s.words) > MaxWords {
		errs = append(errs, fmt.Errorf("text has %d words; at most %d are allowed", len(s.words), MaxWords))
	}
	if spec.MinScore != "" {
		tenths, ok := Tenths(spec.MinScore)
		if s.minScore = tenths; !ok {
			errs = append(errs, fmt.Errorf("minScore is %q and must be a number from 0 to 10", spec.MinScore))
		}
	}
	var err error
	if s.labels, err = labels.Parse(spec.LabelSelector); err != nil {
		errs = append(errs, fmt.Errorf("labelSelector is %q and cannot be read: %w", spec.LabelSelector, err))
	} else if spec.LabelSelector != "" && s.labels.Empty() {
		errs = append(errs, fmt.Errorf("labelSelector is %q and selects everything: leave it out", spec.LabelSelector))
	}
	if s.fields, err = readFields(spec.FieldSelector); err != nil {
		errs = append(errs, err)
	}
	return s, errors.Join(errs...)
}

// CheckText returns an error for a text that is set but has no word, because it selects everything.
func CheckText(text string) error {
	if text == "" || len(Words(text)) > 0 {
		return nil
	}
	return errors.New("text has no word and selects everything: give one, or leave it out")
}

func readFields(text string) (fields.Selector, error) {
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return nil, fmt.Errorf("fieldSelector is %q and cannot be read: %w", text, err)
	}
	if text != "" && selector.Empty() {
		return nil, fmt.Errorf("fieldSelector is %q and selects everything: leave it out", text)
	}
	known := fieldsOf(&v1alpha1.Finding{})
	for _, term := range selector.Requirements() {
		if !known.Has(term.Field) {
			return nil, fmt.Errorf("fieldSelector: findings are not selected by %q", term.Field)
		}
	}
	return selector, nil
}

// fieldsOf returns the fields by which the API server can select findings.
func fieldsOf(f *v1alpha1.Finding) fields.Set {
	return fields.Set{
		"metadata.name":           f.Name,
		"metadata.namespace":      f.Namespace,
		"spec.repositoryRef.name": string(f.Spec.RepositoryRef.Name),
		"spec.projectRef.name":    string(f.Spec.ProjectRef.Name),
		"spec.tool":               f.Spec.Tool,
		"spec.category":           string(f.Spec.Category),
		"spec.class":              f.Spec.Class,
		"spec.details.severity":   string(f.Spec.Details.Severity),
		"spec.triage.userStatus":  string(f.Spec.Triage.UserStatus),
		"status.state":            string(f.Status.State),
	}
}

// Owners returns the owner of a project by name; "" if it has none or does not exist.
type Owners func(project v1alpha1.ResourceName) string

// Matches reports whether the selection contains the finding.
func (s *Selection) Matches(f *v1alpha1.Finding, owners Owners) bool {
	if len(s.ids) > 0 {
		return s.ids.Has(v1alpha1.ResourceName(f.Name))
	}
	return s.matchesFacts(f) && s.matchesDecision(f) && s.matchesTimes(f) &&
		s.labels.Matches(labels.Set(f.Labels)) && (s.fields.Empty() || s.fields.Matches(fieldsOf(f))) &&
		(s.spec.Owner == "" || owners(f.Spec.ProjectRef.Name) == s.spec.Owner)
}

func (s *Selection) matchesFacts(f *v1alpha1.Finding) bool {
	asked, spec := s.spec, &f.Spec
	if asked.MinScore != "" {
		if tenths, ok := Tenths(spec.Details.Score); !ok || tenths < s.minScore {
			return false
		}
	}
	return same(asked.Repository, spec.RepositoryRef.Name) && same(asked.Project, spec.ProjectRef.Name) &&
		same(asked.Tool, spec.Tool) && same(asked.Rule, spec.RuleID) &&
		(asked.Class == nil || *asked.Class == spec.Class) &&
		oneOf(asked.Severity, spec.Details.Severity) && oneOf(asked.Category, spec.Category) &&
		(asked.Vulnerability == "" || isVulnerability(spec.Vulnerability, asked.Vulnerability)) &&
		(asked.Package == "" || isPackage(spec.Package, asked.Package)) &&
		(asked.Suppressed == nil || *asked.Suppressed == (spec.Suppression != nil)) &&
		(asked.File == "" || IsIn(spec.Details.Place().FilePath, asked.File)) &&
		(len(s.words) == 0 || HasWords(Text(&spec.Details), s.words))
}

// matchesDecision uses the finding's current state: the recorded one, unless the finding has changed since.
func (s *Selection) matchesDecision(f *v1alpha1.Finding) bool {
	asked := s.spec
	return oneOf(asked.UserStatus, findingstate.UserStatus(f)) &&
		same(asked.Policy, findingstate.DecidingPolicy(f)) &&
		(len(asked.State) == 0 || oneOf(asked.State, StateOf(f))) &&
		(asked.Stale == nil || *asked.Stale == findingstate.Stale(f))
}

// StateOf returns the finding's current state: the recorded one, unless the finding has changed since.
func StateOf(f *v1alpha1.Finding) v1alpha1.FindingState {
	if f.Status.ObservedGeneration >= f.Generation {
		return cmp.Or(f.Status.State, findingstate.State(f))
	}
	return findingstate.State(f)
}

func (s *Selection) matchesTimes(f *v1alpha1.Finding) bool {
	asked := s.spec
	if (asked.CreatedSince != nil || asked.CreatedUntil != nil) &&
		!within(findingstate.CreatedAt(f).Time, asked.CreatedSince, asked.CreatedUntil) {
		return false
	}
	if asked.UpdatedSince == nil && asked.UpdatedUntil == nil {
		return true
	}
	at, _ := lastwrite.Shown(f, lastwrite.Observed{
		Generation: f.Status.ObservedGeneration, UpdatedAt: f.Status.UpdatedAt,
	}, time.Now())
	return within(at, asked.UpdatedSince, asked.UpdatedUntil)
}

func same[T ~string](asked, is T) bool { return asked == "" || asked == is }

func oneOf[T ~string](asked []T, is T) bool { return len(asked) == 0 || slices.Contains(asked, is) }
