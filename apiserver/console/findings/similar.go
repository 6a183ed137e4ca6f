package findings

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
)

// similarRows is the number of similar findings shown.
const similarRows = 5

// similar holds findings that share the most specific property of a finding: its vulnerability, else its rule, else its
// class.
type similar struct {
	Rows []row
	// Others is the number of other similar findings, List the address of the list of all.
	Others int
	List   string
	// By is the property that they share.
	By filter
}

// likeness returns the filter for similar findings, and its value; empty if there is none.
func likeness(f client.FindingFull) (by filter, value string) {
	switch {
	case f.Facts.Vulnerability.Id != "":
		return filterNamed("vulnerability"), f.Facts.Vulnerability.Id
	case f.Facts.RuleId != "":
		return filterNamed("rule"), f.Facts.RuleId
	}
	return filterNamed("class"), f.Facts.Class
}

// readSimilar reads the newest similar findings.
func readSimilar(ctx context.Context, v *page.Visit, f client.FindingFull) (similar, error) {
	by, value := likeness(f)
	if value == "" {
		return similar{}, nil
	}
	var found rows
	query := url.Values{by.Name: {value}, "size": {strconv.Itoa(similarRows + 1)}}
	if _, err := v.API.Get(ctx, "/v2/full-findings", query, &found); err != nil {
		return similar{}, err
	}
	others := slices.DeleteFunc(found.Items, func(r row) bool { return r.ID == f.Id })
	return similar{
		Rows: others[:min(len(others), similarRows)], Others: max(found.Total-1, 0),
		List: newView(nil).with(by.Name, value), By: by,
	}, nil
}
