package apiclient

// BadBodies are bodies that every operation with a JSON body refuses, keyed by the defect.
var BadBodies = map[string]string{
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
}
