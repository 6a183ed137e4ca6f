package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
)

// maxPreviewed is how many objects a preview shows.
const maxPreviewed = 20

// maxRead is how many findings the preview of an undo reads one by one: some may not change, and are not shown.
const maxRead = 2 * maxPreviewed

// preview records in the summary what the operation would do to each finding, and shows the first findings that change.
func (w *operating) preview(ctx context.Context) error {
	var rows []row
	look := func(entry *rules.Entry, f *v1alpha1.Finding) (shown bool) {
		if w.record(entry, f) != rules.Changed || len(rows) == maxPreviewed {
			return false
		}
		rows = append(rows, w.previewRow(entry, f))
		return true
	}
	var err error
	if w.undo != "" {
		err = w.previewUndo(ctx, look)
	} else {
		err = w.previewSelected(ctx, look)
	}
	if n := w.session.unreadable; err == nil && n > 0 {
		fmt.Fprintf(w.streams.ErrOut, "%d of the operation's findings cannot be read: they are not counted here, "+
			"but it decides about them as about the others\n", n)
	}
	if err != nil || w.quiet {
		return err
	}
	return w.show(rows)
}

// record adds to the summary what the operation would do to a finding, and returns the outcome.
func (w *operating) record(entry *rules.Entry, f *v1alpha1.Finding) rules.Outcome {
	step := rules.Plan(w.operation, entry, f, apitime.Now(), false)
	w.summary.add(f.Name, step.Outcome, step.Why)
	return step.Outcome
}

// look records what the operation would do to a finding that was read, and reports whether the preview shows it.
type look func(*rules.Entry, *v1alpha1.Finding) (shown bool)

// previewSelected lists the findings in pages, because the operation's set holds only names and decisions.
func (w *operating) previewSelected(ctx context.Context, look look) error {
	var names []string
	set := map[string]*rules.Entry{}
	err := w.eachEntry(ctx, func(entry *rules.Entry, _ rules.Outcome) error {
		entry.Before = nil // not needed for the preview, and its comments could fill the memory
		names = append(names, string(entry.Finding))
		set[string(entry.Finding)] = entry
		return nil
	})
	if err != nil {
		return err
	}
	return w.lookAt(ctx, names, set, look)
}

// lookAt lists the findings of these names and entries in pages. It removes those that it finds from the set.
func (w *operating) lookAt(ctx context.Context, names []string, set map[string]*rules.Entry, look look) error {
	if len(set) == 0 {
		return nil
	}
	options, err := w.filter.options(w.session.namespace)
	if err != nil {
		return err
	}
	err = w.session.eachPage(ctx, "Finding", 0, options, func(items []unstructured.Unstructured) error {
		for _, item := range items {
			entry := set[item.GetName()]
			if entry == nil {
				continue
			}
			delete(set, item.GetName())
			if f, err := decode[v1alpha1.Finding](item); err != nil {
				w.session.warnOf(item, err)
			} else {
				look(entry, &f)
			}
		}
		return nil
	})
	for _, name := range names {
		if err == nil && set[name] != nil {
			w.summary.add(name, rules.Failed, "it was changed or removed in the meantime")
		}
	}
	return w.session.explain(err, need{what: "list findings", role: roleViewer})
}

// noLongerExists is the reason that the controllers record, too.
const noLongerExists = "the finding no longer exists"

// previewUndo uses the operation's set, and reads only findings to show, at most maxRead, and those that may be skipped
// because a scan has changed them.
func (w *operating) previewUndo(ctx context.Context, look look) error {
	shown, read := 0, 0
	var names []string
	set := map[string]*rules.Entry{}
	err := w.eachEntry(ctx, func(entry *rules.Entry, _ rules.Outcome) error {
		f := asSelected(entry)
		switch {
		case entry.Absent:
			w.summary.add(f.Name, rules.Failed, noLongerExists)
		case entry.Digest != "" && shown < maxPreviewed && read < maxRead:
			read++
			current, err := w.readToPreview(ctx, f.Name)
			if err != nil || current == nil {
				return err
			}
			if look(entry, current) {
				shown++
			}
		case entry.Digest != "" && rules.MayBeSkipped(w.operation, entry, f, apitime.Now()):
			later := *entry
			later.Before = nil // as in previewSelected
			names, set[f.Name] = append(names, f.Name), &later
		default:
			w.record(entry, f)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.lookAt(ctx, names, set, look)
}

// asSelected returns what the entry holds of its finding, which then counts as unchanged since.
func asSelected(entry *rules.Entry) *v1alpha1.Finding {
	f := &v1alpha1.Finding{}
	f.Name, f.Generation = string(entry.Finding), entry.Generation
	if entry.Before != nil {
		f.Spec.Triage = *entry.Before
	}
	return f
}

// readToPreview returns a finding. It returns nil for one that no longer exists, which it counts, and for one that
// cannot be decoded, which it warns about.
func (w *operating) readToPreview(ctx context.Context, name string) (*v1alpha1.Finding, error) {
	item := unstructured.Unstructured{}
	item.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Finding"))
	err := w.session.get(ctx, name, &item)
	if kube.IsNotFound(err) {
		w.summary.add(name, rules.Failed, noLongerExists)
		return nil, nil
	}
	if err != nil {
		return nil, w.session.explain(err, need{what: "read findings", role: roleViewer})
	}
	f, err := decode[v1alpha1.Finding](item)
	if err != nil {
		w.session.warnOf(item, err)
		return nil, nil
	}
	return &f, nil
}

// previewRow returns the row of a finding that changes.
func (w *operating) previewRow(entry *rules.Entry, f *v1alpha1.Finding) row {
	is := verdictOf(f)
	becomes := w.decision.becomes(is)
	if set := entry.Set; set != nil {
		restored := *f
		restored.Spec.Triage = *set
		switch becomes = string(set.UserStatus); {
		case set.ExpiresAt != nil && !set.ExpiresAt.After(apitime.Now()):
			becomes = openEnded // the restored decision has expired
		case findingstate.Stale(&restored):
			becomes += ", stale"
		case set.UserStatus == is.Triage.UserStatus:
			becomes += ", with other terms"
		}
	}
	return row{
		f.Name, string(f.Spec.Details.Severity), is.String(), becomes,
		shortened(f.Spec.Details.Title, titleLength), string(f.Spec.ProjectRef.Name),
	}
}

// show prints the findings that change, how many more there are, and whose decisions are affected.
func (w *operating) show(rows []row) error {
	to, status := w.streams.ErrOut, &w.operation.Status
	if len(rows) > 0 {
		columns := []column{{name: "Name"}, {name: "Severity"}, {name: "Triage"}, {name: "Becomes"}, {name: "Title"},
			{name: "Project"}}
		if err := printTable(to, columns, rows, printers.PrintOptions{}); err != nil {
			return err
		}
	}
	unlisted(to, int(status.WouldChange)-len(rows))
	var deciders []string
	for _, d := range status.Decided {
		if d.By != rules.Author(w.undo) {
			deciders = append(deciders, fmt.Sprintf("%s (%d)", printable(cmp.Or(d.By, "somebody")), d.Count))
		}
	}
	if len(deciders) > 0 {
		fmt.Fprintf(to, "already decided by %s\n", strings.Join(deciders, ", "))
	}
	if left := len(w.summary.Conflicted) + len(w.summary.Failed); left > 0 && w.undo != "" {
		fmt.Fprintf(to, "%d stay unchanged: somebody has decided about them since, a scan has changed them, or "+
			"they no longer exist\n", left)
	}
	if status.NotUndoable > 0 {
		fmt.Fprintf(to, "an undo could not restore %d of them: their previous comments are too long to be kept\n",
			status.NotUndoable)
	}
	return nil
}
