package conformance

import (
	"maps"
	"slices"
	"strings"
)

// badUserStatuses are bodies of both updates with an invalid user_status.
var badUserStatuses = []string{
	`{"user_status":"closed"}`, `{"user_status":"open_muted"}`, `{"user_status":"Open"}`, `{"user_status":""}`, `{"user_status":" open"}`,
	`{"user_status":null}`, `{"user_status":1}`, `{"user_status":true}`, `{"user_status":["open"]}`, `{"user_status":{"open":1}}`,
}

// badBodies are bodies that every update refuses, keyed by the defect.
var badBodies = map[string]string{
	"nothing":               ``,
	"white space":           " \n",
	"null":                  `null`,
	"a list":                `[{"user_status":"open"}]`,
	"a string":              `"open"`,
	"a number":              `7`,
	"an empty object":       `{}`,
	"not JSON":              `user_status=open`,
	"cut off":               `{"user_status":"open"`,
	"two values":            `{"user_status":"open"}{"user_status":"open"}`,
	"something behind":      `{"user_status":"open"} x`,
	"a member twice":        `{"user_status":"open","user_status":"muted"}`,
	"a member twice inside": `{"user_status":"open","x":{"a":1,"a":2}}`,
	"invalid UTF-8":         "{\"user_status\":\"open\",\"x\":\"\xff\"}",
	"half a surrogate":      `{"user_status":"open","x":"\ud800"}`,
	"a byte order mark":     "\ufeff" + `{"user_status":"open"}`,
	"a trailing comma":      `{"user_status":"open",}`,
	"over 256 KiB":          `{"user_status":"open","x":"` + strings.Repeat("a", 256<<10) + `"}`,
}

// refusesBadBodies checks that an update of that path refuses each of badBodies.
func (c *caller) refusesBadBodies(path string) {
	c.t.Helper()
	for _, reason := range slices.Sorted(maps.Keys(badBodies)) {
		c.patch(path, badBodies[reason]).badRequest(reason)
	}
}

// refusesBodies checks that an update of that path refuses each of the bodies.
func (c *caller) refusesBodies(path string, bodies ...string) {
	c.t.Helper()
	for _, body := range bodies {
		c.patch(path, body).badRequest(body)
	}
}
