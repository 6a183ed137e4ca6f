package api_test

import (
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/builder"
)

// pages walks through a list to its end. The path must contain a query.
func (c *caller) pages(path string) []string {
	c.t.Helper()
	var ids []string
	cursor := ""
	for range 1000 {
		page := decoded[listOf[shown]](c.get(path+"&cursor="+url.QueryEscape(cursor)).wants(200, "a page"))
		ids = append(ids, idsOf(page.Items)...)
		if page.HasMore != (page.NextCursor != "") {
			c.t.Fatalf("%s: has_more is %v and next_cursor %q", path, page.HasMore, page.NextCursor)
		}
		if !page.HasMore {
			return ids
		}
		cursor = page.NextCursor
	}
	c.t.Fatalf("%s: the list has no end", path)
	return nil
}

// While others create, delete and triage findings, a walk shows each unchanged finding exactly
// once.
func TestAWalkUnderWritersShowsEveryOtherFindingOnce(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	settled := o.findings(c, 30)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				churn := builder.Finding(fmt.Sprintf("churn-%d-%d", w, i)).In(o.namespace).
					DetectedAt(start.Add(time.Duration((i*7)%30) * time.Minute)).Build()
				if err := env.Client.Create(t.Context(), churn); err != nil {
					t.Errorf("create: %v", err)
					return
				}
				if err := o.kubectlPatch(t.Context(), churn.Name, `{"spec":{"triage":{"userStatus":"muted"}}}`); err != nil {
					t.Errorf("patch: %v", err)
					return
				}
				if err := client.IgnoreNotFound(env.Client.Delete(t.Context(), churn)); err != nil {
					t.Errorf("delete: %v", err)
					return
				}
			}
		})
	}
	for walk := range 10 {
		order := []string{"asc", "desc"}[walk%2]
		for _, sort := range []string{"created_at", "updated_at"} {
			seen := map[string]int{}
			for _, id := range c.pages("/v1/findings?size=3&order=" + order + "&sort=" + sort) {
				seen[id]++
			}
			for _, id := range settled {
				if seen[id] != 1 {
					t.Errorf("walk %d by %s %s: %s came %d times", walk, sort, order, id, seen[id])
				}
			}
		}
	}
	close(stop)
	writers.Wait()
}
