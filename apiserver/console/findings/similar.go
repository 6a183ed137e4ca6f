package findings

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
)

// similarRows is how many similar findings are shown.
const similarRows = 5

// similar are findings that have with one in common what it says most by: its vulnerability, else its rule, else its
// class.
type similar struct {
	Rows []row
	// Others is how many there are, List the address of the list of all.
	Others int
	List   string
	// By is what they have in common.
	By filter
}

// likeness is the filter that a finding's similar ones meet, and its value; empty where there is none.
func likeness(f client.FindingFull) (by filter, value string) {
	switch {
	case f.Facts.Vulnerability.Id != "":
		return filterNamed("vulnerability"), f.Facts.Vulnerability.Id
	case f.Facts.RuleId != "":
		return filterNamed("rule"), f.Facts.RuleId
	}
	return filterNamed("class"), f.Facts.Class
}

// readSimilar reads the newest findings like the one given.
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
