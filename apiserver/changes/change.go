// Package changes remembers recent writes to the objects of each organization, within bounds and in an order
// that all replicas share. A client that was disconnected can learn from any replica which changes it missed.
//
// Changes of one kind are in the order of their resource versions, which is the order of a watch. Versions of
// different kinds cannot be compared, so a place among all changes is one version per kind: a Position.
package changes

// Kind of a resource whose changes are reported.
type Kind uint8

// The kinds. The Positions that clients hold depend on this order.
const (
	Findings Kind = iota
	Operations
	Scans
	Reviews
	Deliveries
	Kinds
)

// String returns the kind's name in the REST API.
func (k Kind) String() string {
	return [Kinds]string{"finding", "operation", "scan", "review", "delivery"}[k]
}

// Set is a set of kinds.
type Set uint8

// With returns the set plus a kind.
func (s Set) With(k Kind) Set { return s | 1<<k }

// Has reports whether the kind is in the set.
func (s Set) Has(k Kind) bool { return s&(1<<k) != 0 }

// What names what happened to a resource.
type What string

// The values of What.
const (
	Created What = "created"
	Updated What = "updated"
	Removed What = "removed"
)

// Change is the effect of one write on one resource: its ids and its present state, but none of its content.
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
	// UserStatus is set for findings only.
	UserStatus string `json:"user_status,omitempty"`
	// UpdatedAt is set for findings and reviews only.
	UpdatedAt string `json:"updated_at,omitempty"`
}

// fixedBytes is the approximate size of a change without its ID. Enumerated values and times are shared or
// short.
const fixedBytes = 220

func (c *Change) bytes() int { return fixedBytes + len(c.ID) }

// Position is a place among all changes: for each kind the version up to which a client has seen all changes.
type Position [Kinds]uint64
