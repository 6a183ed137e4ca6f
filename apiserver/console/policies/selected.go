package policies

import (
	"context"
	"net/url"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

// commonFilters returns the filters of the list of findings that all the selected findings match.
func commonFilters(ctx context.Context, v *page.Visit, selected []string) (common url.Values, err error) {
	err = v.EachFinding(ctx, selected, func(f page.Finding) {
		of := filtersOf(f)
		if common == nil {
			common = of
		}
		for name := range common {
			if common.Get(name) != of.Get(name) {
				common.Del(name)
			}
		}
	})
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
