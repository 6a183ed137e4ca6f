// Package corpus generates unusual objects: each field of each kind with odd values, for tests of
// what the API server accepts and how readers handle it.
package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// CRDs returns the generated CRDs by kind, except TriageOperationParts and FindingTrends, which only the controllers
// may write.
func CRDs() (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := everyCRD()
	delete(crds, "TriageOperationPart")
	delete(crds, "FindingTrend")
	return crds, err
}

// CRD returns the generated CRD of any kind.
func CRD(kind string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := everyCRD()
	if err == nil && crds[kind] == nil {
		err = fmt.Errorf("config/crd/bases has no %s", kind)
	}
	return crds[kind], err
}

func everyCRD() (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(harness.Root(), "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("config/crd/bases holds %d files, error %w", len(files), err)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // a test names its own files
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(crd.Spec.Versions) != 1 {
			return nil, fmt.Errorf("%s has %d versions, want 1", crd.Name, len(crd.Spec.Versions))
		}
		out[crd.Spec.Names.Kind] = crd
	}
	return out, nil
}

// SchemaOf returns the schema of a CRD's one version.
func SchemaOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// Odd is a field with an odd value, in an otherwise valid object.
type Odd struct {
	// Path is the path of the field, in the form of a Generator.
	Path string
	// Value is JSON, except for the names in maps, which are strings.
	Value any
}

// String returns a readable form of the field and the value.
func (o Odd) String() string { return fmt.Sprintf("%s=%.80s", o.Path, o.Value) }

// Of returns each field of a part of a kind, "spec" or "status", with odd values of its type; the API
// server decides whether the schema accepts them. The first field of each schema has all odd times, durations
// and numbers. All else is only every sparse-th value, with an offset that differs between fields: texts, values
// of other types, and the times, durations and numbers of further fields. 1 stands for all.
func Of(crd *apiextensionsv1.CustomResourceDefinition, part string, sparse int) []Odd {
	member := SchemaOf(crd).Properties[part]
	w := &walk{sparse: sparse, whole: map[string]bool{}}
	w.of(&member, part)
	return w.out
}

type walk struct {
	sparse, fields int
	// whole holds the schemas of which a field has all values, as JSON without descriptions.
	whole map[string]bool
	out   []Odd
}

func (w *walk) add(path string, values []string) {
	for _, value := range values {
		w.out = append(w.out, Odd{path, json.RawMessage(value)})
	}
}

// addSome adds every sparse-th value, with an offset that differs between fields.
func (w *walk) addSome(path string, values []string) {
	w.fields++
	for i := w.fields % w.sparse; i < len(values); i += w.sparse {
		w.add(path, values[i:i+1])
	}
}

// addForms adds all values to the first field of a schema, and some to the others, which accept the same.
func (w *walk) addForms(schema *apiextensionsv1.JSONSchemaProps, path string, values []string) {
	undescribed := *schema
	undescribed.Description = ""
	content, err := json.Marshal(undescribed)
	if err != nil {
		panic(err) // it was read from a file
	}
	if key := string(content); w.whole[key] {
		w.addSome(path, values)
	} else {
		w.whole[key] = true
		w.add(path, values)
	}
}

func (w *walk) of(schema *apiextensionsv1.JSONSchemaProps, path string) {
	switch schema.Type {
	case "string":
		w.addSome(path, textsFor(schema))
		if forms := formsFor(schema); len(forms) > 0 {
			w.addForms(schema, path, forms)
		}
	case "integer", "number":
		w.addForms(schema, path, numbers)
	case "boolean":
		w.addSome(path, others)
	case "array":
		if items := schema.Items.Schema; items.Type == "string" || items.Type == "integer" {
			w.of(items, path+"[]")
		} else {
			w.of(items, path)
		}
		w.addSome(path, others)
	case "object":
		w.addSome(path, others)
		w.members(schema, path)
	}
}

func (w *walk) members(schema *apiextensionsv1.JSONSchemaProps, path string) {
	if schema.AdditionalProperties != nil {
		for _, name := range names {
			w.out = append(w.out, Odd{path + "{}", name})
		}
		w.of(schema.AdditionalProperties.Schema, path+".*")
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		member := schema.Properties[name]
		w.of(&member, path+"."+name)
	}
}

// formsFor returns the odd times or durations for a schema of a time or duration.
func formsFor(schema *apiextensionsv1.JSONSchemaProps) []string {
	switch {
	case IsTime(schema) || schema.Format == "date-time":
		return times
	case IsDuration(schema) || schema.Format == "duration":
		return durations
	default:
		return nil
	}
}

// textsFor returns the odd texts for a schema, and texts of its maximum length.
func textsFor(schema *apiextensionsv1.JSONSchemaProps) []string {
	if len(schema.Enum) > 0 {
		return slices.Concat(others, []string{`""`, `" "`, `"\u0000"`})
	}
	all := slices.Concat(texts, others)
	if schema.MaxLength != nil {
		for _, character := range []string{"<", "a", "\U0001F600", `\ud83d\ude00`, `\u0001`} {
			all = append(all, `"`+strings.Repeat(character, int(*schema.MaxLength))+`"`)
		}
	}
	return all
}

var (
	numbers = []string{
		"0", "-0", "-1", "1", "1.0", "-1.0", "0.5", "1e3", "1E3", "1e0", "1e-7", "1e21", "-1e21", "1e400",
		"2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296",
		"9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"18446744073709551615", "9223372036854775807.0", "9.223372036854775807e18", "2147483647.0", "2147483648.0", `"1"`, "null", "true",
	}
	// others are values of other types, or null.
	others = []string{"null", "7", "true", "[]", "{}", `"x"`}
	texts  = []string{
		`""`, `" "`, `"\u0000"`, `"a\u0000b"`, `"\ud800"`, `"\udc00\ud800"`, `"a\ud83d"`, `"\ud83d\ude00"`, "\"\U0001F468\u200D\U0001F469\u200D\U0001F467\"",
		`"\u202egnp.exe"`, "\"\u05e9\u05dc\u05d5\u05dd\"", `"\ufeffa"`, `"a\ufeff"`, `"\u2028\u2029"`, `"\uffff"`, "\"\U0010FFFF\"", `"\r\n\t\b\f\u007f\u0085"`,
		`"e\u0301"`, `"<script>&amp;</script>"`, `"\\\"/\/"`, `"%00%ff"`, `"../.."`, `"a/b"`, `"-"`, `"0"`, `"true"`, `"null"`, `"~"`, `"1e21"`,
		`"https://example.com/\ud83d\ude00"`, `"https://ex\u0000ample.com"`, `"https://[::1"`, `"https://example.com:99999/"`, `"http://%zz"`, `"https://\u202e"`,
		`"10.0"`, `"0.0"`, `"9.9\n"`, `"a\n"`, `"a.b"`,
	}
	times = []string{
		`"2026-01-01T00:00:00Z"`, `"2026-01-01t00:00:00z"`, `"2026-01-01T00:00:00+99:99"`, `"2026-01-01T00:00:00+23:59"`, `"2026-01-01T00:00:00-23:59"`,
		`"2026-01-01T00:00:00+24:00"`, `"0001-01-01T00:00:00Z"`, `"0000-12-31T23:59:59Z"`, `"0001-01-01T00:00:00+05:00"`, `"0000-12-31T23:59:59-05:00"`,
		`"9999-12-31T23:59:59Z"`, `"9999-12-31T23:59:59.999999999Z"`, `"9999-12-31T23:59:59-05:00"`, `"10000-01-01T00:00:00Z"`, `"+10000-01-01T00:00:00Z"`,
		`"2026-01-01T00:00:60Z"`, `"2016-12-31T23:59:60Z"`, `"2026-02-29T00:00:00Z"`, `"2024-02-29T00:00:00Z"`, `"2026-01-01T24:00:00Z"`, `"2026-01-01T0:00:00Z"`,
		`"2026-01-01T00:00:00,5Z"`, `"2026-01-01T00:00:00.5Z"`, `"2026-01-01T00:00:00.1234567890123456789Z"`, `"2026-01-01T00:00:00.Z"`, `"2026-01-01 00:00:00Z"`,
		`"2026-01-01"`, `"2026-01-01T00:00:00"`, `"2026-01-01T00:00:00Z\n"`, `"1969-12-31T23:59:59Z"`, `"2262-04-11T23:47:17Z"`, `"2026-01-01T00:00:00-00:00"`,
		`"2026-01-01T00:00:00.000000+00:00"`, `"\uff12026-01-01T00:00:00Z"`, `"2026-13-01T00:00:00Z"`, `"2026-00-00T00:00:00Z"`,
	}
	durations = []string{
		`"0"`, `"0s"`, `"-0s"`, `"+1h"`, `"1h"`, `"1.5h"`, `".5h"`, `"1.h"`, `"365d"`, `"1d"`, `"90 days"`, `"3 weeks"`, `"1h30m"`, `"1H"`, `"1 h"`, `"1h "`, `"-1h"`,
		`"2562047h47m16.854775807s"`, `"2562047h47m16.854775808s"`, `"9223372036854775807ns"`, `"9223372036854775808ns"`, `"9999999999h"`, `"1ns"`, `"1us"`, `"1\u00b5s"`,
		`"1\u03bcs"`, `"720h"`, `"8760h"`, `"87600h"`, `"P1D"`, `"PT1H"`, `"1h1h1h1h"`, `"1e3h"`, `"0x1h"`, `"1_000h"`, `"inf"`, `"yesterday"`, `"1m0.000000000000000000000001s"`,
	}
	names = []string{"", " ", "\x00", "\U0001F600", "\u202ea", "\ufeff", "a.b", "a/b", "__proto__", "constructor",
		"\uffff", "1", strings.Repeat("\U0001F600", 64), strings.Repeat("a", 64)}
)

// Send sends JSON that no Go type would produce to the Kubernetes API, and returns its answer.
func Send(ctx context.Context, client *http.Client, method, url, contentType string,
	content []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(content))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", contentType)
	return harness.Answer(client, request)
}

// Object returns the JSON of an object of the kind with the odd field in its spec; an Odd without a value
// gives a valid object.
func Object(crd *apiextensionsv1.CustomResourceDefinition, namespace, name string, odd Odd) ([]byte, error) {
	metadata := map[string]any{"name": name}
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		metadata["namespace"] = namespace
	}
	return json.Marshal(map[string]any{
		"apiVersion": crd.Spec.Group + "/" + crd.Spec.Versions[0].Name, "kind": crd.Spec.Names.Kind, "metadata": metadata,
		"spec": Part(SchemaOf(crd), "spec", odd.Path, odd.Value),
	})
}

// Path returns the URL path of the kind's objects.
func Path(crd *apiextensionsv1.CustomResourceDefinition, namespace string) string {
	path := "/apis/" + crd.Spec.Group + "/" + crd.Spec.Versions[0].Name + "/"
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		path += "namespaces/" + namespace + "/"
	}
	return path + crd.Spec.Names.Plural
}

// Stored returns the JSON of an object with the odd field in its spec, in the API server's storage
// format, to be put into etcd.
func Stored(crd *apiextensionsv1.CustomResourceDefinition, namespace, name string, odd Odd) ([]byte, error) {
	content, err := Object(crd, namespace, name, odd)
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, err
	}
	metadata := map[string]any{
		"name": name, "uid": uuid.NewUUID(), "generation": 1, "creationTimestamp": time.Now().UTC().Format(time.RFC3339),
	}
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		metadata["namespace"] = namespace
	}
	if object["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// Unreadables returns for each kind a field with a value that its Go type cannot hold. Earlier schemas
// accepted such times and durations.
func Unreadables() map[string]Odd {
	out := map[string]Odd{}
	for kind, field := range map[string][2]string{
		"APIKey":          {"spec.rotation.overlap", `"1d"`},
		"Finding":         {"spec.scan.analyzedAt", `"2026-01-01T00:00:00+99:99"`},
		"Organization":    {"spec.retention.closedFindings", `"365d"`},
		"Project":         {"spec.lastCommittedAt", `"2026-01-01T00:00:00+99:99"`},
		"Repository":      {"spec.lastCommit.committedAt", `"2026-01-01T00:00:00+99:99"`},
		"Review":          {"spec.reviewedCommits.reviewedAt", `"2026-01-01T00:00:00+99:99"`},
		"ReviewIssue":     {"spec.line", "4294967296"},
		"Scan":            {"spec.startedAt", `"2026-01-01T00:00:00+99:99"`},
		"TriageOperation": {"spec.set.expiresAt", `"2026-01-01T00:00:00+99:99"`},
		"TriagePolicy":    {"spec.priority", "4294967296"},
		"WebhookDelivery": {"spec.payload", "7"},
		"WebhookEndpoint": {"spec.rotation.overlap", `"1d"`},
	} {
		out[kind] = Odd{field[0], json.RawMessage(field[1])}
	}
	return out
}
