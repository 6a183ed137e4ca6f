package readmodel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// Readers walk lists while every kind of writer writes. Each page must be consistent, and each walk must return
// the unchanged rows exactly once.
func TestReadersAndWritersAtOnce(t *testing.T) {
	g := gomega.NewWithT(t)
	m, err := New(Options{Source: byHand, Log: logr.Discard()})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	feed(t, m, organizations, organization(acme, acmeNamespace, 1))
	const stable, changing = 200, 50
	for i := range stable {
		feed(t, m, findings, finding(fmt.Sprintf("stable-%03d", i), 10+i))
	}
	settle(t, m)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	background := &errgroup.Group{}
	background.Go(func() error { return m.runJoiner(ctx) })
	background.Go(func() error { return m.runPublisher(ctx) })
	background.Go(func() error { return writeAtRandom(ctx, m, changing) })

	readers, _ := errgroup.WithContext(ctx)
	for range 3 {
		readers.Go(func() error {
			for range 30 {
				if err := walkOnce(m, stable); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Expect(readers.Wait()).To(gomega.Succeed())
	cancel()
	g.Expect(background.Wait()).To(gomega.Succeed())
}

func writeAtRandom(ctx context.Context, m *Model, names int) error {
	for rv := 1000; ctx.Err() == nil; rv++ {
		f := finding(fmt.Sprintf("changing-%d", rand.IntN(names)), rv)
		var err error
		switch rand.IntN(5) {
		case 0:
			err = m.add(change{kind: findings, object: f, deleted: true})
		case 1:
			f.UID = freshUID(rv)
			if _, err = m.Apply(f); err == nil {
				if item, ok := m.Finding(acme, f.Name); !ok || item.resourceVersion != f.ResourceVersion {
					err = fmt.Errorf("a patch does not read its own write: got %+v", item)
				}
			}
		case 2:
			p := project("api", rv)
			p.Spec.Owner = fmt.Sprint(rv)
			err = m.add(change{kind: projects, object: p})
		default:
			f.UID = freshUID(rv)
			muted(f)
			err = m.add(change{kind: findings, object: f})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func walkOnce(m *Model, stable int) error {
	var after *index.Position
	seen := map[string]int{}
	for {
		page, err := m.ListFindings(acme, FindingQuery{Limit: index.Limit{Size: 17}, After: after, Sort: SortUpdatedAt})
		if err != nil {
			return err
		}
		if page.Total < stable {
			return fmt.Errorf("total is %d", page.Total)
		}
		for _, item := range page.Items {
			if strings.HasPrefix(item.ID, "stable-") {
				seen[item.ID]++
			}
			if !strings.Contains(string(jsonOf(item.V1())), `"user_status":"`+item.UserStatus+`"`) {
				return fmt.Errorf("the JSON of %s is not that of its fields", item.ID)
			}
		}
		if !page.HasMore {
			break
		}
		after = &page.Next
	}
	for id, times := range seen {
		if times != 1 {
			return fmt.Errorf("%s was returned %d times", id, times)
		}
	}
	if len(seen) != stable {
		return fmt.Errorf("%d of %d rows that nobody touched were returned", len(seen), stable)
	}
	return nil
}

// An organization that is created and deleted is visible completely or not at all.
func TestOrganizationComesAndGoes(t *testing.T) {
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
				page, err := m.ListFindings(name, FindingQuery{Limit: index.Limit{Size: 100}})
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
			page, err := m.ListFindings(owner.Name, FindingQuery{Limit: index.Limit{Size: 1}})
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
