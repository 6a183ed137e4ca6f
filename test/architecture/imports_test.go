// Package architecture checks the import rules between the areas ("rooms") of the project.
package architecture

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

const module = "github.com/appsec-dev/findings-operator/"

// rooms lists which of this project's packages each room may import besides its own. Rooms that are
// not listed may import everything.
var rooms = map[string]struct {
	may    []string
	reason string
}{
	"api":                 {nil, "clients import the API types, and must get nothing else with them"},
	"client":              {nil, "users import it, and must get nothing of the service with it"},
	"internal":            {[]string{"api"}, "rules that both sides share must not lean on either"},
	"controllers":         {[]string{"api", "internal"}, "the controllers must run without the facade"},
	"scanimport":          {[]string{"api", "internal"}, "the plugin imports it, and must get neither half of the service with it"},
	"apiserver":           {[]string{"api", "internal", "scanimport", "apiserver/console"}, "the facade must run without the controllers"},
	"apiserver/console":   {[]string{"client", "apiserver/sealed"}, "the console is a client of the REST API: what it does, a script can do"},
	"test/harness":        {nil, "every package's tests import it"},
	"test/testenv":        {[]string{"api", "internal", "test/harness"}, "every package's tests import it"},
	"test/builder":        {[]string{"api", "internal"}, "every package's tests import it"},
	"test/needs":          {nil, "every package's tests import it"},
	"test/handlertest":    {[]string{"test/harness"}, "the tests of every event handler import it"},
	"test/pagetest":       {[]string{"apiserver/console", "test/harness"}, "the tests of every page import it"},
	"test/controllertest": {[]string{"api", "internal", "controllers", "test/harness", "test/testenv", "test/builder"}, "every controller's tests import it"},
}

// testHelpers are the packages that the test files of any package may also import.
var testHelpers = []string{"test/harness", "test/testenv", "test/builder", "test/corpus", "test/needs"}

// helpersOf are the packages that the test files of a room may also import.
var helpersOf = map[string][]string{
	"controllers":       {"test/controllertest", "test/handlertest"},
	"apiserver/console": {"test/pagetest"},
}

func TestRoomsImportOnlyWhatTheyMay(t *testing.T) {
	edges := listImports(t)
	if len(edges) < len(rooms) {
		t.Fatalf("go list named %d imports among our packages; the check saw nothing", len(edges))
	}
	for _, edge := range edges {
		harness.Same(t, edge.from+" imports "+edge.to, "", violation(edge))
	}
}

// The rules themselves are tested, because a rule that matches nothing would always pass.
func TestTheLawRefusesWhatItShould(t *testing.T) {
	for _, c := range []struct {
		edge    edge
		allowed bool
		reason  string
	}{
		{edge{from: "controllers/finding", to: "apiserver/readmodel"}, false, "controllers never import apiserver"},
		{edge{from: "apiserver/handlers", to: "controllers/finding"}, false, "apiserver never imports controllers"},
		{edge{from: "client", to: "api/v1alpha1"}, false, "the client imports nothing of ours"},
		{edge{from: "internal/tokens", to: "apiserver"}, false, "internal imports api alone"},
		{edge{from: "api/v1alpha1", to: "internal/tokens"}, false, "api imports nothing of ours"},
		{edge{from: "controllers/finding", to: "test/testenv"}, false, "only test files import the test environment"},
		{edge{from: "controllers/finding", to: "test/testenv", inTest: true}, true, "test files may"},
		{edge{from: "controllers/finding", to: "test/controllertest", inTest: true}, true, "test files of controllers run controllers"},
		{edge{from: "apiserver/auth", to: "test/controllertest", inTest: true}, false, "the facade's tests run no controllers"},
		{edge{from: "controllers/finding", to: "apiserver", inTest: true}, false, "test files keep to the law otherwise"},
		{edge{from: "controllers/scan", to: "scanimport/importer"}, false, "controllers import nothing"},
		{edge{from: "scanimport/importer", to: "apiserver"}, false, "an import needs no facade"},
		{edge{from: "apiserver/handlers", to: "scanimport/importer"}, true, "uploads are imports"},
		{edge{from: "apiserver/console/findings", to: "apiserver/readmodel"}, false, "the console calls operations alone"},
		{edge{from: "apiserver/console/findings", to: "api/v1alpha1"}, false, "the console knows no resources"},
		{edge{from: "apiserver/console/findings", to: "client"}, true, "the console is a client"},
		{edge{from: "apiserver/handlers", to: "client"}, false, "what serves the REST API is no client of it"},
		{edge{from: "controllers/finding", to: "controllers/internal/patch"}, true, "a room's own packages"},
		{edge{from: "controllers/internal/patch", to: "internal/findingstate"}, true, "controllers' helpers are controllers"},
		{edge{from: "cmd/findings-operator", to: "apiserver"}, true, "cmd sees both"},
		{edge{from: "test/e2e", to: "controllers/finding", inTest: true}, true, "test sees both"},
	} {
		harness.Same(t, fmt.Sprintf("%+v is allowed, since %s", c.edge, c.reason), c.allowed, violation(c.edge) == "")
	}
}

// edge is an import between this project's packages, without the module's prefix.
type edge struct {
	from, to string
	inTest   bool
}

// violation returns why an import breaks the rules, or "".
func violation(e edge) string {
	room := roomOf(e.from)
	law, bound := rooms[room]
	if !bound || roomOf(e.to) == room {
		return ""
	}
	allowed := law.may
	if e.inTest {
		allowed = append(allowed[:len(allowed):len(allowed)], testHelpers...)
		allowed = append(allowed, helpersOf[room]...)
	}
	for _, may := range allowed {
		if within(e.to, may) {
			return ""
		}
	}
	return law.reason
}

func roomOf(path string) string {
	innermost := ""
	for room := range rooms {
		if within(path, room) && len(room) > len(innermost) {
			innermost = room
		}
	}
	if innermost == "" {
		innermost, _, _ = strings.Cut(path, "/")
	}
	return innermost
}

func within(path, room string) bool { return path == room || strings.HasPrefix(path, room+"/") }

func listImports(t *testing.T) []edge {
	t.Helper()
	const format = `{{$from := .ImportPath}}` +
		`{{range .Imports}}{{$from}} {{.}} code{{"\n"}}{{end}}` +
		`{{range .TestImports}}{{$from}} {{.}} test{{"\n"}}{{end}}` +
		`{{range .XTestImports}}{{$from}} {{.}} test{{"\n"}}{{end}}`
	command := exec.CommandContext(t.Context(), "go", "list", "-f", format, "./...")
	command.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var edges []edge
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && strings.HasPrefix(fields[0], module) && strings.HasPrefix(fields[1], module) {
			edges = append(edges, edge{
				from:   strings.TrimPrefix(fields[0], module),
				to:     strings.TrimPrefix(fields[1], module),
				inTest: fields[2] == "test",
			})
		}
	}
	return edges
}
