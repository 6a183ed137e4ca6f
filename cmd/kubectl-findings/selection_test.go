package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// flagged returns the filter for these flags.
func flagged(t *testing.T, arguments ...string) *filter {
	t.Helper()
	f := &filter{}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.addFlags(flags)
	harness.Must(t, flags.Parse(arguments))
	return f
}

func TestTheFilterIsAFieldSelector(t *testing.T) {
	for reason, tc := range map[string]struct{ flags, want string }{
		"nothing is asked for":        {"", ""},
		"exact values":                {"--repository r --project p --class CWE-89 --tool gosec", "spec.repositoryRef.name=r,spec.projectRef.name=p,spec.class=CWE-89,spec.tool=gosec"},
		"what would end a term":       {`--tool a,b=c\`, `spec.tool=a\,b\=c\\`},
		"one value":                   {"--severity High", "spec.details.severity=high"},
		"one value twice":             {"--severity high,HIGH", "spec.details.severity=high"},
		"two values: not the third":   {"--severity low,high", "spec.details.severity!=medium"},
		"all values of what all have": {"--severity low,high,medium", ""},
		"a state: not as recorded":    {"--state open,closed", ""},
		"two, and not none":           {"--category code,secret", "spec.category!=Package,spec.category!="},
		"all, and not none":           {"--category code,package,secret", "spec.category!="},
		"beside the user's own":       {"--user-status muted --field-selector spec.tool!=x", "spec.triage.userStatus=muted,spec.tool!=x"},
		"open: what has ended, too":   {"--user-status open --user-status muted", ""},
	} {
		f := flagged(t, strings.Fields(tc.flags)...)
		harness.NoError(t, reason, f.read())
		options, err := f.options("org-acme")
		if err != nil || options.Namespace != "org-acme" {
			t.Errorf("%s: namespace %q, error %v", reason, options.Namespace, err)
			continue
		}
		harness.Same(t, reason, tc.want, options.FieldSelector.String())
	}
	err := flagged(t, "--severity", "critical", "--state", "gone").read()
	harness.ErrorContains(t, "the first of two mistakes", err, "critical")
	harness.ErrorContains(t, "the second", err, "gone")
	harness.ErrorContains(t, "too many words", flagged(t, "--text", "1 2 3 4 5 6 7 8 9").read(), "9 words")
	reversed := flagged(t, "--updated-since", "2026-03-02T00:00:00Z", "--updated-until", "2026-03-01T00:00:00Z")
	harness.ErrorContains(t, "times the wrong way round", reversed.read(), "--updated-until is before")
}

// Each filter flag corresponds to a field of a TriageOperation's selection.
func TestTheFlagsAreASelection(t *testing.T) {
	at := func(hour int) *v1alpha1.Time {
		at := v1alpha1.NewTime(time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC))
		return &at
	}
	members := reflect.VisibleFields(reflect.TypeFor[v1alpha1.FindingSelection]())
	seen := map[string]bool{"IDs": true} // arguments, and not flags
	for flags, want := range map[string]v1alpha1.FindingSelection{
		"--repository=shop":                     {Repository: "shop"},
		"--project=api":                         {Project: "api"},
		"--severity=LOW --severity=high":        {Severity: []v1alpha1.Level{"high", "low"}},
		"--state=closed,open":                   {State: []v1alpha1.FindingState{"open", "closed"}},
		"--user-status=muted":                   {UserStatus: []v1alpha1.UserStatus{"muted"}},
		"--category=secret":                     {Category: []v1alpha1.FindingCategory{"Secret"}},
		"--class=CWE-89":                        {Class: new("CWE-89")},
		"--tool=gosec":                          {Tool: "gosec"},
		"--rule=G201":                           {Rule: "G201"},
		"--vulnerability=CVE-2019-1549":         {Vulnerability: "CVE-2019-1549"},
		"--package=lodash":                      {Package: "lodash"},
		"--file=web/":                           {File: "web/"},
		"--file=./web/":                         {File: "web/"},
		"--file=/web/a.go":                      {File: "web/a.go"},
		`--file=.\web\`:                         {File: "web/"},
		"--file=./":                             {File: "./"},
		"--file=https://a.example/b":            {File: "https://a.example/b"},
		"--file=npm:a//b":                       {File: "npm:a//b"},
		"--policy=mute-tests":                   {Policy: "mute-tests"},
		"--stale":                               {Stale: new(true)},
		"--suppressed":                          {Suppressed: new(true)},
		"--stale=false --suppressed=false":      {Stale: new(false), Suppressed: new(false)},
		"--owner=team":                          {Owner: "team"},
		"--text=path":                           {Text: "path"},
		"--min-score=7":                         {MinScore: "7.0"},
		"--min-score=7.25":                      {MinScore: "7.3"},
		"--min-score=10":                        {MinScore: "10.0"},
		"--created-since=2026-03-01T12:00:00Z":  {CreatedSince: at(12)},
		"--created-until=2026-03-01T14:00:00Z":  {CreatedUntil: at(14)},
		"--updated-since=2026-03-01T12:00:00Z":  {UpdatedSince: at(12)},
		"--updated-until=2026-03-01t15:00:00Z":  {UpdatedUntil: at(15)},
		"-l team=web":                           {LabelSelector: "team=web"},
		"--field-selector=status.state!=closed": {FieldSelector: "status.state!=closed"},
	} {
		f := flagged(t, strings.Fields(flags)...)
		harness.NoError(t, flags, f.read())
		harness.Same(t, flags, want, f.selection)
		harness.Same(t, flags+": empty", reflect.ValueOf(want).IsZero(), f.empty())
		for _, member := range members {
			seen[member.Name] = seen[member.Name] || !reflect.ValueOf(f.selection).FieldByIndex(member.Index).IsZero()
		}
	}
	for _, member := range members {
		if !seen[member.Name] {
			t.Errorf("no row sets %s: add its flag, and a row with it above", member.Name)
		}
	}
	for flag, want := range map[string]string{
		"--updated-since=1970-01-01T00:00:00Z": "--updated-since is not after",
		"--created-until=9999-12-31T23:59:59Z": "--created-until is not before",
		"--updated-until=9999-12-31T23:59:59Z": "--updated-until is not before",
	} {
		said := fmt.Sprint(flagged(t, flag).read())
		if !strings.HasPrefix(said, want) || strings.Contains(said, "\n") {
			t.Errorf("a time that selects everything: %s", said)
		}
	}
}

// Without its first part, ../web/ would be another folder, whose findings triage would decide about.
func TestAFileOutsideOfTheRepositoryIsRefused(t *testing.T) {
	for _, file := range []string{"../web/", "../../src", `..\web\`, "./../web/", "/../web", ".."} {
		err := flagged(t, "--file="+file).read()
		harness.ErrorContains(t, file, err, fmt.Sprintf("--file is %q and leads out of the repository", file))
	}
}

// An operation stores whole seconds, and a list of the same flags must show what it selects.
func TestAPeriodIsInWholeSeconds(t *testing.T) {
	f := flagged(t, "--created-since=2026-03-01T11:59:59.5Z", "--created-until=2026-03-01T12:00:00.001Z")
	harness.Must(t, f.read())
	stored := harness.Decoded[v1alpha1.FindingSelection](t, harness.JSON(t, f.selection))
	harness.Same(t, "what the operation stores", f.selection, stored)
	harness.Same(t, "since", "2026-03-01T12:00:00Z", instant(stored.CreatedSince))
	harness.Same(t, "until", "2026-03-01T12:00:01Z", instant(stored.CreatedUntil))
}

// As from `-l "env!=$ENV"` without ENV, which would select almost everything.
func TestALabelSelectorThatExcludesOnlyTheEmptyValueIsRefused(t *testing.T) {
	for selector, refused := range map[string]bool{
		"env!=": true, "team=web,env!=,app": true, "env notin ()": true,
		"env,env!=": false, "env!=,env notin (test)": true, "env!=,team": true,
		"env!=test": false, "env notin (,test)": false, "env=": false, "env in ()": false, "env": false, "!env": false, "": false,
	} {
		if _, err := selectors("", selector, ""); (err != nil) != refused {
			t.Errorf("%s: error %v, want one: %t", selector, err, refused)
		}
	}
}

// As from `--field-selector "status.state!=$STATE"` without STATE, which would select everything.
func TestAFieldSelectorThatExcludesOnlyTheEmptyValueIsRefused(t *testing.T) {
	for selector, refused := range map[string]bool{
		"spec.tool!=": true, "status.state=open,spec.projectRef.name!=": true, "metadata.name!=": true, "spec.endpointRef.name!=": true,
		"spec.class!=": true, "spec.category!=": true, "status.state!=": true, "status.phase!=": true, "spec.tool!=gosec": false,
		"spec.tool=": false, "spec.class=": false,
	} {
		if _, err := selectors("", "", selector); (err != nil) != refused {
			t.Errorf("%s: error %v, want one: %t", selector, err, refused)
		}
	}
}

// A plugin that is older than the service may be unable to read any finding that was written since.
func TestALimitedListIsNotReadOneByOne(t *testing.T) {
	const limit, all = 20, 1000
	for reason, tc := range map[string]struct {
		readable func(i int) bool
		shown    int
		more     bool
	}{
		"only the first can be read": {func(i int) bool { return i < limit-1 }, limit - 1, false},
		"only one cannot be read":    {func(i int) bool { return i != 3 }, limit, true},
	} {
		lists := 0
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, o client.ObjectList, options ...client.ListOption) error {
				lists++
				list, asked := o.(*unstructured.UnstructuredList), (&client.ListOptions{}).ApplyOptions(options)
				from, _ := strconv.Atoi(asked.Continue)
				to := min(from+int(asked.Limit), all)
				for i := from; i < to; i++ {
					f := stored(t, builder.Finding(fmt.Sprintf("f-%04d", i)).Build())
					if !tc.readable(i) {
						f.Object["spec"] = "odd"
					}
					list.Items = append(list.Items, f)
				}
				if to < all {
					list.SetContinue(strconv.Itoa(to))
				}
				return nil
			},
		}).Build()
		s, l := &session{client: c, errOut: io.Discard}, &listing{output: newOutput(), limit: limit}
		err := s.eachPage(t.Context(), "Finding", limit+1, client.ListOptions{}, func(items []unstructured.Unstructured) error {
			return l.add(s, items)
		})
		if err != nil && !errors.Is(err, errEnough) {
			t.Errorf("%s: %v", reason, err)
		}
		if more := l.sortAndLimit(); more != tc.more || len(l.entries) != tc.shown || lists > 1+all/pageSize {
			t.Errorf("%s: %d are shown, there are more: %t; want %d, %t; it asked %d times", reason, len(l.entries), more, tc.shown, tc.more, lists)
		}
	}
}

// The documented selectable fields are those that the API server selects by.
func TestTheFieldsAreThoseOfTheCRD(t *testing.T) {
	for kind, ours := range map[string][]string{"findings": selectable, "webhookdeliveries": selectableOfDeliveries} {
		content := harness.RepositoryFile(t, "config", "crd", "bases", "appsec.dev_"+kind+".yaml")
		var crd apiextensionsv1.CustomResourceDefinition
		harness.Must(t, yaml.Unmarshal([]byte(content), &crd))
		var want []string
		for _, field := range crd.Spec.Versions[0].SelectableFields {
			want = append(want, strings.TrimPrefix(field.JSONPath, "."))
		}
		harness.Same(t, "fields of "+kind, slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(ours)))
	}
}
