package policies

import (
	"context"
	"net/http"
	"net/url"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

// commonFilters returns the filters of the list of findings that all the selected findings match. Findings that do not
// exist any more do not count; if none exists, it fails.
func commonFilters(ctx context.Context, v *page.Visit, selected []string) (common url.Values, err error) {
	err = v.EachFinding(ctx, selected, func(f page.Finding) {
		of := filtersOf(f)
		if len(of) == 0 {
			return
		}
		if common == nil {
			common = of
		}
		for name := range common {
			if common.Get(name) != of.Get(name) {
				common.Del(name)
			}
		}
	})
	if err == nil && common == nil {
		err = api.Failed(http.StatusPreconditionFailed, "The selected findings do not exist any more.")
	}
	return common, err
}

// filtersOf returns the filters that select findings like this one: by kind and by location.
func filtersOf(f page.Finding) url.Values {
	filters := url.Values{}
	for name, value := range map[string]string{
		"tool": f.Facts.Tool, "rule": f.Facts.RuleID, "class": f.Facts.Class, "file": f.Details.Location.FilePath,
		"vulnerability": f.Facts.Vulnerability.ID, "package": f.Facts.Package.Name, "repo_id": f.Repo.ID,
		"project_id": f.Project.ID, "severity": f.Details.Severity,
	} {
		if value != "" {
			filters.Set(name, value)
		}
	}
	return filters
}
