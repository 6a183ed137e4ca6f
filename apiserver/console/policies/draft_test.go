package policies

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/test/harness"
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
		harness.Must(t, err)
		_, err = draftPage(t.Context(), &page.Visit{Query: given})
		if api.Is(err, http.StatusBadRequest) != refused || !refused && err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// The service refuses longer addresses, and policies longer comments.
func TestALongCommentIsCutForARuleAndTheFormSaysSo(t *testing.T) {
	for _, c := range []struct {
		comment, want string
		cut           bool
	}{
		{strings.Repeat("é\r\n", 512), strings.Repeat("é\n", 512), false},
		{strings.Repeat("😀\r\n", 5000), strings.Repeat("😀\n", 512), true},
	} {
		there, err := draftOfSelection(t.Context(), &page.Visit{Form: url.Values{"filter.tool": {"gosec"}, "comments": {c.comment}}})
		if err != nil || len(there.Location) > 16<<10 {
			t.Fatalf("an address of %d bytes, %v", len(there.Location), err)
		}
		at, err := url.Parse(there.Location)
		harness.Must(t, err)
		form, err := draftPage(t.Context(), &page.Visit{Query: at.Query()})
		harness.Must(t, err)
		shown, err := page.Text(t.Context(), form.Body)
		if err != nil || !strings.Contains(shown, ">"+c.want+"</textarea>") || strings.Contains(shown, "The comment was cut") != c.cut {
			t.Errorf("%d characters: %v\n%s", len(c.comment), err, shown)
		}
	}
}
