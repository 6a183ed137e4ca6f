package render

import (
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// SarifStatus returns the status of an upload in GitHub's format. analyses is the URL of its scans.
func SarifStatus(upload *openapi.Upload, analyses string) openapi.SarifStatus {
	shown := openapi.SarifStatus{ProcessingStatus: openapi.SarifStatusProcessingStatusPending, AnalysesUrl: analyses}
	if upload.Status == nil { // GitHub has no such status
		shown.ProcessingStatus = openapi.SarifStatusProcessingStatusFailed
		shown.Errors = &[]string{unknownEnd(upload)}
		return shown
	}
	switch *upload.Status {
	case openapi.ScanStatusCompleted:
		shown.ProcessingStatus = openapi.SarifStatusProcessingStatusComplete
	case openapi.ScanStatusFailed:
		shown.ProcessingStatus = openapi.SarifStatusProcessingStatusFailed
		errors := []string{}
		for i := range upload.Scans {
			if text := sarifError(&upload.Scans[i]); text != "" && !slices.Contains(errors, text) {
				errors = append(errors, text)
			}
		}
		shown.Errors = &errors
	case openapi.ScanStatusRunning:
	}
	return shown
}

// unknownEnd returns why it is not known how the upload ended.
func unknownEnd(upload *openapi.Upload) string {
	if len(upload.Scans) < int(upload.ScanCount) {
		return "how the upload ended is not known any more: some of its scans were removed by the organization's retention"
	}
	return "how the upload ended is not known: more scans have its id than allowed, see its warnings at analyses_url"
}

// sarifError returns why a scan failed, empty if it did not. The prefix tells clients whether the file was
// refused, or was imported and the tool failed.
func sarifError(scan *openapi.Scan) string {
	switch {
	case valueOf(scan.Status) != openapi.ScanStatusFailed:
		return ""
	case scan.CompletedAt != nil && !strings.HasPrefix(scan.Message, importer.FailedImport):
		return "unsuccessful execution: " + scan.Message
	}
	text := "rejecting SARIF: " + strings.TrimPrefix(scan.Message, importer.FailedImport)
	if strings.Contains(text, viaForce) && !strings.Contains(text, viaStart) {
		text += ". This route cannot force an import: if force is right, upload the results of that project alone to " +
			"POST /v2/repos/" + scan.RepoId + "/projects/{project_id}/scans?force=true, then the whole file here again"
	}
	return text
}

// These stand in refusals by the importer. GitHub's routes have no parameter to force an import, but take its start. An
// older scan that was forced would not be the last one, so the same file would be refused here again.
const viaForce, viaStart = "(over REST force=true)", "(over REST started_at)"
