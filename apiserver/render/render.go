// Package render turns resources, and what they show of each other, into the JSON of the REST
// API. docs/decisions/fields.md says which member comes from where.
//
// Every documented member is always there. What is not known is null where it is a time or
// one of a fixed set of words, else "", [], {}, 0 or false.
package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Finding renders both shapes of a finding.
//
// updatedAt is the time to show; it is not taken from the object, because the object alone
// does not know it before its first reconcile. project and repository may be nil: they may be
// created after the finding. The same arguments always give the same bytes.
func Finding(organization string, finding *v1alpha1.Finding, updatedAt time.Time, project *Project, repository *Repository) (v1, v2 []byte, err error) {
	if project == nil {
		project = noProject
	}
	if repository == nil {
		repository = noRepository
	}
	if v1, err = encode(findingV1(finding, updatedAt, project, repository)); err != nil {
		return nil, nil, fmt.Errorf("encode finding %s in shape v1: %w", finding.Name, err)
	}
	if v2, err = encode(findingV2(organization, finding, updatedAt, project, repository)); err != nil {
		return nil, nil, fmt.Errorf("encode finding %s in shape v2: %w", finding.Name, err)
	}
	return v1, v2, nil
}

func findingV1(f *v1alpha1.Finding, updatedAt time.Time, project *Project, repository *Repository) *openapi.FindingV1 {
	details := &f.Spec.Details
	location := valueOf(details.Location)
	endpoint := firstHTTPEndpoint(details.EndpointLocations)
	return &openapi.FindingV1{
		Id:                  f.Name,
		Name:                details.Title,
		Description:         details.Description,
		AgentName:           valueOf(f.Spec.Agent).Name,
		Class:               f.Spec.Class,
		AttackFeasibility:   word[openapi.Effort](details.ExploitFeasibility),
		AttackWalkthrough:   details.ExploitWalkthrough,
		Confidence:          word[openapi.Level](f.Spec.Confidence),
		Severity:            openapi.Severity(details.Severity),
		Remediation:         details.Remediation,
		RemediationEffort:   word[openapi.Effort](details.RemediationEffort),
		Status:              openapi.FindingStatus(findingstate.State(&f.Spec)),
		UserStatus:          openapi.UserStatus(findingstate.UserStatus(&f.Spec)),
		CreatedAt:           second(findingstate.CreatedAt(f).Time),
		UpdatedAt:           second(updatedAt),
		EndpointMethod:      endpoint.Action,
		EndpointPath:        endpoint.Path,
		HandlerClassName:    location.ClassName,
		HandlerMethodName:   location.MethodName,
		VulnerableCodeBlock: details.Code,
		FixedCodeBlock:      details.FixedCode,
		SecretType:          f.Spec.SecretType,
		RepoId:              string(f.Spec.RepositoryRef.Name),
		RepoUrl:             repository.url,
		RepoCommitHash:      f.Spec.CommitHash,
		ProjectId:           string(f.Spec.ProjectRef.Name),
		Location:            locationV1(location),
		SupportingFiles:     convert(details.SupportingFiles, locationV1),
		Project:             project.v1,
	}
}

func findingV2(organization string, f *v1alpha1.Finding, updatedAt time.Time, project *Project, repository *Repository) *openapi.FindingV2 {
	agent := valueOf(f.Spec.Agent)
	scan := valueOf(f.Spec.Scan)
	return &openapi.FindingV2{
		Id:             f.Name,
		OrganizationId: organization,
		Comments:       f.Spec.Triage.Comments,
		CreatedAt:      second(findingstate.CreatedAt(f).Time),
		UpdatedAt:      second(updatedAt),
		Status:         openapi.FindingStatus(findingstate.State(&f.Spec)),
		UserStatus:     openapi.UserStatus(findingstate.UserStatus(&f.Spec)),
		Agent: openapi.Agent{
			CustomAgentVectorId: agent.CustomAgentVectorID,
			Description:         agent.Description,
			Name:                agent.Name,
			Vector:              agent.Vector,
		},
		Details: detailsV2(&f.Spec.Details),
		Project: openapi.FindingProject{
			Id:      string(f.Spec.ProjectRef.Name),
			Name:    project.name,
			Purpose: project.purpose,
			Context: project.context,
		},
		Repo: openapi.FindingRepo{
			Id:       string(f.Spec.RepositoryRef.Name),
			Name:     repository.name,
			Provider: repository.provider,
			Url:      repository.url,
		},
		ScanDetails: openapi.ScanDetails{
			AnalyzedAt: optionalSecond(scan.AnalyzedAt),
			RejectedAt: optionalSecond(scan.RejectedAt),
			ScanId:     scan.ScanID,
			VerifiedAt: optionalSecond(scan.VerifiedAt),
		},
	}
}

func detailsV2(d *v1alpha1.FindingDetails) openapi.Details {
	return openapi.Details{
		Code:               d.Code,
		Description:        d.Description,
		EndpointLocations:  convert(d.EndpointLocations, endpointV2),
		ExploitFeasibility: word[openapi.Effort](d.ExploitFeasibility),
		ExploitWalkthrough: d.ExploitWalkthrough,
		FixedCode:          d.FixedCode,
		Location:           locationV2(valueOf(d.Location)),
		Remediation:        d.Remediation,
		RemediationEffort:  word[openapi.Effort](d.RemediationEffort),
		Severity:           openapi.Severity(d.Severity),
		SupportingFiles:    convert(d.SupportingFiles, locationV2),
		Title:              d.Title,
		ValidationEvidence: convert(d.ValidationEvidence, evidenceV2),
	}
}

func locationV1(l v1alpha1.FileLocation) openapi.FindingV1Location {
	return openapi.FindingV1Location{FilePath: l.FilePath, Hash: l.Hash, Url: l.URL, Line: l.LineNumber}
}

func locationV2(l v1alpha1.FileLocation) openapi.FileLocation {
	return openapi.FileLocation{
		ClassName:         l.ClassName,
		FilePath:          l.FilePath,
		FunctionSignature: l.FunctionSignature,
		Hash:              l.Hash,
		LineNumber:        l.LineNumber,
		MethodName:        l.MethodName,
		Url:               l.URL,
	}
}

func endpointV2(e v1alpha1.EndpointLocation) openapi.EndpointLocation {
	return openapi.EndpointLocation{Action: e.Action, Path: e.Path, Type: openapi.EndpointLocationType(e.Type)}
}

func evidenceV2(e v1alpha1.ValidationEvidence) openapi.ValidationEvidence {
	return openapi.ValidationEvidence{Criteria: e.Criteria, Rationale: e.Rationale}
}

func firstHTTPEndpoint(list []v1alpha1.EndpointLocation) v1alpha1.EndpointLocation {
	for _, endpoint := range list {
		if endpoint.Type == v1alpha1.EndpointHTTP {
			return endpoint
		}
	}
	return v1alpha1.EndpointLocation{}
}

// buffers spare a growing buffer for each of the many items of a first list.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// encode writes JSON without escaping <, > and &, which source code is full of: the answers
// are application/json and never part of a page.
func encode(value any) ([]byte, error) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.Clone(bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))), nil
}
