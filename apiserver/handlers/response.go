package handlers

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
)

// Response is an answer with status 200.
type Response struct {
	// Body in parts.
	Body [][]byte
	// Tag names the state of a resource, for conditional requests; empty for what is no
	// single resource.
	Tag string
}

// single answers with a resource that has one shape.
func single(content []byte) Response {
	return Response{Body: [][]byte{content}, Tag: tag(content)}
}

// findingResponse answers with one of a finding's shapes.
func findingResponse(item *readmodel.Item, shape []byte) Response {
	return Response{Body: [][]byte{shape}, Tag: findingTag(item)}
}

// findingTag is the same for both shapes, because v1 has no read of one finding: whoever read
// the finding from v2 may make a change by v1 conditional on it.
func findingTag(item *readmodel.Item) string { return tag(item.V1, item.V2) }

// tagBytes is how much of the digest makes the tag: 128 bits.
const tagBytes = 16

func tag(contents ...[]byte) string {
	digest := sha256.New()
	for _, content := range contents {
		digest.Write(content)
	}
	return hex.EncodeToString(digest.Sum(nil)[:tagBytes])
}
