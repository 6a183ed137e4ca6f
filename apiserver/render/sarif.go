package render

import (
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// SarifStatus is an upload as GitHub shows one. analyses is the address of its scans.
func SarifStatus(upload *openapi.Upload, analyses string) openapi.SarifStatus {
	shown := openapi.SarifStatus{ProcessingStatus: openapi.SarifStatusProcessingStatusPending, AnalysesUrl: analyses}
	if upload.Status == nil { // GitHub knows no such answer
		shown.ProcessingStatus = openapi.SarifStatusProcessingStatusFailed
		shown.Errors = &[]string{"how the upload ended is not known any more: some of its scans were removed by the organization's retention"}
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

// sarifError is why a scan failed, empty where it did not. Clients tell by how it begins whether the file was refused,
// or imported and the tool at fault.
func sarifError(scan *openapi.Scan) string {
	switch {
	case valueOf(scan.Status) != openapi.ScanStatusFailed:
		return ""
	case scan.CompletedAt != nil && !strings.HasPrefix(scan.Message, importer.FailedImport):
		return "unsuccessful execution: " + scan.Message
	}
	return "rejecting SARIF: " + strings.TrimPrefix(scan.Message, importer.FailedImport)
}
