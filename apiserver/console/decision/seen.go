package decision

import (
	"encoding/hex"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"
)

// Standing is a decision, who made it, and the facts that a new one would be based on.
type Standing struct {
	Decision
	DecidedBy string
	Facts
}

// Facts are what a scan may change and a decision is based on, as far as the REST API shows it. Those that a finding or
// an issue does not have are empty.
type Facts struct {
	Severity, ToolSeverity string
	Score                  float32
	// Version is that of the package. Code counts only without it.
	Version, Code string
	// Title, Description, Path and Line count only without version and code: nothing else tells one problem from another.
	Title, Description, Path string
	Line                     int
	// Stale is how they differ from those of the last decision, or why they are in doubt; empty if neither applies.
	Stale string
}

// critical is the worst of the severities that a decision can be based on. The REST API has no such level.
const (
	critical      = "critical"
	criticalScore = 9
)

// digest identifies the facts, by the rules for the basis of a decision: white space in code does not count. Without
// version and code it also covers the problem and its location, which are not part of a stored basis.
func (f Facts) digest() string {
	if f.Severity == "high" && (f.Score >= criticalScore || strings.EqualFold(f.ToolSeverity, critical)) {
		f.Severity = critical
	}
	switch {
	case f.Version != "":
		return digest(f.Severity, f.Version)
	case f.Code != "":
		return digest(f.Severity, "", hash([]byte(strings.Join(strings.Fields(f.Code), ""))))
	}
	return digest(f.Severity, "", f.Title, f.Description, f.Path, strconv.Itoa(f.Line))
}

// seen identifies the facts, and what makes the decision stale.
func (f Facts) seen() string {
	if f.Stale == "" {
		return f.digest()
	}
	return f.digest() + digest(f.Stale)
}

// areIn reports whether the user who has seen a state has seen these facts. What made the decision stale then does not
// matter if nothing does now.
func (f Facts) areIn(seen string) bool {
	seen = seen[min(len(seen), len(undecidedDigest)):] // without the decision
	return seen == f.seen() || f.Stale == "" && strings.HasPrefix(seen, f.digest())
}

// Seen identifies what a user has seen: a decision, its author, the facts, and what makes the decision stale. Other
// changes by scans do not affect it.
func (d Standing) Seen() string { return d.decided() + d.Facts.seen() }

// isIn reports whether the user has seen the decision and the facts.
func (d Standing) isIn(seen string) bool {
	return strings.HasPrefix(seen, d.decided()) && d.Facts.areIn(seen)
}

// decided identifies the decision and who made it. It is the first part of Seen.
func (d Standing) decided() string {
	if d.Decision == undecided.Decision && d.DecidedBy == "" {
		return undecidedDigest
	}
	end := ""
	if d.ExpiresAt != nil {
		end = d.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return digest(d.UserStatus, ptr.Deref(d.Reason, ""), end, d.Comments, d.DecidedBy)
}

// Precomputed, because most findings of a list are undecided.
var (
	undecided       = Standing{Decision: Decision{UserStatus: Open}}
	undecidedDigest = digest(Open, "", "", "", "")
)

func digest(parts ...string) string {
	var buffer [128]byte
	text := buffer[:0]
	for _, part := range parts {
		text = append(strconv.AppendQuote(text, part), ' ')
	}
	return hash(text)
}

func hash(text []byte) string {
	sum := fnv.New64a()
	_, _ = sum.Write(text) // a hash never fails
	return hex.EncodeToString(sum.Sum(nil))
}
