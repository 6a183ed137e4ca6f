package page

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/client"
)

// Finding is what pages about many findings use of each. A deleted one only has its id.
type Finding struct {
	ID      string `json:"id"`
	Details struct {
		Title    string `json:"title"`
		Severity string `json:"severity"`
		Location struct {
			FilePath   string `json:"file_path"`
			LineNumber int    `json:"line_number"`
		} `json:"location"`
	} `json:"details"`
	Facts struct {
		Tool          string     `json:"tool"`
		RuleID        string     `json:"rule_id"`
		Class         string     `json:"class"`
		Vulnerability identified `json:"vulnerability"`
		Package       struct {
			Name string `json:"name"`
		} `json:"package"`
	} `json:"facts"`
	Repo       identified `json:"repo"`
	Project    identified `json:"project"`
	UserStatus string     `json:"user_status"`
	DecidedBy  string     `json:"decided_by"`
}

// identified is a part of a finding of which only the id and the name are used. A vulnerability has no name.
type identified struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// maxSamples bounds the findings that are read as examples for an operation or a policy.
const maxSamples = 10

// Samples reads some of the findings.
func (v *Visit) Samples(ctx context.Context, ids []string) (samples []Finding, err error) {
	err = v.EachFinding(ctx, ids[:min(len(ids), maxSamples)], func(f Finding) { samples = append(samples, f) })
	return samples, err
}

// MaxSelected bounds how many findings a user may select, as an operation cannot name more.
const MaxSelected = 400

// EachFinding reads at most MaxSelected findings by their ids, each once, and passes each to use before it reads the
// next: a finding can be large. The rate limit counts all the reads as the one request for the page: a key can cause up
// to MaxSelected reads with each of its requests.
func (v *Visit) EachFinding(ctx context.Context, ids []string, use func(Finding)) error {
	if len(ids) > MaxSelected {
		const detail = "At most %d findings can be selected. Narrow the list with filters, and choose all that match."
		return api.Failed(http.StatusBadRequest, fmt.Sprintf(detail, MaxSelected))
	}
	for i, id := range ids {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if slices.Contains(ids[:i], id) {
			continue
		}
		var f Finding
		_, err := v.API.Get(ctx, Of("/v2/findings", id), nil, &f)
		if api.Is(err, http.StatusNotFound) {
			f.ID, err = id, nil
		}
		if err != nil {
			return err
		}
		use(f)
	}
	return nil
}

// FieldOf returns the counts of a field; ok is false if it was not counted.
func FieldOf(counts client.FindingCounts, name string) (field client.FieldCounts, ok bool) {
	i := slices.IndexFunc(counts.Fields, func(f client.FieldCounts) bool { return f.Field == name })
	if i < 0 {
		return field, false
	}
	return counts.Fields[i], true
}

// CountsPath is where the REST API counts findings.
const CountsPath = "/v2/finding-counts"

// CountsOf returns how many of the findings that match the query have each value of a field.
func (v *Visit) CountsOf(ctx context.Context, query url.Values, field string) (client.FieldCounts, error) {
	query = maps.Clone(query)
	query.Set("field", field)
	var counts client.FindingCounts
	_, err := v.API.Get(ctx, CountsPath, query, &counts)
	known, _ := FieldOf(counts, field)
	return known, err
}

// CountOf returns how many findings have the value. It is unknown if only others, the most frequent, were counted.
func CountOf(field client.FieldCounts, value string) (count int32, known bool) {
	i := slices.IndexFunc(field.Values, func(c client.ValueCount) bool { return c.Value == value })
	if i < 0 {
		return 0, int(field.Distinct) == len(field.Values)
	}
	return field.Values[i].Count, true
}
