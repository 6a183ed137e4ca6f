package api_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// generatedClient returns the client that a Go program would use, with the caller's key.
func generatedClient(t *testing.T, c *caller) *client.ClientWithResponses {
	t.Helper()
	generated, err := client.NewClientWithResponses(c.server.url(""), client.WithRequestEditorFn(
		func(_ context.Context, request *http.Request) error {
			request.Header.Set("X-Forwarded-For", c.address)
			if c.token != "" {
				request.Header.Set("Authorization", "Bearer "+c.token)
			}
			return nil
		}))
	harness.Must(t, err)
	return generated
}

// result is an answer in the form of the generated client.
type result interface {
	comparable
	StatusCode() int
}

// answered returns the decoded answer, and fails the test unless it has that status.
func answered[R result](t *testing.T, status int) func(R, error) R {
	t.Helper()
	return func(got R, err error) R {
		t.Helper()
		harness.Must(t, err)
		if got.StatusCode() != status {
			t.Fatalf("%T: got %d, want %d", got, got.StatusCode(), status)
		}
		return got
	}
}

// walked reads a list to its end with the generated client, page by page.
func walked(t *testing.T, read func(cursor *string) (ids []string, next string, total int64)) []string {
	t.Helper()
	var all []string
	var cursor *string
	for range 100 {
		ids, next, total := read(cursor)
		all = append(all, ids...)
		if next == "" {
			if int(total) != len(all) {
				t.Errorf("total is %d, and the pages hold %v", total, all)
			}
			slices.Sort(all)
			return all
		}
		cursor = &next
	}
	t.Fatal("the list has no end")
	return nil
}

func idsBy[T any](items []T, id func(T) string) []string {
	var ids []string
	for _, item := range items {
		ids = append(ids, id(item))
	}
	return ids
}

// populatedForClient returns an organization with three findings, a second repository, two reviews,
// an issue and a delivery, and the delivery's signature.
func populatedForClient(t *testing.T) (o *organization, c *caller, signature string) {
	t.Helper()
	o = newOrganization(t)
	c = o.key("ci")
	o.findings(c, 3)
	o.create(builder.Repository("another").In(o.namespace).Build())
	o.create(builder.Review("rv-1").In(o.namespace).Build())
	o.create(builder.Review("rv-2").PullRequest("repo", 2).In(o.namespace).Build())
	o.create(builder.ReviewIssue("ri-1").Review("rv-1").In(o.namespace).Build())
	signature = o.delivery("d-1", nil)
	o.eventually(func(g Gomega) {
		g.Expect(decoded[listOf[shown]](c.get("/v2/repos")).Total).To(Equal(2))
		g.Expect(decoded[listOf[shown]](c.get("/v1/reviews")).Total).To(Equal(2))
		g.Expect(c.get("/v2/issues/ri-1").status).To(Equal(200))
	})
	return o, c, signature
}

func TestTheGeneratedClientListsAPageAtATime(t *testing.T) {
	_, c, _ := populatedForClient(t)
	generated, ctx := generatedClient(t, c), t.Context()
	for operation, test := range map[string]struct {
		want []string
		read func(cursor *string) ([]string, string, int64)
	}{
		"listFindingsV1": {[]string{"f-000", "f-001", "f-002"}, func(cursor *string) ([]string, string, int64) {
			page := answered[*client.ListFindingsV1Result](t, 200)(generated.ListFindingsV1WithResponse(ctx, &client.ListFindingsV1Params{
				Cursor: cursor, Size: new(2), Sort: new(client.ListFindingsV1ParamsSort("updated_at")), Order: new(client.ListFindingsV1ParamsOrder("asc")),
			})).JSON200
			return idsBy(page.Items, func(f client.FindingV1) string { return f.Id }), page.NextCursor, page.Total
		}},
		"listFindingsV2": {[]string{"f-000", "f-001", "f-002"}, func(cursor *string) ([]string, string, int64) {
			page := answered[*client.ListFindingsV2Result](t, 200)(generated.ListFindingsV2WithResponse(ctx, &client.ListFindingsV2Params{
				Cursor: cursor, Size: new(1), RepoId: new("repo"),
			})).JSON200
			return idsBy(page.Items, func(f client.FindingV2) string { return f.Id }), page.NextCursor, page.Total
		}},
		"listRepositories": {[]string{"another", "repo"}, func(cursor *string) ([]string, string, int64) {
			page := answered[*client.ListRepositoriesResult](t, 200)(generated.ListRepositoriesWithResponse(ctx, &client.ListRepositoriesParams{
				Cursor: cursor, Size: new(1), Sort: new(client.ListRepositoriesParamsSort("last_committed_at")),
			})).JSON200
			return idsBy(page.Items, func(r client.Repository) string { return r.Id }), page.NextCursor, page.Total
		}},
		"listReviews": {[]string{"rv-1", "rv-2"}, func(cursor *string) ([]string, string, int64) {
			page := answered[*client.ListReviewsResult](t, 200)(generated.ListReviewsWithResponse(ctx, &client.ListReviewsParams{
				Cursor: cursor, Size: new(1), Custom: new(client.ListReviewsParamsCustom("not_reviewed")),
			})).JSON200
			return idsBy(page.Items, func(r client.Review) string { return r.Id }), page.NextCursor, page.Total
		}},
	} {
		harness.Same(t, operation, test.want, walked(t, test.read))
	}
}

func TestTheGeneratedClientReadsTriagesAndVerifies(t *testing.T) {
	o, c, signature := populatedForClient(t)
	generated, ctx := generatedClient(t, c), t.Context()

	read := answered[*client.GetFindingV2Result](t, 200)(generated.GetFindingV2WithResponse(ctx, "repo", "proj", "f-000", nil))
	if read.JSON200.Id != "f-000" || read.JSON200.OrganizationId != o.name || read.JSON200.Project.Id != "proj" {
		t.Errorf("getFindingV2: got %+v", read.JSON200)
	}
	tag := read.HTTPResponse.Header.Get("Etag")
	answered[*client.GetFindingV2Result](t, 304)(generated.GetFindingV2WithResponse(ctx, "repo", "proj", "f-000", &client.GetFindingV2Params{IfNoneMatch: &tag}))

	v1 := answered[*client.UpdateFindingV1Result](t, 200)(generated.UpdateFindingV1WithResponse(ctx, "f-000", &client.UpdateFindingV1Params{IfMatch: &tag},
		client.FindingV1Update{UserStatus: "muted"})).JSON200
	if v1.Id != "f-000" || v1.UserStatus != "muted" || v1.Status != "open_muted" {
		t.Errorf("updateFindingV1: got %+v", v1)
	}
	late := answered[*client.UpdateFindingV1Result](t, 412)(generated.UpdateFindingV1WithResponse(ctx, "f-000", &client.UpdateFindingV1Params{IfMatch: &tag},
		client.FindingV1Update{UserStatus: "open"}))
	if late.JSON412 == nil || late.JSON412.Error != "Precondition failed" {
		t.Errorf("412 is decoded to %+v", late.JSON412)
	}
	v2 := answered[*client.UpdateFindingV2Result](t, 200)(generated.UpdateFindingV2WithResponse(ctx, "repo", &client.UpdateFindingV2Params{FindingId: new("f-001")},
		client.FindingV2Update{UserStatus: new(client.UserStatus("active")), Comments: new("confirmed"), ProjectId: new("proj")})).JSON200
	if v2.Id != "f-001" || v2.UserStatus != "active" || v2.Comments != "confirmed" {
		t.Errorf("updateFindingV2: got %+v", v2)
	}
	if got := o.stored("f-001").Spec.Triage; got.UserStatus != v1alpha1.UserStatusActive || got.Comments != "confirmed" {
		t.Errorf("updateFindingV2 stored %+v", got)
	}
	project := answered[*client.GetProjectResult](t, 200)(generated.GetProjectWithResponse(ctx, "repo", "proj", nil)).JSON200
	if project.Id != "proj" || project.Repo.Id != "repo" {
		t.Errorf("getProject: got %+v", project)
	}
	issue := answered[*client.GetReviewIssueResult](t, 200)(generated.GetReviewIssueWithResponse(ctx, "ri-1", nil)).JSON200
	if issue.Id != "ri-1" || issue.ReviewId != "rv-1" {
		t.Errorf("getReviewIssue: got %+v", issue)
	}
	for given, want := range map[string]client.WebhookVerificationStatus{payload: "verified", payload + " ": "payload_mismatch"} {
		verdict := answered[*client.VerifyWebhookDeliveryResult](t, 200)(generated.VerifyWebhookDeliveryWithResponse(ctx, "d-1",
			client.WebhookVerificationRequest{Payload: given, Signature: signature})).JSON200
		if verdict.Status != want || verdict.Valid != (want == "verified") || verdict.DeliveryId != "d-1" {
			t.Errorf("verifyWebhookDelivery: got %+v, want %s", verdict, want)
		}
	}
}

// Errors are decoded into the contract's type, in the field of their status.
func TestTheGeneratedClientDecodesErrors(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	generated, ctx := generatedClient(t, c), t.Context()
	anonymous := generatedClient(t, newCaller(t, facade, ""))
	reader := generatedClient(t, o.key("reader", v1alpha1.ScopeReposRead))
	update, body := client.FindingV2Update{Comments: new("x")}, client.WebhookVerificationRequest{Payload: "x", Signature: "y"}
	for name, test := range map[string]struct {
		got  *client.Error
		want client.ErrorError
	}{
		"401 of a list":         {answered[*client.ListFindingsV1Result](t, 401)(anonymous.ListFindingsV1WithResponse(ctx, nil)).JSON401, "Unauthorized"},
		"401 of a write":        {answered[*client.UpdateFindingV2Result](t, 401)(anonymous.UpdateFindingV2WithResponse(ctx, "f", nil, update)).JSON401, "Unauthorized"},
		"403":                   {answered[*client.ListReviewsResult](t, 403)(reader.ListReviewsWithResponse(ctx, nil)).JSON403, "Forbidden"},
		"404 of a finding":      {answered[*client.GetFindingV2Result](t, 404)(generated.GetFindingV2WithResponse(ctx, "repo", "proj", "none", nil)).JSON404, "Resource not found"},
		"404 of a write":        {answered[*client.UpdateFindingV2Result](t, 404)(generated.UpdateFindingV2WithResponse(ctx, "none", nil, update)).JSON404, "Resource not found"},
		"404 of a project":      {answered[*client.GetProjectResult](t, 404)(generated.GetProjectWithResponse(ctx, "repo", "none", nil)).JSON404, "Resource not found"},
		"404 of an issue":       {answered[*client.GetReviewIssueResult](t, 404)(generated.GetReviewIssueWithResponse(ctx, "none", nil)).JSON404, "Resource not found"},
		"404 of a delivery":     {answered[*client.VerifyWebhookDeliveryResult](t, 404)(generated.VerifyWebhookDeliveryWithResponse(ctx, "none", body)).JSON404, "Resource not found"},
		"400 of a query":        {answered[*client.ListRepositoriesResult](t, 400)(generated.ListRepositoriesWithResponse(ctx, &client.ListRepositoriesParams{Size: new(0)})).JSON400, "Invalid query parameter"},
		"400 of a cursor":       {answered[*client.ListFindingsV2Result](t, 400)(generated.ListFindingsV2WithResponse(ctx, &client.ListFindingsV2Params{Cursor: new("x")})).JSON400, "Invalid query parameter"},
		"400 of a user status":  {answered[*client.UpdateFindingV1Result](t, 400)(generated.UpdateFindingV1WithResponse(ctx, "f", nil, client.FindingV1Update{UserStatus: "closed"})).JSON400, "Invalid request body"},
		"400 of an empty patch": {answered[*client.UpdateFindingV2Result](t, 400)(generated.UpdateFindingV2WithResponse(ctx, "f", nil, client.FindingV2Update{})).JSON400, "Invalid request body"},
	} {
		if test.got == nil || test.got.Error != test.want || test.got.Detail == "" {
			t.Errorf("%s is decoded to %+v, want %q with a detail", name, test.got, test.want)
		}
	}
}
