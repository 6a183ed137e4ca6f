package policies

import (
	"net/url"

	"github.com/appsec-dev/findings-operator/client"
)

// commonFilters returns the filters of the list of findings that all these findings match.
func commonFilters(findings []client.FindingFull) url.Values {
	common := url.Values{}
	for i := range findings {
		of := filtersOf(&findings[i])
		if i == 0 {
			common = of
			continue
		}
		for name := range common {
			if common.Get(name) != of.Get(name) {
				common.Del(name)
			}
		}
	}
	return common
}

// filtersOf returns the filters that select findings like this one: by kind and by location.
func filtersOf(f *client.FindingFull) url.Values {
	filters := url.Values{}
	for name, value := range map[string]string{
		"tool": f.Facts.Tool, "rule": f.Facts.RuleId, "class": f.Facts.Class, "file": f.Details.Location.FilePath,
		"vulnerability": f.Facts.Vulnerability.Id, "package": f.Facts.Package.Name, "repo_id": f.Repo.Id,
		"project_id": f.Project.Id, "severity": string(f.Details.Severity),
	} {
		if value != "" {
			filters.Set(name, value)
		}
	}
	return filters
}
