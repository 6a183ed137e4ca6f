package policies

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

// A filter that is left out would make the rule broader than the list.
func TestARuleIsNotDraftedFromFiltersThatDoNotExist(t *testing.T) {
	for query, refused := range map[string]bool{
		"tool=gosec&stale=true&set.comment=x&set.until=2099-01-01": false,
		"tool=gosec&severty=high":                                  true,
		"severity=high&severity=low":                               true,
		"tool=gosec&set.untill=2099-01-01":                         true,
	} {
		given, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = draftPage(t.Context(), &page.Visit{Query: given})
		if api.Is(err, http.StatusBadRequest) != refused || !refused && err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}
