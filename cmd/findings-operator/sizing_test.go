package main

import (
	"encoding/json"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/uploads"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The figures that size computes with equal the measured ones, at each size.
func TestSizesAreThoseThatWereMeasured(t *testing.T) {
	page := harness.RepositoryFile(t, "docs", "performance", "sizes.md")
	const tolerance = 0.25
	processes := []footprint{sizedAPIServer, sizedEtcd, sizedControl, sizedREST}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \|(.*)\|$`).FindAllStringSubmatch(page, -1)
	if len(rows) < 3 {
		t.Fatalf("the page has %d sizes", len(rows))
	}
	for _, row := range rows {
		findings, err := strconv.Atoi(row[1])
		harness.Must(t, err)
		for i, cell := range strings.Split(row[3], "|") {
			_, most, _ := strings.Cut(strings.TrimSpace(cell), ", ")
			measured, err := strconv.ParseFloat(most, 64)
			if err != nil {
				t.Fatalf("%d findings, %s: %v", findings, processes[i].process, err)
			}
			computed := processes[i].atRest(findings) / 1e6
			if computed < measured*(1-tolerance) || computed > measured*(1+tolerance)+50 {
				t.Errorf("%d findings: %s takes %.0f MB, and size computes with %.0f", findings, processes[i].process, measured, computed)
			}
		}
		if findings > onePlane {
			t.Errorf("%d findings were tried, and size says that one plane takes at most %d", findings, onePlane)
		}
	}
}

// Who sets the memory that size prints can upload as much as the default limits allow.
func TestSizeLeavesRoomForUploads(t *testing.T) {
	for _, objects := range []int{0, 10_000} {
		room := sizedREST.of(objects) - underLoad*sizedREST.atRest(objects)
		if least := 3 * float64(uploads.DefaultLimits.Bytes); room < least {
			t.Errorf("%d objects: %.0f MB are left for uploads, and they take %.0f", objects, room/1e6, least/1e6)
		}
	}
}

func TestFindingsAreDividedAmongPlanes(t *testing.T) {
	for _, c := range []struct{ findings, organizations, planes, findingsEach, organizationsEach int }{
		{0, 1, 1, 0, 1},
		{onePlane, 3, 1, onePlane, 3},
		{onePlane + 1, 3, 2, 2*onePlane/3 + 1, 2},
		{6 * onePlane, 10, 10, 6 * onePlane / 10, 1},
		{3 * onePlane, 100, 4, 99 * onePlane / 100, 33},
		{3 * onePlane, 1, 1, 3 * onePlane, 1},
		{6 * onePlane, 4, 4, 3 * onePlane / 2, 1},
	} {
		planes, organizations := planesFor(c.findings, c.organizations)
		findings := divideUp(c.findings*organizations, c.organizations)
		if planes != c.planes || findings != c.findingsEach || organizations != c.organizationsEach {
			t.Errorf("%d findings of %d organizations: %d planes with %d and %d", c.findings, c.organizations, planes, findings, organizations)
		}
	}
}

func TestSizeCountsOneOrganization(t *testing.T) {
	for organizations, want := range map[int]string{1: " and 1 organization of ", 2: " and 2 organizations of "} {
		harness.Contains(t, "the report", (&sizeOptions{findings: 10, organizations: organizations, replicas: 2}).report(), want)
	}
}

// Else they would outgrow the memory that size prints for the findings alone.
func TestSizeCountsScansAndTheHistoryOfProjects(t *testing.T) {
	for want, o := range map[string]sizeOptions{
		": 11,030 objects": {findings: 10, scans: 1000, projects: 100, organizations: 1, replicas: 2},
		"2 control planes, since Kubernetes recommends at most 150,000": {scans: 2 * onePlane, organizations: 2, replicas: 2},
		"let retention remove finished scans sooner":                    {scans: 2 * onePlane, organizations: 1, replicas: 2},
		"let retention remove closed findings sooner":                   {findings: 2 * onePlane, scans: 3 * onePlane, organizations: 1, replicas: 2},
		"FindingTrends of projects per control plane exceed":            {projects: onePlane, organizations: 1, replicas: 2},
		"3 control planes": {projects: onePlane / 3, organizations: 9, replicas: 2},
	} {
		harness.Contains(t, "the report", o.report(), want)
	}
}

// The quota of etcd and the memory of kube-apiserver, as size computes them, have room for the history of a project whose
// findings change every day.
func TestAProjectCountsForItsHistory(t *testing.T) {
	spread := &v1alpha1.FindingTrendSpread{Median: 1000, P90: 1000, Sample: slices.Repeat([]int32{1000}, v1alpha1.MaxTrendSample)}
	rows := make([]v1alpha1.FindingTrendDay, v1alpha1.MaxTrendDays)
	for i := range rows {
		rows[i] = v1alpha1.FindingTrendDay{
			Day:       v1alpha1.Day(time.Date(2026, 7, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)),
			Open:      v1alpha1.FindingTrendOpen{Critical: 100, High: 100, Medium: 100, Low: 100},
			OpenMuted: 100, Opened: 10, Closed: 10, Muted: 10, Age: spread, TimeToClose: spread,
		}
	}
	trend := builder.FindingTrend("full", "2026q3").In(env.Namespace(t)).Rows(rows...).Build()
	harness.Must(t, env.AsController(t).Create(t.Context(), trend))
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FindingTrend"))
	harness.Must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(trend), stored))
	text := harness.JSON(t, stored)
	if history, room := projectTrends*len(text), projectObjects*storedBytes*versions; room < float64(history) {
		t.Errorf("etcd has room for %.0f bytes of a project, and its history takes %d", room, history)
	}
	const projects = 10
	held := make([]unstructured.Unstructured, projects*projectTrends) // as the watch cache of kube-apiserver holds them
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range held {
		harness.Must(t, json.Unmarshal(text, &held[i]))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	history := float64(after.HeapAlloc-before.HeapAlloc) / projects
	runtime.KeepAlive(held)
	// The heap of a map depends on the Go version.
	if room := projectObjects * sizedAPIServer.finding; room*1.25 < history {
		t.Errorf("kube-apiserver has room for %.0f bytes of a project, and its history takes %.0f", room, history)
	}
}

func TestSizeSaysThatAnOrganizationIsTooLargeForAControlPlane(t *testing.T) {
	const warning = "organization cannot be divided"
	for organizations, warns := range map[int]bool{1: true, 2: true, 3: false} {
		report := (&sizeOptions{findings: 3 * onePlane, organizations: organizations, replicas: 2}).report()
		if strings.Contains(report, warning) != warns {
			t.Errorf("%d organizations: %q must be said: %t\n%s", organizations, warning, warns, report)
		}
	}
}

func TestSizeRefusesWhatCannotBe(t *testing.T) {
	for _, arguments := range []string{"", "--findings=-1", "--findings=1 --organizations=0", "--findings=1 --replicas=0", "--findings=1 --scans=-1",
		"--findings=1 --projects=-1",
		"--findings=many", "--findings=1 more"} {
		command := newSizeCommand()
		command.SetArgs(strings.Fields(arguments))
		command.SilenceErrors, command.SilenceUsage = true, true
		if command.Execute() == nil {
			t.Errorf("size %s is taken", arguments)
		}
	}
}
