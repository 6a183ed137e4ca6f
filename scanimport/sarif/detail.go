package sarif

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// detail returns a digest of what may be all that tells a result apart: the id and the arguments of a message without a
// text; and of its locations the end and the offsets of the region, the files that the file is inside of, and without a
// region the functions and other logical locations. It is no evidence: offsets change with every build. With a region,
// functions do not count, because the instances of a template are one problem.
func (n *normaliser) detail(r *Result, wire *wireResult) string {
	var parts []string
	if strings.TrimSpace(r.Message) == "" && (wire.Message.ID != "" || len(wire.Message.Arguments) > 0) {
		parts = append(parts, fmt.Sprintf("message %q %q", wire.Message.ID, wire.Message.Arguments))
	}
	for i, l := range wire.Locations {
		at := l.PhysicalLocation
		extent := at.Region.extent()
		if extent != "" {
			parts = append(parts, fmt.Sprintf("region %d %s", i, extent))
		}
		for _, file := range n.paths.around(at.ArtifactLocation) {
			parts = append(parts, fmt.Sprintf("in %d %q", i, file))
		}
		if extent == "" && at.Region.StartLine.value(0) == 0 && r.Package == nil {
			for _, logical := range l.LogicalLocations {
				// Overloads differ only in the decorated name.
				name := FirstOf(string(logical.DecoratedName), string(logical.FullyQualifiedName), string(logical.Name))
				parts = append(parts, fmt.Sprintf("logical %d %q", i, name))
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return string(sum[:])
}

// extent returns the end and the offsets of a region; "" if the file gives none.
func (r *wireRegion) extent() string {
	end := r.EndLine.value(0)
	if end == r.StartLine.value(0) {
		end = 0 // the default
	}
	values := [...]int{
		end, r.EndColumn.value(0), r.ByteOffset.value(0), r.ByteLength.value(0), r.CharOffset.value(0), r.CharLength.value(0),
	}
	if values == [len(values)]int{} {
		return ""
	}
	return fmt.Sprint(values)
}

// maxAround bounds how deeply files are nested in each other: a file can make the chain endless.
const maxAround = 8

// around returns the paths of the files that a file is inside of, such as archives, from the inside.
func (b *pathBook) around(location wireArtifactLocation) (out []string) {
	index := location.Index.value(-1)
	for range maxAround {
		if index < 0 || index >= len(b.artifacts) {
			break
		}
		if index = b.artifacts[index].ParentIndex.value(-1); index >= 0 && index < len(b.artifacts) {
			file := b.path(b.artifacts[index].Location)
			b.expanded.spend(len(file))
			out = append(out, file)
		}
	}
	return out
}
