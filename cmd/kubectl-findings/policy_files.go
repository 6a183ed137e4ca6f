package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// filedPolicy is a policy declared in a file.
type filedPolicy struct {
	*v1alpha1.TriagePolicy
	// source is the file.
	source string
	// declared is the spec as written in the file.
	declared any
	program  *rules.Program
	// mayLoseMode means that applying the file may remove mode Apply of the policy in the cluster.
	mayLoseMode bool
	// modeNote says what becomes of mode Apply in the cluster if the file names no mode.
	modeNote string
}

// keepMode gives a policy without a mode that of the policy in the cluster. If that is Apply, it sets mayLoseMode and
// modeNote.
func (p *filedPolicy) keepMode(stored *v1alpha1.TriagePolicy) {
	if p.Spec.Mode != "" || stored == nil {
		return
	}
	if p.Spec.Mode = stored.Spec.Mode; p.Spec.Mode != v1alpha1.PolicyApply {
		return
	}
	p.modeNote = "the file names no mode: the policy keeps mode Apply of the cluster, unless Helm or kubectl replace " +
		"removes it. To be sure, write mode: Apply into the file"
	if p.mayLoseMode = appliedMode(stored); p.mayLoseMode {
		p.modeNote = "the file no longer names spec.mode: applying it may remove mode Apply, which ends the policy's decisions. " +
			"What follows is as if the mode stayed. Write mode: Apply or mode: Preview into the file"
	}
}

// appliedMode reports whether a file that was applied named the mode. Whether applying one without it removes the mode
// depends on who applies it, how, and who else has set the mode. A client-side apply stores the last file in an
// annotation, a server-side apply the fields that it named. Helm and what embeds it (Flux's helm-controller,
// Terraform's provider) compare files that the plugin does not see, but sign the fields that they set.
func appliedMode(stored *v1alpha1.TriagePolicy) bool {
	var file struct{ Spec struct{ Mode string } }
	last := stored.Annotations[corev1.LastAppliedConfigAnnotation]
	if json.Unmarshal([]byte(last), &file) == nil && file.Spec.Mode != "" {
		return true
	}
	mode := fieldpath.MakePathOrDie("spec", "mode")
	return slices.ContainsFunc(stored.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		var named fieldpath.Set
		byFile := e.Operation == metav1.ManagedFieldsOperationApply || strings.Contains(e.Manager, "helm")
		return byFile && e.FieldsV1 != nil && named.FromJSON(e.FieldsV1.GetRawReader()) == nil && named.Has(mode)
	})
}

// readWithin reads the files until ctx ends. URLs must respond within callTimeout. The library that reads them supports
// neither limit.
func (o *policyTestOptions) readWithin(ctx context.Context) ([]*filedPolicy, error) {
	if slices.ContainsFunc(*o.files.Filenames, isURL) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, callTimeout, errNoAnswer)
		defer cancel()
	}
	return untilDone(ctx, o.read)
}

var errNoAnswer = fmt.Errorf("the URLs of -f did not answer within %s: download the files and name them", callTimeout)

func isURL(file string) bool {
	return strings.HasPrefix(file, "http://") || strings.HasPrefix(file, "https://")
}

// read returns the policies of all files, each in its namespace.
func (o *policyTestOptions) read() ([]*filedPolicy, error) {
	options := o.files.ToOptions()
	if err := options.RequireFilenameOrKustomize(); err != nil {
		return nil, errors.New("which policies? Give files with -f, or a kustomization with -k")
	}
	infos, err := resource.NewLocalBuilder().Unstructured().Local().ContinueOnError().
		FilenameParam(false, &options).Flatten().Do().Infos()
	if err != nil {
		return nil, withoutContents(err)
	}
	var policies []*filedPolicy
	var errs []error
	passed := 0
	for _, info := range infos {
		object, is := info.Object.(*unstructured.Unstructured)
		switch kind := info.Object.GetObjectKind().GroupVersionKind(); {
		case is && kind == policyKind:
			policy, err := o.file(object, info.Source)
			policies, errs = append(policies, policy), append(errs, err)
		case is && kind.Group == policyKind.Group && len(similar(kind.Kind, policyKinds)) > 0:
			errs = append(errs, fmt.Errorf("%s: %s has the apiVersion %s and the kind %s: did you mean %s and %s?",
				info.Source, object.GetName(), object.GetAPIVersion(), kind.Kind, policyKind.GroupVersion(), policyKind.Kind))
		case is && kind.Group == "" && kind.Kind == policyKind.Kind:
			errs = append(errs, fmt.Errorf("%s: policy %s has the apiVersion %q: did you mean %s?",
				info.Source, object.GetName(), object.GetAPIVersion(), policyKind.GroupVersion()))
		default:
			passed++ // a folder in Git may hold other kinds, even ones that this plugin does not know
		}
	}
	if passed > 0 {
		fmt.Fprintf(o.streams.ErrOut, "skipped because they are not TriagePolicies: %d\n", passed)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(policies) == 0 {
		return nil, errors.New("the files contain no TriagePolicy")
	}
	return policies, checkNamedOnce(policies)
}

// withoutContents shortens errors about objects without a kind or with a malformed apiVersion, which quote the whole
// file. They are recognised by their text, because the library that reads the files does not wrap them.
func withoutContents(err error) error {
	errs := []error{err}
	if several, are := errors.AsType[utilerrors.Aggregate](err); are {
		errs = utilerrors.Flatten(several).Errors()
	}
	for i, err := range errs {
		if before, _, quotes := strings.Cut(err.Error(), " is missing in '"); quotes {
			errs[i] = fmt.Errorf("%s is missing, or apiVersion is malformed; if the file is not a manifest, leave it out of -f",
				before)
		}
	}
	return utilerrors.NewAggregate(errs) // it removes duplicates: a file may be named twice
}

var policyKind = v1alpha1.GroupVersion.WithKind("TriagePolicy")

// policyKinds are the names that users may have meant by a similar one. The plural is used in roles and kubectl get.
var policyKinds = []string{policyKind.Kind, "TriagePolicies"}

// file refuses fields that the kind does not have: a misspelt field would have no effect.
func (o *policyTestOptions) file(object *unstructured.Unstructured, source string) (*filedPolicy, error) {
	policy := &filedPolicy{TriagePolicy: &v1alpha1.TriagePolicy{}, source: source, declared: object.Object["spec"]}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, policy.TriagePolicy, true)
	if !runtime.IsStrictDecodingError(err) {
		err = cmp.Or(mistyped(object), err) // the converter cuts a number that is too large
	}
	if err != nil {
		return nil, fmt.Errorf("%s: policy %s: %w", source, object.GetName(), err)
	}
	if policy.Name == "" {
		return nil, fmt.Errorf("%s: a policy has no metadata.name", source)
	}
	if !kube.IsName(policy.Name) || policy.Namespace != "" && !kube.IsName(policy.Namespace) {
		return nil, fmt.Errorf("%s: policy %q of namespace %q cannot exist: names consist of a-z, 0-9, - and dots", source,
			policy.Name, policy.Namespace)
	}
	namespace, err := o.kubeconfig.namespace()
	if err != nil {
		return nil, err
	}
	chosen := o.kubeconfig.organization != "" || *o.kubeconfig.Namespace != ""
	if chosen && policy.Namespace != "" && policy.Namespace != namespace {
		return nil, fmt.Errorf("%s: policy %s has the namespace %s, but the flags select %s: omit one of them", source,
			policy.Name, policy.Namespace, namespace)
	}
	policy.Namespace = cmp.Or(policy.Namespace, namespace)
	return policy, nil
}

// mistyped returns an error that names a field with a value of the wrong type, which the converter's errors do not; nil
// if there is none.
func mistyped(object *unstructured.Unstructured) error {
	data, err := object.MarshalJSON()
	if err != nil {
		return nil
	}
	wrong, is := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(data, &v1alpha1.TriagePolicy{}))
	if !is {
		return nil
	}
	given, number := strings.CutPrefix(wrong.Value, "number ")
	if !number {
		given = cmp.Or(inWords[wrong.Value], wrong.Value)
	}
	want := cmp.Or(expected[wrong.Type.Kind()], wrong.Type.String())
	return fmt.Errorf("%s must be %s, not %s", wrong.Field, want, given)
}

// inWords describes JSON types by their names in encoding/json, and expected those of fields.
var (
	inWords = map[string]string{
		"object": "an object", "array": "a list", "string": "a text", "bool": "true or false", "number": "a number",
	}
	expected = map[reflect.Kind]string{
		reflect.Struct: "an object", reflect.Map: "an object", reflect.Slice: "a list", reflect.String: "a text",
		reflect.Bool: "true or false", reflect.Int32: "a whole number up to 2147483647",
	}
)

func checkNamedOnce(policies []*filedPolicy) error {
	var errs []error
	first := map[string]string{}
	for _, policy := range policies {
		key := policy.Namespace + "/" + policy.Name
		if source, found := first[key]; found {
			errs = append(errs, fmt.Errorf("policy %s is declared twice, in %s and in %s", policy.Name, source, policy.source))
		}
		first[key] = policy.source
	}
	return errors.Join(errs...)
}

// compileAll compiles every expression, and returns the errors of each.
func compileAll(policies []*filedPolicy) error {
	var errs []error
	for _, policy := range policies {
		program, err := rules.Compile(policy.Spec.Match)
		if policy.program = program; err == nil {
			continue
		}
		if wrong, at := rules.IsCompileError(err); at {
			err = fmt.Errorf("%w%s", err, pointed(policy.Spec.Match, wrong.Line, wrong.Column))
		}
		errs = append(errs, fmt.Errorf("%s: spec.match of policy %s does not compile: %w", policy.source, policy.Name, err))
	}
	return errors.Join(errs...)
}

// pointedWidth is how much of a line is shown on either side of the error, in characters.
const pointedWidth = 60

// pointed returns that line of an expression with a caret below the column; both count from 1. It returns "" if they
// are out of range.
func pointed(expression string, line, column int) string {
	lines := strings.Split(expression, "\n")
	if line < 1 || line > len(lines) || column < 1 {
		return ""
	}
	text := []rune(strings.TrimRight(lines[line-1], "\r"))
	at := min(column-1, len(text))
	from, to := max(0, at-pointedWidth), min(len(text), at+pointedWidth)
	before := printable(string(text[from:at]))
	caret := strings.Repeat(" ", utf8.RuneCountInString(before)) + "^"
	return "\n  " + before + printable(string(text[at:to])) + "\n  " + caret
}

func byNamespace(policies []*filedPolicy) map[string][]*filedPolicy {
	out := map[string][]*filedPolicy{}
	for _, policy := range policies {
		out[policy.Namespace] = append(out[policy.Namespace], policy)
	}
	return out
}
