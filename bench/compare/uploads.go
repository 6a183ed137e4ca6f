package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

const (
	// maxUploadRounds bounds the run time: the findings of each round must be removed again.
	maxUploadRounds = 3
	// uploadPoll is the pause between two polls of an upload that was answered with 202.
	uploadPoll = 50 * time.Millisecond
	// readsPage is the page that is read during an upload.
	readsPage = "/v2/findings?size=100"
	// readsTurn is how long it is read at a time.
	readsTurn = time.Second
)

// The names of the sides. Operations are results, and pages for the last two sides.
const (
	pluginSide      = "kubectl findings import"
	uploadSide      = "upload over REST"
	firstSide       = "upload of what is new"
	unchangedSide   = "upload of the same again"
	readsAloneSide  = "pages of findings"
	readsBesideSide = "pages of findings during an upload"
)

const uploadsText = "A SARIF file is imported by `kubectl findings import`, and uploaded to the REST API, in turn, with the controllers stopped. The " +
	"time of the plugin is that of its process; the time of an upload runs until its answer, or, where that is 202, until " +
	"`GET /v2/uploads/{id}` says that it is completed. After each turn all findings are removed. Then a larger file is uploaded twice. " +
	"Finally, pages of 100 findings are read over four connections, first while nothing else happens and then during an upload " +
	"while the controllers run."

// uploads compares uploads with the plugin's imports, and measures how they slow down readers.
func uploads(ctx context.Context, b *bench.Bench) (*report.Section, error) {
	f, err := b.Fixture(ctx, b.Smallest())
	if err != nil {
		return nil, err
	}
	u := &uploading{bench: b, Fixture: f}
	if err := u.prepare(ctx); err != nil {
		return nil, err
	}
	results := measure.Results{}
	for _, part := range []func(context.Context, measure.Results) error{u.againstPlugin, u.again, u.beside} {
		if err := part(ctx, results); err != nil {
			return nil, err
		}
	}
	table := report.Table{
		Title: fmt.Sprintf("%s results in a file of %s, and %s in one of %s, beside %s findings:", thousands(b.Results),
			kilobytes(len(u.file)), thousands(b.ResultsAgain), kilobytes(len(u.larger)), thousands(f.Size)),
		Columns: []string{"Who, what", "results or pages a second", "CPU of the REST API, kube-apiserver and etcd for one"},
	}
	sides := []string{pluginSide, uploadSide, firstSide, unchangedSide, readsAloneSide, readsBesideSide}
	for _, side := range sides {
		table.Rows = append(table.Rows, []string{side, fmt.Sprintf("%.0f", results.Rate(side)), milliseconds(results.CPU(side))})
	}
	reads := report.AtLeast("pages read during an upload, against none", 0.5, results.Ratio(readsBesideSide, readsAloneSide).Median, "%.2f")
	return &report.Section{
		Title: "Uploads", Text: uploadsText, Tables: []report.Table{table},
		Charts: []report.Chart{{Title: "Uploads", Unit: "results or pages a second", Groups: []report.Group{rateGroup(results, sides)}}},
		Rows: []report.Row{
			// Ratios of rates, so they are the inverse of those of times.
			ratioRow(report.AtMost, fmt.Sprintf("time of an upload of %s new results, over the plugin's import", thousands(b.Results)), 1.1,
				results.Ratio(pluginSide, uploadSide)),
			ratioRow(report.AtMost, fmt.Sprintf("time of %s results with nothing new, over the first time", thousands(b.ResultsAgain)), 0.1,
				results.Ratio(firstSide, unchangedSide)),
			reads.InSummary(),
		},
	}, nil
}

// uploading holds what the sides have in common.
type uploading struct {
	*bench.Fixture
	bench               *bench.Bench
	repository, project string
	token               string
	file, larger        []byte
	importer            pluginImport
	turns               int
}

// prepare creates files and credentials. The controllers run only during that.
func (u *uploading) prepare(ctx context.Context) (err error) {
	project := u.Data.Projects[0]
	u.repository, u.project = string(project.Spec.RepositoryRef.Name), project.Name
	if u.file, err = sarifOf(u.bench.Results, u.Data.Finding); err != nil {
		return err
	}
	if u.larger, err = sarifOf(u.bench.ResultsAgain, u.Data.Finding); err != nil {
		return err
	}
	if u.importer, err = newPluginImport(ctx, u.Plane, u.bench.ThisBuild().Plugin, u.bench.Folder(), project, u.file); err != nil {
		return err
	}
	if err := u.StartController(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.StopController()) }()
	if u.token, err = u.NewKey(ctx, u.Organization.Namespace, "uploads", v1alpha1.ScopeFindingsImport, v1alpha1.ScopeFindingsRead); err != nil {
		return err
	}
	return eventually(ctx, settleInterval, caughtUp, u.checkMayUpload)
}

// checkMayUpload returns an error while uploads have no rights in the namespace.
func (u *uploading) checkMayUpload(ctx context.Context) error {
	bindings := &rbacv1.RoleBindingList{}
	if err := u.Client.List(ctx, bindings, client.InNamespace(u.Organization.Namespace)); err != nil {
		return err
	}
	for i := range bindings.Items {
		if slices.ContainsFunc(bindings.Items[i].Subjects, func(s rbacv1.Subject) bool { return s.Name == v1alpha1.UploadsServiceAccount }) {
			return nil
		}
	}
	return errors.New("no RoleBinding names the account of uploads")
}

// againstPlugin runs the turns of plugin and upload, after one warm-up round that does not count.
func (u *uploading) againstPlugin(ctx context.Context, results measure.Results) error {
	type side struct {
		name string
		work func(ctx context.Context, tool string) error
	}
	sides := []side{{pluginSide, u.plugin}, {uploadSide, func(ctx context.Context, tool string) error { return u.upload(ctx, tool, u.file) }}}
	for round := range min(u.bench.Plan.Rounds, maxUploadRounds) + 1 {
		u.bench.Say("uploads: round %d", round)
		slices.Reverse(sides)
		for _, s := range sides {
			tool := u.newTool()
			sample, err := u.timed(ctx, u.bench.Results, func(ctx context.Context) error { return s.work(ctx, tool) })
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if round > 0 {
				results[s.name] = append(results[s.name], sample)
			}
			if err := removeOf(ctx, u.Fixture, tool); err != nil {
				return err
			}
		}
	}
	return nil
}

// again uploads the larger file twice.
func (u *uploading) again(ctx context.Context, results measure.Results) error {
	tool := u.newTool()
	for _, side := range []string{firstSide, unchangedSide} {
		u.bench.Say("uploads: %s", side)
		sample, err := u.timed(ctx, u.bench.ResultsAgain, func(ctx context.Context) error { return u.upload(ctx, tool, u.larger) })
		if err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
		results[side] = append(results[side], sample)
	}
	return removeOf(ctx, u.Fixture, tool)
}

// beside reads pages without an upload and during one.
func (u *uploading) beside(ctx context.Context, results measure.Results) (err error) {
	stop, err := withControllers(ctx, u.Fixture)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	side := u.bench.Side(u.FacadeTarget(readsAloneSide, readsPage), u.Facade.PID())
	for round := range min(u.bench.Plan.Rounds, maxUploadRounds) + 1 {
		u.bench.Say("uploads: reads, round %d", round)
		if err := u.bench.Calm(ctx); err != nil {
			return err
		}
		alone, err := measure.Turn(ctx, side, readsTurn)
		if err != nil {
			return err
		}
		tool := u.newTool()
		uploaded := make(chan error, 1)
		go func() { uploaded <- u.upload(ctx, tool, u.file) }()
		beside, err := readsUntil(ctx, side, uploaded)
		if err != nil {
			return err
		}
		if round > 0 {
			results[readsAloneSide] = append(results[readsAloneSide], alone)
			results[readsBesideSide] = append(results[readsBesideSide], beside)
		}
		if err := removeOf(ctx, u.Fixture, tool); err != nil {
			return err
		}
	}
	return nil
}

// readsUntil reads until the upload has ended, and drops the turn during which it ended.
func readsUntil(ctx context.Context, side measure.Side, uploaded <-chan error) (measure.Sample, error) {
	sum := measure.Sample{}
	for {
		sample, err := measure.Turn(ctx, side, readsTurn)
		if err != nil {
			return sum, errors.Join(err, <-uploaded)
		}
		select {
		case err := <-uploaded:
			if sum.Operations == 0 { // a short upload
				sum = sample
			}
			return sum, err
		default:
		}
		sum.Operations += sample.Operations
		sum.Elapsed += sample.Elapsed
		sum.CPU += sample.CPU
	}
}

func (u *uploading) newTool() string {
	u.turns++
	return fmt.Sprintf("upload-%d", u.turns)
}

// timed does the work when earlier work has settled: the removal of findings leaves much garbage.
func (u *uploading) timed(ctx context.Context, results int, work func(context.Context) error) (measure.Sample, error) {
	if err := u.bench.Collected(ctx, u.Fixture); err != nil {
		return measure.Sample{}, err
	}
	sample, err := measure.Once(ctx, append(servers(u.Fixture), u.Facade.PID()), func(ctx context.Context) (int, error) {
		return results, work(ctx)
	})
	if err == nil {
		u.bench.Say("uploads: %d results in %s", results, seconds(sample.Elapsed))
	}
	return sample, err
}

// plugin imports the file.
func (u *uploading) plugin(ctx context.Context, tool string) error {
	_, err := u.importer.run(ctx, "--tool", tool)
	return err
}

// uploaded holds the members that are read from an upload.
type uploaded struct {
	ID, Status string
	Scans      []struct {
		Counts struct{ Created, Unchanged int }
	}
}

// upload uploads a file and returns when the upload is complete.
func (u *uploading) upload(ctx context.Context, tool string, file []byte) error {
	path := "/v2/repos/" + u.repository + "/projects/" + u.project + "/scans?category=Code&tool=" + tool
	upload, err := u.ask(ctx, http.MethodPost, path, bytes.NewReader(file))
	for err == nil && upload.Status == "running" {
		if err := sleep(ctx, uploadPoll); err != nil {
			return err
		}
		upload, err = u.ask(ctx, http.MethodGet, "/v2/uploads/"+upload.ID, http.NoBody)
	}
	if err == nil && upload.Status != "completed" {
		err = fmt.Errorf("the upload ended as %s", upload.Status)
	}
	return err
}

func (u *uploading) ask(ctx context.Context, method, path string, body io.Reader) (*uploaded, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+u.Facade.Address+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/sarif+json")
	content, err := bench.Ask(nil, request, u.token)
	if err != nil {
		return nil, err
	}
	upload := &uploaded{}
	return upload, json.Unmarshal(content, upload)
}
