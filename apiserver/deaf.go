package apiserver

import (
	"fmt"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// deafAfter is the silence of a kind from which answers are marked with x-data-age. The API server sends a
// bookmark about once a minute where nothing changes.
const deafAfter = 90 * time.Second

// restsOn are the kinds that answers rest on, by the scope of their operation.
var restsOn = map[v1alpha1.Scope][]string{
	v1alpha1.ScopeFindingsRead:   {"organizations", "repositories", "projects", "findings"},
	v1alpha1.ScopeFindingsTriage: {"organizations", "repositories", "projects", "findings"},
	v1alpha1.ScopeReposRead:      {"organizations", "repositories", "projects"},
	v1alpha1.ScopeReviewsRead:    {"organizations", "repositories", "reviews", "reviewissues"},
	v1alpha1.ScopeWebhooksVerify: {"organizations", "webhookdeliveries"},
}

// checkDataAge says how old the data is at most that an answer rests on, where nothing has been heard of it for
// long, and refuses to answer from data that is older than the operator allows.
func (r *router) checkDataAge(scope v1alpha1.Scope) gin.HandlerFunc {
	kinds := restsOn[scope]
	return func(c *gin.Context) {
		kind, silence := r.model.Silence(kinds...)
		if silence > deafAfter {
			c.Header(dataAgeHeader, strconv.Itoa(int(max(silence, r.auth.Age(time.Now())).Seconds())))
		}
		if silence > r.dataStaleness {
			fail(c, problem.Internal("data is stale", fmt.Errorf("nothing was heard of %s for %s", kind, silence.Round(time.Second))))
		}
	}
}

// deafness is the part of the readiness report that names the kinds of which nothing is heard. Such a replica
// stays ready: all go deaf together, and a Service without endpoints helps nobody.
func (s *Server) deafness() (report string) {
	if age := s.auth.Age(time.Now()); s.auth.Synced() && age > usualAge {
		report += fmt.Sprintf("[!] keys: not listed for %s\n", age.Round(time.Second))
	}
	if !s.model.Ready() {
		return report
	}
	for _, kind := range s.model.Kinds() {
		if _, silence := s.model.Silence(kind); silence > deafAfter {
			report += fmt.Sprintf("[!] %s: nothing heard for %s; what is shown may be old\n", kind, silence.Round(time.Second))
		}
	}
	return report
}
