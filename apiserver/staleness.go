package apiserver

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/changes"
	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// silentAfter is how long a kind must be silent before responses are marked with x-data-age. When nothing
// changes, the API server sends a bookmark about once a minute, but the first one of a watch only after two
// minutes.
const silentAfter = 150 * time.Second

// usualAge is the age up to which a response does not have api.DataAgeHeader.
const usualAge = 5 * time.Second

// dependsOn lists the kinds that responses depend on, by the scope of their operation.
var dependsOn = map[v1alpha1.Scope][]string{
	v1alpha1.ScopeFindingsRead:   {"organizations", "repositories", "projects", "findings"},
	v1alpha1.ScopeFindingsTriage: {"organizations", "repositories", "projects", "findings"},
	v1alpha1.ScopeFindingsImport: {"organizations", "repositories", "projects", "scans"},
	v1alpha1.ScopeReposRead:      {"organizations", "repositories", "projects"},
	v1alpha1.ScopeReviewsRead:    {"organizations", "repositories", "reviews", "reviewissues"},
	v1alpha1.ScopeWebhooksVerify: {"organizations", "webhookdeliveries"},
	v1alpha1.ScopeWebhooksRead:   {"organizations", "webhookdeliveries"},
	// Policies, and deliveries to send again, are read from the API server, not from the model.
	v1alpha1.ScopePoliciesWrite:     {"organizations"},
	v1alpha1.ScopeWebhooksRedeliver: {"organizations"},
	v1alpha1.ScopeKeysRead:          {"organizations"},
}

// alsoDependsOn lists further kinds, by operationId.
var alsoDependsOn = map[string][]string{
	"listScans": {"scans"}, "getScan": {"scans"}, "updateReviewIssue": {"reviews", "reviewissues"},
	"getTrends": {"findingtrends"},
}

// streamDependsOn holds the kind behind each kind of change: a stream depends only on those that it reports.
var streamDependsOn = [changes.Kinds]string{
	changes.Findings: "findings", changes.Operations: "triageoperations", changes.Scans: "scans",
	changes.Reviews: "reviews", changes.Deliveries: "webhookdeliveries",
}

// silenceBehind returns which of the kinds behind a stream has been silent the longest, and for how long.
func (r *router) silenceBehind(stream *handlers.Events) (kind string, silence time.Duration) {
	var kinds []string
	for k, kind := range streamDependsOn {
		if stream.Kinds.Has(changes.Kind(k)) { //nolint:gosec // an index of the array
			kinds = append(kinds, kind)
		}
	}
	return r.model.Silence(kinds...)
}

// checkDataAge adds the maximum age of the data behind a response if a kind has long been silent, and refuses to answer
// if the data is older than the operator allows.
func (r *router) checkDataAge(contract *openapi.Operation) gin.HandlerFunc {
	kinds := alsoDependsOn[contract.ID]
	if len(contract.Scopes) > 0 {
		kinds = slices.Concat(dependsOn[contract.Scopes[0]], kinds)
	}
	return func(c *gin.Context) {
		kind, silence := r.model.Silence(kinds...)
		if err := r.checkSilence(c, kind, silence); err != nil {
			fail(c, err)
		}
	}
}

// checkSilence marks the response if the kind has long been silent, and returns an error if the silence is longer than
// the operator allows.
func (r *router) checkSilence(c *gin.Context, kind string, silence time.Duration) error {
	if silence > silentAfter {
		c.Header(api.DataAgeHeader, strconv.Itoa(int(max(silence, r.auth.Age(time.Now())).Seconds())))
	}
	if r.isStale(silence) {
		cause := fmt.Errorf("the API server has sent nothing about %s for %s", kind, silence.Round(time.Second))
		return problem.Internal("data is stale", cause).Coded(problem.CodeStale)
	}
	return nil
}

// isStale reports whether the data is too old to answer from.
func (r *router) isStale(silence time.Duration) bool { return silence > r.dataStaleness }

// silenceReport returns the part of the readiness report that names the silent kinds. A replica with silent kinds stays
// ready, because usually all replicas are affected at the same time, and a Service without endpoints helps nobody.
func (s *Server) silenceReport() (report string) {
	if age := s.auth.Age(time.Now()); s.auth.Synced() && age > usualAge {
		report += fmt.Sprintf("[!] keys: not listed for %s\n", age.Round(time.Second))
	}
	if !s.model.Ready() {
		return report
	}
	for _, kind := range s.model.Kinds() {
		if _, silence := s.model.Silence(kind); silence > silentAfter {
			report += fmt.Sprintf("[!] %s: no data for %s; what is shown may be old\n", kind, silence.Round(time.Second))
		}
	}
	return report
}
