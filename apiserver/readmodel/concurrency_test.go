package readmodel

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
)

// An organization that is created and deleted is visible completely or not at all.
func TestAnOrganizationIsVisibleWholeOrNotAtAll(t *testing.T) {
	g := gomega.NewWithT(t)
	m, err := New(Options{Source: byHand, Log: logr.Discard()})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	background := &errgroup.Group{}
	background.Go(func() error { return m.runJoiner(ctx) })
	background.Go(func() error { return m.runPublisher(ctx) })
	for i := range 50 {
		feed(t, m, findings, finding(fmt.Sprintf("f-%d", i), 10+i))
	}
	var reader sync.WaitGroup
	reader.Go(func() {
		for ctx.Err() == nil {
			for _, name := range []string{acme, "next"} {
				page, err := m.ListFindings(name, FindingQuery{Request: first(100)})
				if err != nil {
					continue
				}
				for _, item := range page.Items {
					if !strings.Contains(string(jsonOf(item.V2())), `"organization_id":"`+name+`"`) {
						t.Errorf("%s is shown another organization's item", name)
						return
					}
				}
			}
		}
	})
	for i := range 40 {
		// A UID is never reused: each round creates another object.
		owner := organization([]string{acme, "next"}[i%2], acmeNamespace, 100+2*i)
		owner.UID = freshUID(i)
		feed(t, m, organizations, owner)
		g.Eventually(func() (int, error) {
			page, err := m.ListFindings(owner.Name, FindingQuery{Request: first(1)})
			return page.Total, err
		}, "10s", "1ms").Should(gomega.Equal(50))
		gone := owner.DeepCopy()
		gone.ResourceVersion = fmt.Sprint(101 + 2*i)
		feedDeletion(t, m, organizations, gone)
	}
	cancel()
	reader.Wait()
	g.Expect(background.Wait()).To(gomega.Succeed())
}
