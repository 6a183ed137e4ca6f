package conformance

import (
	"maps"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/test/apiclient"
)

// badUserStatuses are bodies of both updates with an invalid user_status.
var badUserStatuses = []string{
	`{"user_status":"closed"}`, `{"user_status":"open_muted"}`, `{"user_status":"Open"}`, `{"user_status":""}`, `{"user_status":" open"}`,
	`{"user_status":null}`, `{"user_status":1}`, `{"user_status":true}`, `{"user_status":["open"]}`, `{"user_status":{"open":1}}`,
}

// refusesBadBodies checks that an update of that path refuses each of apiclient.BadBodies, and a body that is too long.
func (c *caller) refusesBadBodies(path string) {
	c.t.Helper()
	for _, reason := range slices.Sorted(maps.Keys(apiclient.BadBodies)) {
		c.patch(path, apiclient.BadBodies[reason]).badRequest(reason)
	}
	c.patch(path, `{"user_status":"open","x":"`+strings.Repeat("a", 256<<10)+`"}`).badRequest("over 256 KiB")
}

// refusesBodies checks that an update of that path refuses each of the bodies.
func (c *caller) refusesBodies(path string, bodies ...string) {
	c.t.Helper()
	for _, body := range bodies {
		c.patch(path, body).badRequest(body)
	}
}
