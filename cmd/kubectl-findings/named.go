package main

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/appsec-dev/findings-operator/internal/kube"
)

// decideNamed decides about the named findings, each with a separate request by the user.
func (o *triageOptions) decideNamed(ctx context.Context, t *triager, names []string) error {
	names = distinct(bare("Finding", names...))
	progress := newProgress(o.streams.ErrOut, o.quiet, "findings")
	outcomes := forEach(ctx, len(names), o.concurrency, progress.at, func(i int) (bool, error) {
		return t.decideAboutFinding(ctx, names[i])
	})
	progress.finish()
	summary := o.newSummary(t.session.namespace, t.decision.wording().past)
	summary.count(names, outcomes)
	return summary.conclude(ctx, t.session, o.streams.Out, o.output,
		need{what: "triage findings", role: roleTriager, kind: "Finding"})
}

// shortNames maps the short names of the kinds that commands name objects of, which a REST mapper does not know.
var shortNames = map[string]string{
	"APIKey": "akey", "Finding": "fnd", "ReviewIssue": "rvi", kindOperation: "top", "WebhookDelivery": "whd",
}

// bare returns the names of objects without a kind in front, as printed by -o name (finding.appsec.dev/f-1), or its
// short name. A name after another word is kept: the API server refuses its slash.
func bare(kind string, names ...string) []string {
	kinds := kube.NewMapper()
	out := slices.Clone(names)
	for i, name := range names {
		slash := strings.LastIndex(name, "/")
		if slash < 0 {
			continue
		}
		before := schema.ParseGroupResource(strings.ToLower(name[:slash]))
		named, err := kinds.KindFor(before.WithVersion(""))
		if err == nil && named.Kind == kind || before.String() == shortNames[kind] {
			out[i] = name[slash+1:]
		}
	}
	return out
}

// distinct returns the names sorted, without duplicates.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
