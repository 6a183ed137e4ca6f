package apiserver

import (
	"sync"

	"github.com/golang/groupcache/lru"
)

// readyBytes bounds the pages that are kept ready, in all their forms.
const readyBytes = 32 << 20

// notedBytes is about what it takes to know that a page was asked for.
const notedBytes = 512

// pageKey names a page of a list. For as long as the revision is the same, so are all pages of an
// organization: what is kept is never out of date, and nobody else's.
type pageKey struct {
	revision                       uint64
	organization, operation, query string
}

// form is the form in which a page is kept.
type form int

const (
	plain form = iota
	compressed
	forms
)

// readyPages keeps pages that were asked for more than once. A page is noted when it is asked for, and
// kept from the second time on, so that a walk through a list neither fills the memory nor takes the
// time. Where there is no room left, the organization that takes the most of it gives way, so that
// none can crowd out another.
type readyPages struct {
	limit int

	mu     sync.Mutex
	shares map[string]*readyShare // by organization; none is empty
	bytes  int
}

// readyShare are the pages of an organization in the newest revision that was asked for: nobody can
// ask for an older one again. What was asked for longest ago gives way first.
type readyShare struct {
	revision uint64
	// pages has a *readyPage for each pageKey. It is bounded by bytes.
	pages *lru.Cache
	bytes int
}

// readyPage is a page that was asked for.
type readyPage struct {
	// length is that of the body as it is, 0 until it is known.
	length int
	forms  [forms][]byte
}

// cost is what a page counts for, in bytes.
func (p *readyPage) cost(key pageKey) int {
	return notedBytes + len(key.organization) + len(key.query) + len(p.forms[plain]) + len(p.forms[compressed])
}

func newReadyPages(limit int) *readyPages {
	return &readyPages{limit: limit, shares: map[string]*readyShare{}}
}

// get returns what is known of a page, and whether it was asked for before.
func (p *readyPages) get(key pageKey) (page readyPage, again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.find(key); found != nil {
		return *found, true
	}
	p.put(key, &page)
	return page, false
}

// keep holds a form of a page whose body has that length. What is too large is not held.
func (p *readyPages) keep(key pageKey, of form, body []byte, length int) {
	if len(body) > p.limit/8 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	page := readyPage{}
	if found := p.find(key); found != nil {
		page = *found
	}
	page.length, page.forms[of] = length, body
	p.put(key, &page)
}

func (p *readyPages) find(key pageKey) *readyPage {
	share := p.shares[key.organization]
	if share == nil || share.revision != key.revision {
		return nil
	}
	found, ok := share.pages.Get(key)
	if !ok {
		return nil
	}
	return found.(*readyPage)
}

// put holds a page in place of what was held for it, unless a newer revision has been asked for since.
func (p *readyPages) put(key pageKey, page *readyPage) {
	share := p.shares[key.organization]
	switch {
	case share != nil && share.revision > key.revision:
		return
	case share == nil || share.revision < key.revision:
		p.forget(key.organization)
		share = p.newShare(key.revision)
		p.shares[key.organization] = share
	}
	share.pages.Remove(key)
	share.pages.Add(key, page)
	share.bytes += page.cost(key)
	for p.bytes += page.cost(key); p.bytes > p.limit; {
		p.makeRoom()
	}
}

func (p *readyPages) newShare(revision uint64) *readyShare {
	share := &readyShare{revision: revision, pages: lru.New(0)}
	share.pages.OnEvicted = func(key lru.Key, gone any) {
		cost := gone.(*readyPage).cost(key.(pageKey))
		share.bytes -= cost
		p.bytes -= cost
	}
	return share
}

func (p *readyPages) forget(organization string) {
	if share := p.shares[organization]; share != nil {
		p.bytes -= share.bytes
		delete(p.shares, organization)
	}
}

// makeRoom forgets a page of the organization that takes the most.
func (p *readyPages) makeRoom() {
	largest, of := (*readyShare)(nil), ""
	for organization, share := range p.shares {
		if largest == nil || share.bytes > largest.bytes {
			largest, of = share, organization
		}
	}
	largest.pages.RemoveOldest()
	if largest.bytes == 0 {
		delete(p.shares, of)
	}
}
