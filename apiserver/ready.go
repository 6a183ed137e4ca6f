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

// readyPages keeps pages that were asked for more than once, and forgets what was asked for longest
// ago. A page is noted when it is asked for, and kept from the second time on, so that a walk through
// a list neither fills the memory nor takes the time.
type readyPages struct {
	limit int

	mu sync.Mutex
	// noted has a *readyPage for each pageKey. It is bounded by bytes, below.
	noted *lru.Cache
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
	p := &readyPages{limit: limit, noted: lru.New(0)}
	p.noted.OnEvicted = func(key lru.Key, gone any) { p.bytes -= gone.(*readyPage).cost(key.(pageKey)) }
	return p
}

// get returns what is known of a page, and whether it was asked for before.
func (p *readyPages) get(key pageKey) (page readyPage, again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found, ok := p.noted.Get(key); ok {
		return *found.(*readyPage), true
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
	if found, ok := p.noted.Get(key); ok {
		page = *found.(*readyPage)
	}
	page.length, page.forms[of] = length, body
	p.noted.Remove(key)
	p.put(key, &page)
}

func (p *readyPages) put(key pageKey, page *readyPage) {
	p.noted.Add(key, page)
	for p.bytes += page.cost(key); p.bytes > p.limit; {
		p.noted.RemoveOldest()
	}
}
