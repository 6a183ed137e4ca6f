package page

import (
	"net/url"
	"testing"
)

func TestAFieldLeftEmptyIsNoFilter(t *testing.T) {
	got := Given(url.Values{"status": {"open"}, "repo_id": {""}, "foreign": {"x"}}, "status", "repo_id")
	if got.Encode() != "status=open" {
		t.Errorf("got %s", got.Encode())
	}
}

func TestAPastedNameIsTheName(t *testing.T) {
	got := Given(url.Values{"repo_id": {" \tshop\n"}, "project_id": {" "}}, "repo_id", "project_id")
	if got.Encode() != "repo_id=shop" {
		t.Errorf("got %s", got.Encode())
	}
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
		if got := Address("/list", tc.view, tc.pairs...); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
		}
	}
	if view.Get("status") != "open" {
		t.Error("the view was changed")
	}
}
