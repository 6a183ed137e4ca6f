package sarif

import (
	"slices"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestErrorsThatToolsReport(t *testing.T) {
	located := `"locations":[{"physicalLocation":{"artifactLocation":{"uri":"src/a.js"}}}]`
	for name, tc := range map[string]struct {
		reason, notifications, incomplete, warning string
	}{
		"the run": {"the tool says that results are missing, and not which",
			`"toolExecutionNotifications":[{"level":"error","message":{"text":"Out of\nmemory."}}]`,
			"the tool reports an error (a notification of level error): Out of memory.", ""},
		"a password": {"who may read scans must not read the scanner's credentials",
			`"toolExecutionNotifications":[{"level":"error","message":{"text":"url=https://ci:ghp_1@shop.example/lib: unable to access 'https://ci:ghp_1@shop.example/lib@1.2' or git+ssh://git@shop.example/x"}}]`,
			"the tool reports an error (a notification of level error): url=https://shop.example/lib: unable to access 'https://shop.example/lib@1.2' or git+ssh://git@shop.example/x", ""},
		"passwords in lists": {"neither the separator nor a URI before it protects them",
			`"toolExecutionNotifications":[{"level":"error","message":{"text":"GOPROXY list \"https://proxy.golang.org,https://ci:g,1@athens.example\" failed, as [\"https://a.example/x\",\"https://ci:ghp_1@b.example/x\"] and https://a.example/x|https://ci:ghp_1@b.example/"}}]`,
			`the tool reports an error (a notification of level error): GOPROXY list "https://proxy.golang.org,https://athens.example" failed, as ["https://a.example/x","https://b.example/x"] and https://a.example/x|https://b.example/`, ""},
		"after others": {"the worst counts, and neither the case of a level nor blanks around it have a meaning",
			`"toolExecutionNotifications":[7,{"level":"note"},{"level":" Error","locations":[{}]}]`,
			"the tool reports an error (a notification of level error)", ""},
		"a file": {"a file that cannot be parsed is part of many healthy runs",
			`"toolExecutionNotifications":[{"level":"error",` + located + `},{"level":"error",` + located + `}]`,
			"", "the tool reports errors about files (2, the first about src/a.js): findings that it missed there count as fixed"},
		"configuration": {"the tool ran", `"toolConfigurationNotifications":[{"level":"error","message":{"text":"no classes"}}]`,
			"", "the tool reports errors in its configuration (1), so it may have missed findings, which count as fixed: no classes"},
		"a file left out": {"some tools say so here, and the case of a level has no meaning",
			`"toolConfigurationNotifications":[{"level":"ERROR",` + located + `}]`,
			"", "the tool reports errors about files (1, the first about src/a.js): findings that it missed there count as fixed"},
		"a warning": {"Semgrep warns about files that it cannot parse, and names them only in the text",
			`"toolExecutionNotifications":[{"level":"warning","message":{"text":"Syntax error"}},{}]`, "", ""},
		"no list": {"it counts as a list of one", `"toolExecutionNotifications":{"message":{"text":"killed"},"level":"error"}`,
			"the tool reports an error (a notification of level error): killed", ""},
		"no object": {"it has no level", `"toolExecutionNotifications":"error","toolConfigurationNotifications":null`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			run := parseOne(t, file(`"results":[],"invocations":[{"executionSuccessful":true,`+tc.notifications+`}]`), Options{})
			if run.Incomplete != tc.incomplete || strings.Join(run.Warnings, "\n") != tc.warning {
				t.Errorf("incomplete %q, warnings %q: %s", run.Incomplete, run.Warnings, tc.reason)
			}
		})
	}
}

func TestWarningsOfARunAreBounded(t *testing.T) {
	one := `{"toolExecutionNotifications":[{"level":"error","locations":[{"physicalLocation":{"artifactLocation":{"uri":"a"}}}]}]}`
	run := parseOne(t, file(`"results":[],"invocations":[`+strings.Join(slices.Repeat([]string{one}, 20), ",")+`]`), Options{})
	harness.Same(t, "warnings", maxWarnings, len(run.Warnings))
}
