package main

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/plane"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// decision is a triage decision about a finding. No two decisions are equal, so that each causes a
// write.
type decision struct {
	finding  string
	status   v1alpha1.UserStatus
	comments string
}

// newDecision returns decision number of a series over the findings: when the series returns to a finding, the
// decision differs from the last one. The series' name must be unique.
func newDecision(findings []string, series string, number int) decision {
	status := v1alpha1.UserStatusActive
	if number/len(findings)%2 == 1 {
		status = v1alpha1.UserStatusMuted
	}
	return decision{
		finding: findings[number%len(findings)], status: status,
		comments: fmt.Sprintf("Looked at in %s, at number %d.", series, number),
	}
}

// restBody returns the decision as the body of PATCH /v2/findings/{id}.
func (d decision) restBody() []byte {
	return encoded(map[string]any{"user_status": d.status, "comments": d.comments})
}

// mergePatch returns the patch that the REST API sends for the decision. by is the user who made the
// decision; if it is empty, the API server fills it in.
func (d decision) mergePatch(by string) []byte {
	triage := map[string]any{"userStatus": d.status, "comments": d.comments}
	if by != "" {
		triage["by"] = by
	}
	return encoded(map[string]any{"spec": map[string]any{"triage": triage}})
}

func encoded(value any) []byte {
	content, err := json.Marshal(value)
	if err != nil {
		panic("of strings alone: " + err.Error())
	}
	return content
}

// decider writes decisions using only client-go.
type decider struct {
	client             rest.Interface
	namespace, manager string
	// by is as for mergePatch.
	by string
}

func newDecider(config *rest.Config, namespace, manager, by string) (*decider, error) {
	client, err := kube.NewClient(config)
	return &decider{client: client, namespace: namespace, manager: manager, by: by}, err
}

// newTriager returns a decider with the identity of a triager of the namespace.
func newTriager(ctx context.Context, p *plane.Plane, namespace, manager string) (*decider, error) {
	config, err := p.Member(ctx, namespace, triager, testenv.Triager)
	if err != nil {
		return nil, err
	}
	return newDecider(config, namespace, manager, "")
}

func (d *decider) write(ctx context.Context, decision decision) error {
	err := d.client.Patch(types.MergePatchType).
		Namespace(d.namespace).Resource("findings").Name(decision.finding).
		Param("fieldManager", d.manager).
		Body(decision.mergePatch(d.by)).
		Do(ctx).Into(&v1alpha1.Finding{})
	if err != nil {
		return fmt.Errorf("patch finding %s: %w", decision.finding, err)
	}
	return nil
}

// maxCallers is the largest number of concurrent writers in any measurement; each writes to its
// own findings.
const maxCallers = 32

// findingNames returns the names of the fixture's first findings: at most count, and a multiple of maxCallers.
func findingNames(f *bench.Fixture, count int) ([]string, error) {
	count = min(count, f.Size) / maxCallers * maxCallers
	if count == 0 {
		return nil, fmt.Errorf("%d findings are too few: %d are wanted", f.Size, maxCallers)
	}
	names := make([]string, count)
	for i := range names {
		names[i] = f.Data.Finding(i).Name
	}
	return names, nil
}
