package main

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// decision is what somebody decides about a finding. No two are the same, so that each is a write.
type decision struct {
	finding  string
	status   v1alpha1.UserStatus
	comments string
}

// newDecision is the number-th of a series over the findings: by the time that it comes to a finding again the
// decision is another one. The series' name must be its own.
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

// restBody is the decision for PATCH /v2/findings/{id}.
func (d decision) restBody() []byte {
	return encoded(map[string]any{"user_status": d.status, "comments": d.comments})
}

// mergePatch is what the REST API makes of the decision; by is who the finding says has decided, empty:
// the API server says it.
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

// decider writes decisions with client-go alone.
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

// mostCallers is the most that write at the same time anywhere here, each to findings of its own.
const mostCallers = 32

// findingNames are the names of so many of the fixture's findings, at most, from one on: a multiple of mostCallers.
func findingNames(f *bench.Fixture, from, count int) ([]string, error) {
	count = min(count, f.Size-from) / mostCallers * mostCallers
	if count <= 0 {
		return nil, fmt.Errorf("%d findings are too few: %d are wanted after the first %d", f.Size, mostCallers, from)
	}
	names := make([]string, count)
	for i := range names {
		names[i] = f.Data.Finding(from + i).Name
	}
	return names, nil
}
