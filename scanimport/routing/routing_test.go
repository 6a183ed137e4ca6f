package routing_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/routing"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestOf(t *testing.T) {
	monorepo := []routing.Project{{Name: "api", Path: "services/api"}, {Name: "v2", Path: "./services/api/v2/"}, {Name: "web", Path: `services\web`}}
	root := append(slices.Clone(monorepo), routing.Project{Name: "all"})
	for _, tc := range []struct {
		reason   string
		projects []routing.Project
		file     string
		want     string
	}{
		{"the folder that holds it", monorepo, "services/api/main.go", "api"},
		{"the longest folder", monorepo, "services/api/v2/main.go", "v2"},
		{"the folder itself", monorepo, "services/api", "api"},
		{"a name that only begins alike", monorepo, "services/api2/main.go", ""},
		{"another case is another folder", monorepo, "Services/api/main.go", ""},
		{"a backslash is a slash", monorepo, "services/web/a.js", "web"},
		{"no way out of the root", monorepo, "../services/web/a.js", "web"},
		{"a way round", monorepo, "services/web/../api/a.go", "api"},
		{"no folder", monorepo, "README.md", ""},
		{"no file", monorepo, "", ""},
		{"the whole repository", root, "README.md", "all"},
		{"no file in the whole repository", root, "", "all"},
		{"the only project, wherever it is", monorepo[:1], "README.md", "api"},
		{"no project", nil, "README.md", ""},
		{"two of one folder", append(slices.Clone(monorepo), routing.Project{Name: "twin", Path: "services/web/"}), "services/web/a.js", ""},
	} {
		if got, ok := routing.NewTable(tc.projects, false).Of(tc.file); got != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: %q is of %q, %t; want %q", tc.reason, tc.file, got, ok, tc.want)
		}
	}
}

var folder = rapid.Custom(func(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab"}), 0, 3).Draw(t, "parts"), "/")
})

func projects(t *rapid.T) (out []routing.Project) {
	for i, path := range rapid.SliceOfNDistinct(folder, 0, 5, rapid.ID[string]).Draw(t, "folders") {
		out = append(out, routing.Project{Name: string(rune('p' + i)), Path: path})
	}
	return out
}

// The same rule in another form: of all folders above the file, the nearest one that is a project's.
func TestOfIsTheNearestFolderAbove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, file := projects(t), strings.Trim(folder.Draw(t, "folder")+"/x.go", "/")
		want := ""
		if len(all) == 1 {
			want = all[0].Name
		}
		for above := file; want == ""; {
			at := strings.LastIndexByte(above, '/')
			above = above[:max(at, 0)]
			if i := slices.IndexFunc(all, func(p routing.Project) bool { return p.Path == above }); i >= 0 {
				want = all[i].Name
			}
			if at < 0 {
				break
			}
		}
		got, ok := routing.NewTable(all, false).Of(file)
		if got != want || ok != (want != "") {
			t.Fatalf("%s is of %q, %t; want %q", file, got, ok, want)
		}
	})
}

// If imports create projects for folders, the first of them is not the whole repository.
func TestAScanOfNoPlaceIsNotOfTheFirstFolder(t *testing.T) {
	empty := []*importer.Batch{{Tool: "lint"}}
	api, all := []routing.Project{{Name: "api", Path: "services/api"}}, []routing.Project{{Name: "all"}}
	if parts, err := routing.NewTable(api, true).Split(empty); err == nil {
		t.Errorf("it is of %s", parts[0].Project)
	}
	for _, table := range []*routing.Table{routing.NewTable(api, false), routing.NewTable(all, true)} {
		if parts, err := table.Split(empty); err != nil || len(parts) != 1 {
			t.Errorf("of the only project %s there are %d scans: %v", table, len(parts), err)
		}
	}
}

// Only with a file elsewhere and none in the folder is it known that the folder was not scanned.
func TestAScanOutsideOfTheOnlyProjectsFolderIsMarked(t *testing.T) {
	for _, tc := range []struct {
		reason         string
		path           string
		files, scanned []string
		want           string
	}{
		{"all results are elsewhere", "services/api", []string{"services/web/a.js"}, nil, "services/api"},
		{"a written path is cleaned", "./services/api/", []string{"services/web/a.js"}, nil, "services/api"},
		{"all scanned files are elsewhere", "services/api", nil, []string{"services/web"}, "services/api"},
		{"a result is in the folder", "services/api", []string{"services/web/a.js", "./services/api/a.go"}, nil, ""},
		{"a scanned file is in the folder", "services/api", []string{"README.md"}, []string{"services/api/v2"}, ""},
		{"no file", "services/api", nil, nil, ""},
		{"a result without a file", "services/api", []string{"", "https://api.example.com/"}, nil, ""},
		{"the whole repository", "", []string{"services/web/a.js"}, nil, ""},
	} {
		batch := &importer.Batch{Scanned: tc.scanned}
		for _, file := range tc.files {
			batch.Results = append(batch.Results, sarif.Result{Location: sarif.Location{Path: file}})
		}
		parts, err := routing.NewTable([]routing.Project{{Name: "api", Path: tc.path}}, false).Split([]*importer.Batch{batch, {}})
		harness.Must(t, err)
		for _, part := range parts {
			harness.Same(t, tc.reason+": outside", tc.want, part.Outside)
		}
	}
}

// A batch without any location is left out, and the uploader gets a warning.
func TestABatchOfNoPlaceBesideOthersIsTold(t *testing.T) {
	table := routing.NewTable([]routing.Project{{Name: "api", Path: "api"}, {Name: "web", Path: "web"}}, false)
	placed := &importer.Batch{Tool: "lint", Results: []sarif.Result{{Location: sarif.Location{Path: "web/x.go"}}}}
	parts, err := table.Split([]*importer.Batch{{Tool: "idle", Category: "Code", Skipped: map[string]int{"passed": 3}, Warnings: []string{"a file is missing"}}, placed})
	if err != nil || len(parts) != 1 {
		t.Fatalf("there are %d parts: %v", len(parts), err)
	}
	harness.Contains(t, "the warnings", strings.Join(parts[0].Warnings, "; "), "left out of this upload: idle (Code)", "a file is missing")
	harness.Same(t, "results counted as skipped", 3, parts[0].Skipped["idle (Code), left out: passed"])
	if len(placed.Warnings) != 0 || len(placed.Skipped) != 0 {
		t.Error("the batch itself was changed")
	}
}

func TestScannedAreTheProjectsThatHoldSomething(t *testing.T) {
	monorepo := []routing.Project{{Name: "api", Path: "services/api"}, {Name: "web", Path: "services/web"}, {Name: "twin", Path: "services/web"}}
	for _, tc := range []struct {
		reason         string
		projects       []routing.Project
		files, scanned []string
		want           string // "all": others may have been scanned too
	}{
		{"the project of the result", monorepo, []string{"services/api/a.go"}, nil, "api"},
		{"both projects of its folder", monorepo, []string{"services/web/a.go"}, nil, "twin web"},
		{"the project of a scanned file", monorepo, nil, []string{"services/api/b.go", "README.md"}, "api"},
		{"nothing says which", monorepo, nil, nil, "all"},
		{"a result of no project", monorepo, []string{"services/api/a.go", "README.md"}, nil, "all api"},
		{"the only project", monorepo[:1], []string{"README.md"}, nil, "api"},
		{"the only one yet, of another folder", []routing.Project{{Name: "api", Path: "api", Grown: true}}, nil, []string{"web/b.go"}, "all"},
		{"the only one, of the whole repository", []routing.Project{{Name: "shop", Grown: true}}, nil, nil, "shop"},
	} {
		// What the source suppresses was scanned too.
		for _, suppressed := range []bool{false, true} {
			batch := &importer.Batch{Scanned: tc.scanned}
			for _, file := range tc.files {
				result := []sarif.Result{{Location: sarif.Location{Path: file}}}
				if suppressed {
					batch.Suppressed = append(batch.Suppressed, result...)
				} else {
					batch.Results = append(batch.Results, result...)
				}
			}
			scanned, all := routing.NewTable(tc.projects, false).Scanned([]*importer.Batch{{}, batch})
			if all {
				scanned["all"] = true
			}
			harness.Same(t, tc.reason+": scanned", tc.want, strings.Join(slices.Sorted(maps.Keys(scanned)), " "))
		}
	}
}

// Nothing is lost or duplicated, every part belongs to the project of its results, and no other project counts as
// scanned.
func TestSplitKeepsEveryResultOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := routing.NewTable(projects(t), rapid.Bool().Draw(t, "growing"))
		batch := &importer.Batch{Tool: "lint", Skipped: map[string]int{"x": 1}, Scanned: rapid.SliceOfN(folder, 0, 2).Draw(t, "scanned")}
		for i, file := range rapid.SliceOfN(folder, 0, 6).Draw(t, "files") {
			result := sarif.Result{Index: i, Location: sarif.Location{Path: file + "/x.go"}}
			if rapid.Bool().Draw(t, "suppressed") {
				batch.Suppressed = append(batch.Suppressed, result)
			} else {
				batch.Results = append(batch.Results, result)
			}
		}
		parts, err := table.Split([]*importer.Batch{batch})
		if err != nil {
			return
		}
		only, _ := table.Only()
		var indices []int
		skipped := 0
		for _, part := range parts {
			skipped += part.Skipped["x"]
			touched := len(part.Results)+len(part.Suppressed) > 0 || only != ""
			for _, result := range slices.Concat(part.Results, part.Suppressed) {
				indices = append(indices, result.Index)
				if of, _ := table.Of(result.Location.Path); of != part.Project && only == "" {
					t.Fatalf("%s is in the part of %s", result.Location.Path, part.Project)
				}
			}
			for _, folder := range batch.Scanned {
				of, _ := table.Of(folder)
				touched = touched || of == part.Project
			}
			if !touched {
				t.Fatalf("%s is scanned for no reason", part.Project)
			}
		}
		slices.Sort(indices)
		if len(indices) != len(batch.Results)+len(batch.Suppressed) || len(slices.Compact(indices)) != len(indices) || skipped != 1 {
			t.Fatalf("the parts hold the results %v, and %d of what was skipped", indices, skipped)
		}
	})
}
