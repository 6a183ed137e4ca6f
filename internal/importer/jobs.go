package importer

import appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"

// scanCategories are the categories of a tool's scans in a project, by the scan's name.
type scanCategories map[string]appsecv1alpha1.FindingCategory

// ofJob returns the findings that the job of a category made or took over last. A finding's own category does not
// tell: a tool that looks for several things at once has findings of several. Where its scan is known no more, a
// finding belongs to the job of its category, and to this one if there is no such job.
func (s scanCategories) ofJob(category appsecv1alpha1.FindingCategory, findings []appsecv1alpha1.Finding) []appsecv1alpha1.Finding {
	jobs := map[appsecv1alpha1.FindingCategory]bool{category: true}
	for _, of := range s {
		jobs[of] = true
	}
	var own []appsecv1alpha1.Finding
	for i := range findings {
		of, known := s[lastScan(&findings[i].Spec)]
		if !known {
			of = findings[i].Spec.Category
		}
		if of == category || !jobs[of] {
			own = append(own, findings[i])
		}
	}
	return own
}

// lastScan returns the name of the scan that closed the finding, else of the one that last changed it.
func lastScan(spec *appsecv1alpha1.FindingSpec) string {
	switch {
	case spec.Closed != nil:
		return spec.Closed.ScanID
	case spec.Scan != nil:
		return spec.Scan.ScanID
	default:
		return ""
	}
}
