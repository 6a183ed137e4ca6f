package importer

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// applied is the body of an apply: only the spec, without the fields that the API server and controllers add.
type applied[S any] struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        appliedMeta `json:"metadata"`
	Spec            S           `json:"spec"`
}

type appliedMeta struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	UID             types.UID         `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
}

// absentVersion is a resource version that no object of ours has. An apply with it creates the object, and conflicts if
// the object exists.
const absentVersion = "1"

// apply sends a whole spec by server-side apply and returns the resulting metadata; nothing else is requested. With a
// resource version in metadata, apply fails with a conflict if the object has changed; with a UID, also if it was
// deleted. An apply with unknown fields is refused at any level of field validation, and strict validation would parse
// the body once more only to look for duplicate fields.
func apply[S any](ctx context.Context, c *Client, manager, kind string, metadata appliedMeta,
	spec S) (after *metav1.PartialObjectMetadata, err error) {
	body, err := json.Marshal(applied[S]{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind},
		Metadata: metadata, Spec: spec,
	})
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", kind, metadata.Name, err)
	}
	body = asYAML(body)
	after = kube.MetadataOf(v1alpha1.GroupVersion.WithKind(kind))
	err = Retry(ctx, func(ctx context.Context) error {
		after.Name, after.Namespace = metadata.Name, metadata.Namespace
		return c.Patch(ctx, after, client.RawPatch(types.ApplyPatchType, body), client.FieldOwner(manager),
			client.ForceOwnership,
			client.FieldValidation(metav1.FieldValidationIgnore))
	})
	return after, ExplainQuota(err, kind)
}

// asYAML escapes the characters of a JSON document that YAML refuses or changes: another client may have stored them.
func asYAML(document []byte) []byte {
	out := make([]byte, 0, len(document))
	for _, r := range string(document) {
		if inYAML(r) {
			out = utf8.AppendRune(out, r)
		} else {
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

func (im *Importer) applyFinding(ctx context.Context, manager string, metadata appliedMeta,
	spec v1alpha1.FindingSpec) (after *metav1.PartialObjectMetadata, err error) {
	metadata.Namespace = im.target.Namespace
	return apply(ctx, im.client, manager, "Finding", metadata, spec)
}

// notInManager matches characters of a tool's name that a field manager may not contain.
var notInManager = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// fieldManager returns the field manager for a tool's imports: at most 128 bytes, in characters that the API server
// accepts.
func fieldManager(tool string) string {
	manager := v1alpha1.ScannerFieldManagerPrefix + notInManager.ReplaceAllString(tool, "-")
	return manager[:min(len(manager), v1alpha1.MaxFieldManagerLength)]
}
