// Package changes remembers, for a while and within bounds, what was written to the objects of each organization, in
// an order that all replicas share, so that a client that was cut off can be told on any of them what it has missed.
//
// The order of a kind is that of its resource versions, in which a watch reports all writes to it. Versions of two
// kinds cannot be compared, so a place in all changes is one version for each kind: a Position.
package changes

// Kind of a resource whose changes are reported.
type Kind uint8

// The kinds. A Position that a client holds has them in this order.
const (
	Findings Kind = iota
	Operations
	Scans
	Reviews
	Deliveries
	Kinds
)

// String returns the name of the kind in the REST API.
func (k Kind) String() string {
	return [Kinds]string{"finding", "operation", "scan", "review", "delivery"}[k]
}

// Set of kinds.
type Set uint8

// With returns the set with a kind more.
func (s Set) With(k Kind) Set { return s | 1<<k }

// Has reports whether the kind is in the set.
func (s Set) Has(k Kind) bool { return s&(1<<k) != 0 }

// What happened to a resource.
type What string

// What can happen to it.
const (
	Created What = "created"
	Updated What = "updated"
	Removed What = "removed"
)

// Change is what one write did to one resource: its ids and how it stands now, and nothing of what it holds.
type Change struct {
	Kind Kind `json:"-"`
	// Version of the write.
	Version uint64 `json:"-"`

	What      What   `json:"change"`
	ID        string `json:"id"`
	RepoID    string `json:"repo_id,omitempty"`
	ProjectID string `json:"project_id,omitempty"`
	// Status as the REST API shows it; empty for what was removed.
	Status string `json:"status,omitempty"`
	// UserStatus and UpdatedAt are known of findings alone.
	UserStatus string `json:"user_status,omitempty"`
	UpdatedAt  string `json:"updated_at,omitempty"`
}

// fixedBytes is about what a change takes beside its own texts. Enumerated values and times are shared or short.
const fixedBytes = 220

func (c *Change) bytes() int { return fixedBytes + len(c.ID) }

// Position is a place in all changes: for each kind the version up to which a client knows all.
type Position [Kinds]uint64
