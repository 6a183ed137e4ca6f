package page

import (
	"net/url"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestAFieldLeftEmptyIsNoFilter(t *testing.T) {
	got := Given(url.Values{"status": {"open"}, "repo_id": {""}, "foreign": {"x"}}, "status", "repo_id")
	harness.Same(t, "given", "status=open", got.Encode())
}

func TestBlanksAroundAPastedNameAreIgnored(t *testing.T) {
	got := Given(url.Values{"repo_id": {" \tshop\n"}, "project_id": {" "}}, "repo_id", "project_id")
	harness.Same(t, "given", "repo_id=shop", got.Encode())
}

func TestAnAddressKeepsTheView(t *testing.T) {
	view := url.Values{"status": {"open"}, "sort": {"created_at"}}
	for _, tc := range []struct {
		reason string
		view   url.Values
		pairs  []string
		want   string
	}{
		{"another value", view, []string{"status", "closed"}, "/list?sort=created_at&status=closed"},
		{"without a value", view, []string{"status", ""}, "/list?sort=created_at"},
		{"with none left", url.Values{"a": {"b"}}, []string{"a", ""}, "/list"},
		{"without a view", nil, []string{"a", "b"}, "/list?a=b"},
	} {
		harness.Same(t, tc.reason, tc.want, Address("/list", tc.view, tc.pairs...))
	}
	harness.Same(t, "the view itself", "open", view.Get("status"))
}
