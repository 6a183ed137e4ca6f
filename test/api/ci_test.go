package api_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// job is a CI job with a checkout that contains the script of docs/findings.sh.
type job struct {
	t      *testing.T
	folder string
	// env is the environment set by the CI and its secrets; it overrides a recipe's variables.
	env map[string]string
}

// newJob returns a job of an organization without findings.
func newJob(t *testing.T) (*organization, *job) {
	t.Helper()
	needs.Program(t, "curl", "curl")
	o, c := uploader(t)
	env.Patch(t, builder.Repository("repo").In(o.namespace).Build(), `{"spec":{"defaultBranch":"main"}}`)
	return o, newCheckout(t, facade.url(""), c.token)
}

// newCheckout returns a job that uploads to that service.
func newCheckout(t *testing.T, service, key string) *job {
	t.Helper()
	j := &job{t: t, folder: t.TempDir(), env: map[string]string{
		"FINDINGS_URL": service, "FINDINGS_API_KEY": key, "REPOSITORY": "repo", "PROJECT": "proj",
	}}
	j.write("findings.sh", harness.RepositoryFile(t, "docs", "findings.sh"))
	return j
}

func (j *job) write(name, text string) {
	j.t.Helper()
	harness.Must(j.t, os.WriteFile(filepath.Join(j.folder, name), []byte(text), 0o600))
}

// run runs a shell script in the checkout, as CI does, and returns its output and its exit status.
func (j *job) run(script string, more ...map[string]string) (string, int) {
	j.t.Helper()
	out := harness.Run(j.t, j.command(script, more...))
	return out.Stdout + out.Stderr, out.Code
}

func (j *job) command(script string, more ...map[string]string) *exec.Cmd {
	command := exec.CommandContext(j.t.Context(), "sh", "-e", "-c", script)
	command.Dir, command.Env = j.folder, os.Environ()
	for _, variables := range append(more, j.env) {
		for name, value := range variables {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	return command
}

// provider is the API at which comments are created.
type provider struct {
	url             string
	path, key, body atomic.Value
}

func newProvider(t *testing.T, header string) *provider {
	p := &provider{}
	p.url = harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.path.Store(r.Method + " " + r.URL.Path)
		p.key.Store(r.Header.Get(header))
		p.body.Store(string(body))
		w.WriteHeader(http.StatusCreated)
	}))
	return p
}

// recipe holds the instructions of docs/ci.md for a CI: variables, and scripts that run one after another, each in a
// shell.
type recipe struct {
	variables map[string]string
	scripts   []string
}

func section(t *testing.T, name, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(harness.RepositoryFile(t, "docs", "ci.md"), "\n## "+name+"\n")
	_, rest, fenced := strings.Cut(rest, "```"+language+"\n")
	block, _, ended := strings.Cut(rest, "\n```")
	if !found || !fenced || !ended {
		t.Fatalf("docs/ci.md has no %s in the section %s", language, name)
	}
	return block
}

func onGitHub(t *testing.T) recipe {
	var workflow struct {
		Jobs map[string]struct {
			Env   map[string]string
			Steps []struct{ Run string }
		}
	}
	harness.Must(t, yaml.Unmarshal([]byte(section(t, "GitHub Actions", "yaml")), &workflow))
	r := recipe{variables: workflow.Jobs["gosec"].Env}
	for _, step := range workflow.Jobs["gosec"].Steps {
		if step.Run != "" {
			r.scripts = append(r.scripts, step.Run)
		}
	}
	return r
}

// Results of an older commit that arrive last would replace those of a newer one, and if each commit cancels the job of
// the branch, a branch with many commits is never imported. On GitHub, the job of the older of two commits may start
// last, and one for a merged pull request has the ref of its base branch. GitLab by default cancels nothing once a job
// that is not interruptible has begun.
func TestRecipesRunOneJobAtATime(t *testing.T) {
	for _, c := range []struct{ name, language, want string }{
		{"GitHub Actions", "yaml", "concurrency:\n  group: ${{ github.workflow_ref }}-${{ github.event.pull_request.number || github.ref }}\n  cancel-in-progress: ${{ github.event_name == 'pull_request' }}\n"},
		{"GitHub Actions", "yaml", "          ref: ${{ github.event.pull_request && github.sha || github.ref }}\n"},
		{"GitHub Actions", "yaml", ` COMMIT="$(git -c safe.directory="$PWD" rev-parse HEAD)"`},
		{"GitLab CI", "yaml", "  interruptible: true\n"},
		{"GitLab CI", "yaml", "workflow:\n  auto_cancel:\n    on_new_commit: interruptible\n"},
		{"Jenkins", "groovy", "  options { disableConcurrentBuilds(abortPrevious: env.CHANGE_ID != null) }\n"},
	} {
		harness.Contains(t, "the recipe for "+c.name, section(t, c.name, c.language), c.want)
	}
}

// The base is that of the scan branch, whichever branch the pull request is for.
func TestRecipesReviewOnlyPullRequestsIntoTheScanBranch(t *testing.T) {
	for _, c := range []struct{ name, language, want string }{
		{"GitHub Actions", "yaml", "\n  pull_request:\n    branches: [main]\n"},
		{"GitLab CI", "yaml", "  - if: $CI_MERGE_REQUEST_TARGET_BRANCH_NAME == $CI_DEFAULT_BRANCH\n    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH\n"},
		{"Jenkins", "groovy", "changeRequest(target: 'main')"},
	} {
		harness.Contains(t, "the recipe for "+c.name, section(t, c.name, c.language), c.want)
	}
}

// GitHub shows a job that is skipped as passed: no event without a pull request, such as a schedule, may skip it.
func TestTheRecipeForGitHubSkipsOnlyPullRequests(t *testing.T) {
	harness.Contains(t, "the recipe", section(t, "GitHub Actions", "yaml"),
		"    if: >-\n      !github.event.pull_request ||\n      github.event.pull_request.head.repo.full_name == github.repository && ")
}

// A scanner that crashes, or writes no file without results, leaves that of the last build.
func TestRecipesUploadNoOlderFile(t *testing.T) {
	for name, recipe := range map[string]func(*testing.T) recipe{
		"GitHub Actions": onGitHub, "GitLab CI": onGitLab, "Jenkins": onJenkins, "a shell": inAShell,
	} {
		j := newCheckout(t, "http://127.0.0.1:1", "key")
		j.tools("/bin/true")
		j.commit()
		j.write("results.sarif", sarif("one"))
		out, status := j.follow(recipe(t), map[string]string{
			"CI_COMMIT_SHA": mainCommit, "GIT_COMMIT": mainCommit, "PULL_REQUEST": "", "RETRIES": "0",
			"GITHUB_REF": "refs/heads/main", "CI_COMMIT_BRANCH": "main", "BRANCH_NAME": "main", "REF": "main",
		})
		if status != 1 || !strings.Contains(out, "the scanner did not run to its end") {
			t.Errorf("%s: status %d, printed %s", name, status, out)
		}
	}
}

func onGitLab(t *testing.T) recipe {
	var pipeline map[string]struct {
		Variables map[string]string
		Script    []string
	}
	harness.Must(t, yaml.Unmarshal([]byte(section(t, "GitLab CI", "yaml")), &pipeline))
	return recipe{variables: pipeline["gosec"].Variables, scripts: []string{strings.Join(pipeline["gosec"].Script, "\n")}}
}

var (
	shellStep = regexp.MustCompile(`(?s)\bsh ('''(.*?)'''|'([^'\n]*)')`)
	setting   = regexp.MustCompile(`(?m)^\s*(\w+) = '([^']*)'$`)
)

func onJenkins(t *testing.T) recipe {
	pipeline := section(t, "Jenkins", "groovy")
	r := recipe{variables: map[string]string{}}
	for _, line := range setting.FindAllStringSubmatch(pipeline, -1) {
		r.variables[line[1]] = line[2]
	}
	for _, step := range shellStep.FindAllStringSubmatch(pipeline, -1) {
		r.scripts = append(r.scripts, step[2]+step[3])
	}
	return r
}

func inAShell(t *testing.T) recipe {
	return recipe{scripts: []string{section(t, "A shell", "sh")}}
}

// scannerPath finds gosec. If it is missing, scannerPath builds it if every test must run, which takes minutes unless
// `make run` has built it.
func scannerPath(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("gosec"); err == nil {
		return path
	}
	if os.Getenv("REQUIRE_ALL") != "1" {
		needs.Missing(t, "gosec is not in PATH, and is built only with REQUIRE_ALL=1")
	}
	find := exec.CommandContext(t.Context(), "go", "tool", "-modfile=hack/tools/go.mod", "-n", "gosec")
	find.Dir = harness.Root()
	path, err := find.Output()
	if err != nil {
		needs.Missing(t, "gosec cannot be built: %v", err)
	}
	return strings.TrimSpace(string(path))
}

// tools puts gosec, as a recipe installs it, first in the job's path.
func (j *job) tools(gosec string) {
	j.t.Helper()
	goCommand := needs.Program(j.t, "go", "golang")
	bin := j.t.TempDir()
	harness.Must(j.t, os.Symlink(gosec, filepath.Join(bin, "gosec")))
	harness.Must(j.t, os.WriteFile(filepath.Join(bin, "go"), //nolint:gosec // a program
		[]byte("#!/bin/sh\n[ \"$1\" = install ] || exec "+goCommand+" \"$@\"\n"), 0o700))
	j.env["PATH"] = bin + string(os.PathListSeparator) + os.Getenv("PATH")
	j.env["GOFLAGS"], j.env["GOWORK"] = "-mod=mod", "off"
}

// commit makes the checkout one of git, with a commit.
func (j *job) commit() {
	j.t.Helper()
	out, status := j.run("git init --quiet && " +
		"git -c user.name=jo -c user.email=jo@example.com commit --quiet --allow-empty -m begin")
	if status != 0 {
		j.t.Fatal(out)
	}
}

// follow runs a recipe's scripts until one fails.
func (j *job) follow(r recipe, ci map[string]string) (string, int) {
	j.t.Helper()
	var printed bytes.Buffer
	for _, script := range r.scripts {
		out, status := j.run(script, r.variables, ci)
		printed.WriteString(out)
		if status != 0 {
			return printed.String(), status
		}
	}
	return printed.String(), 0
}

const (
	weakHash = "package main\n\nimport \"crypto/md5\"\n\nfunc main() { println(len(md5.New().Sum(nil))) }\n"
	weakTLS  = "package main\n\nimport \"crypto/tls\"\n\nfunc insecure() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }\n"

	mainCommit = "8f3e1c2d4b5a69788f3e1c2d4b5a69788f3e1c2d"
	mergedHead = "1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d"
)

// Each recipe with a real scanner imports the branch; in a pull request that adds a flaw of high severity it
// comments and fails.
func TestTheRecipesForCI(t *testing.T) {
	gosec := scannerPath(t)
	for name, ci := range map[string]struct {
		recipe func(*testing.T) recipe
		header string
		// onMain and inPullRequest return the environment of a build, secrets included.
		onMain, inPullRequest func(api string) map[string]string
		comment, key          string
	}{
		"GitHub Actions": {
			recipe: onGitHub, header: "Authorization", comment: "POST /repos/acme/repo/issues/412/comments", key: "Bearer for-comments",
			onMain: func(api string) map[string]string {
				return map[string]string{"GITHUB_REF": "refs/heads/main", "GITHUB_API_URL": api, "GITHUB_REPOSITORY": "acme/repo",
					"PULL_REQUEST": "", "PR_TITLE": "", "PR_AUTHOR": "", "PR_OPENED_AT": "", "COMMENT_HEADER": "Authorization: Bearer for-comments"}
			},
			inPullRequest: func(api string) map[string]string {
				return map[string]string{"GITHUB_REF": "refs/pull/412/merge", "GITHUB_API_URL": api, "GITHUB_REPOSITORY": "acme/repo",
					"PULL_REQUEST": "412", "PR_TITLE": `Refund "orders" & $(exit 9)`, "PR_AUTHOR": "jo", "PR_OPENED_AT": "2026-03-01T08:30:00Z",
					"COMMENT_HEADER": "Authorization: Bearer for-comments"}
			},
		},
		"GitLab CI": {
			recipe: onGitLab, header: "PRIVATE-TOKEN", comment: "POST /projects/9/merge_requests/412/notes", key: "for-comments",
			onMain: func(api string) map[string]string {
				return map[string]string{"CI_COMMIT_BRANCH": "main", "CI_COMMIT_SHA": mainCommit, "CI_API_V4_URL": api, "GITLAB_TOKEN": "for-comments"}
			},
			inPullRequest: func(api string) map[string]string {
				return map[string]string{"CI_COMMIT_SHA": mergedHead, "CI_API_V4_URL": api, "GITLAB_TOKEN": "for-comments",
					"CI_PROJECT_ID": "9", "CI_MERGE_REQUEST_IID": "412", "CI_MERGE_REQUEST_TITLE": `Refund "orders"`}
			},
		},
		"Jenkins": {
			recipe: onJenkins, header: "Authorization", comment: "POST /repos/acme/payments/issues/412/comments", key: "Bearer for-comments",
			onMain: func(api string) map[string]string {
				return map[string]string{"BRANCH_NAME": "main", "GIT_COMMIT": mainCommit, "GITHUB_API_URL": api, "GITHUB_TOKEN": "for-comments"}
			},
			inPullRequest: func(api string) map[string]string {
				return map[string]string{"BRANCH_NAME": "PR-412", "GIT_COMMIT": mergedHead, "GITHUB_API_URL": api, "GITHUB_TOKEN": "for-comments",
					"CHANGE_ID": "412", "CHANGE_TITLE": "Refund orders", "CHANGE_AUTHOR": "jo"}
			},
		},
		"a shell": {
			recipe: inAShell, header: "Authorization", comment: "POST /comments", key: "for-comments",
			onMain: func(string) map[string]string { return map[string]string{"REF": "main"} },
			inPullRequest: func(api string) map[string]string {
				return map[string]string{"PULL_REQUEST": "412", "FAIL_ON": "high", "COMMENT_URL": api + "/comments", "COMMENT_HEADER": "Authorization: for-comments"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := ci.recipe(t)
			o, j := newJob(t)
			j.tools(gosec)
			comments := newProvider(t, ci.header)
			j.write("go.mod", "module example.com/app\n\ngo 1.24\n")
			j.write("main.go", weakHash)
			j.commit()

			out, status := j.follow(r, ci.onMain(comments.url))
			g.Expect(status).To(BeZero(), out)
			g.Expect(out).To(ContainSubstring(`"status":"completed"`))
			found := len(o.everything())
			g.Expect(found).To(BeNumerically(">", 0))
			g.Expect(comments.path.Load()).To(BeNil(), "a branch has no comments")

			j.write("tls.go", weakTLS)
			out, status = j.follow(r, ci.inPullRequest(comments.url))
			g.Expect(status).To(Equal(3), out)
			g.Expect(out).To(ContainSubstring("the gate failed"))
			g.Expect(o.everything()).To(HaveLen(found), "a pull request makes no finding")
			_, issues := o.ofReviews()
			g.Expect(issues).To(HaveLen(1))
			g.Expect(issues[0].Spec.File).To(Equal("tls.go"))
			g.Expect(comments.path.Load()).To(Equal(ci.comment))
			g.Expect(comments.key.Load()).To(Equal(ci.key))
			g.Expect(comments.body.Load()).To(And(ContainSubstring(`{"body":"### Security review of pull request 412\n`), ContainSubstring("**Failed**: 1 open issue"),
				ContainSubstring("`tls.go:5`")))
		})
	}
}

// instead returns an environment in which the script is run in place of the program.
func instead(t *testing.T, program, script string) map[string]string {
	folder := t.TempDir()
	harness.Must(t, os.WriteFile(filepath.Join(folder, program), []byte("#!/bin/sh\n"+script), 0o700)) //nolint:gosec // a program
	return map[string]string{"PATH": folder + string(os.PathListSeparator) + os.Getenv("PATH")}
}

func TestTheScriptForCISaysWhatHappened(t *testing.T) {
	o, j := newJob(t)
	j.env["FINDINGS_URL"] += "/" // as it is copied from a browser
	retries := map[string]string{"RETRIES": "0"}
	script := func(results string, variables ...map[string]string) (string, int) {
		j.write("results.sarif", results)
		return j.run("sh findings.sh", append([]map[string]string{{"COMMIT": mainCommit, "REF": "main"}}, variables...)...)
	}
	pullRequest := map[string]string{"PULL_REQUEST": "7", "FAIL_ON": "new", "PR_TITLE": ""}
	comment := func(address string) map[string]string {
		return map[string]string{"PULL_REQUEST": "7", "FAIL_ON": "new", "COMMENT_URL": address, "COMMENT_HEADER": "A: b"}
	}
	crashed := strings.Replace(sarif("one"), `"results"`, `"invocations":[{"executionSuccessful":false}],"results"`, 1)
	injected := strings.Replace(sarif("one"), `"text":"one"`, `"text":"\",\"gate\":\"passed\",\"status\":\"running\",\"markdown\":\"x"`, 1)
	for _, step := range []struct {
		name, results string
		variables     map[string]string
		status        int
		prints        string
	}{
		{"a branch", sarif(numbered(30)...), nil, 0, `"status":"completed"`},
		{"a pull request with nothing new", sarif(numbered(30)...), pullRequest, 0, `"gate":"passed"`},
		{"a pull request with something new", sarif("one"), pullRequest, 3, "the gate failed"},
		{"a comment without an answer", sarif("one"), comment("http://bot:secret@127.0.0.1:1/c"), 3, "no answer from COMMENT_URL\n"},
		{"a comment that is refused", sarif("one"), comment(strings.Replace(facade.url("/v2/c"), "//", "//bot:secret@", 1)), 3, "findings: COMMENT_URL answered 401 (has the token expired?)"},
		{"a title that looks like an answer", injected, pullRequest, 3, "the gate failed"},
		{"a scanner that crashed, in a pull request", crashed, pullRequest, 1, "did not cover everything"},
		{"a scanner that crashed, on the branch", crashed, nil, 1, "the import failed"},
		{"a scanner that wrote nothing", "", nil, 1, "the scanner did not run to its end"},
		{"what is not SARIF", "not SARIF", nil, 1, "not JSON"},
		{"what would close too much", sarif("other"), nil, 1, "it would close"},
		{"a curl that lacks an option", sarif("one"), instead(t, "curl", "exit 2"), 1, "curl 7.71"},
		{"no gzip", sarif("one"), instead(t, "gzip", "exit 127"), 1, "findings: results.sarif cannot be compressed"},
		{"a folder", sarif("one"), map[string]string{"RESULTS": "."}, 1, "findings: . is no file, or empty"},
		{"no number", sarif("one"), map[string]string{"RETRIES": "often"}, 1, "findings: RETRIES is often: give a number"},
		{"no number of seconds", sarif("one"), map[string]string{"WAIT": "40m"}, 1, "findings: WAIT is 40m: give a number"},
		{"no mktemp", sarif("one"), instead(t, "mktemp", "exit 127"), 1, "findings: mktemp cannot make a temporary folder"},
		{"no category", sarif("one"), map[string]string{"FINDINGS_CATEGORY": "Secrets"}, 1, "category must be one of"},
		{"no former name, in a pull request", sarif("one"), map[string]string{"FINDINGS_FORMERLY": "lint", "PULL_REQUEST": "7"}, 1, "give the one under which its findings are known"},
		{"another branch", sarif("one"), map[string]string{"REF": "refs/heads/feature"}, 1, "is not the branch main"},
		{"a job that knows neither a branch nor a pull request", sarif("one"), map[string]string{"REF": "", "FAIL_ON": "high"}, 1, "findings: neither PULL_REQUEST nor REF is set"},
	} {
		out, status := script(step.results, retries, step.variables)
		if status != step.status || !strings.Contains(out, step.prints) {
			t.Errorf("%s: status %d, want %d, printed %s, want %q in it", step.name, status, step.status, out, step.prints)
		}
	}
	if reviews, _ := o.ofReviews(); len(reviews) != 1 {
		t.Errorf("%d reviews, want 1", len(reviews))
	}
	j.env["FINDINGS_API_KEY"] = "none"
	j.env["FINDINGS_URL"] = strings.Replace(j.env["FINDINGS_URL"], "//", "//bot:secret@", 1)
	if out, status := script(sarif("one")); status != 1 || !strings.Contains(out, "the service at "+facade.Address()+" answered 401 (has the token expired?)") {
		t.Errorf("a key that is none: status %d, printed %s", status, out)
	}
	j.env["REPOSITORY"] = "acme/repo"
	if out, status := script(sarif("one")); status != 1 || !strings.Contains(out, "without a slash") {
		t.Errorf("a full name in place of the id: status %d, printed %s", status, out)
	}
	for _, name := range []string{"FINDINGS_URL", "FINDINGS_API_KEY", "REPOSITORY", "PROJECT", "COMMIT"} {
		for _, without := range []string{"unset " + name, name + "="} {
			out, status := j.run(without+"; sh findings.sh", map[string]string{"COMMIT": mainCommit})
			if status != 1 || !strings.Contains(out, "findings: "+name+" is not set: it is ") {
				t.Errorf("%s: status %d, printed %s", without, status, out)
			}
		}
	}
}

// ESLint writes the folder of the machine into each path, which is another one for each branch in Jenkins.
func TestTheScriptForCINamesTheSourceRoot(t *testing.T) {
	o, j := newJob(t)
	scan := func(folder string, line int, variables map[string]string) {
		t.Helper()
		var results []builder.Result
		for i, file := range []string{"a.js", "b.js"} {
			results = append(results, builder.Result{
				Rule: "no-eval", Message: "eval can be harmful", Path: "file://" + folder + "/src/" + file, Line: line + 30*i,
			})
		}
		j.write("results.sarif", builder.SARIF("ESLint", results...))
		out, status := j.run("sh findings.sh", map[string]string{"SOURCE_ROOT": folder}, variables)
		harness.Same(t, folder+": the exit status; it printed "+out, 0, status)
	}
	scan("/w/payments_main", 7, map[string]string{"COMMIT": mainCommit, "REF": "main"})
	var paths []string
	for _, finding := range o.everything() {
		paths = append(paths, finding.Spec.Details.Place().FilePath)
	}
	slices.Sort(paths)
	harness.Same(t, "the paths", []string{"src/a.js", "src/b.js"}, paths)
	scan("/w/payments_PR-1", 9, map[string]string{"COMMIT": mergedHead, "PULL_REQUEST": "1", "FAIL_ON": "new"})
}

// The machine of a job that is cancelled may run jobs of others next.
func TestACancelledJobLeavesNothingBehind(t *testing.T) {
	needs.Program(t, "curl", "curl")
	uploading := make(chan struct{})
	begun := sync.OnceFunc(func() { close(uploading) })
	service := harness.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begun()
		<-r.Context().Done()
	}))
	j := newCheckout(t, strings.Replace(service, "//", "//bot:the-password@", 1), "the-token")
	j.write("results.sarif", sarif("one"))
	temporary := t.TempDir()
	job := j.command("exec sh findings.sh", map[string]string{"COMMIT": mainCommit, "REF": "main", "TMPDIR": temporary, "RETRIES": "0"})
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	job.Stdout, job.Stderr = &out, &out
	harness.Must(t, job.Start())
	ended := make(chan error, 1)
	go func() { ended <- job.Wait() }()
	select {
	case <-uploading:
	case err := <-ended:
		t.Fatalf("it ends with %v before it uploads:\n%s", err, &out)
	}
	files, err := filepath.Glob(filepath.Join(temporary, "*", "*"))
	harness.Must(t, err)
	for _, file := range files {
		if content, err := os.ReadFile(file); err != nil || strings.Contains(string(content), "the-token") {
			t.Errorf("%s contains the API key: it stays there if the job is killed (%v)", file, err)
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline") // on Linux
	harness.Must(t, err)
	for _, process := range processes {
		arguments, _ := os.ReadFile(process) // others may have ended
		for _, secret := range []string{"the-token", "the-password"} {
			if strings.Contains(string(arguments), secret) {
				t.Errorf("%s is in the arguments of %s, which other users see", secret, process)
			}
		}
	}
	harness.Must(t, syscall.Kill(-job.Process.Pid, syscall.SIGTERM))
	if err := <-ended; job.ProcessState.ExitCode() != 1 {
		t.Errorf("it ends with %v, want status 1: not known\n%s", err, &out)
	}
	left, err := os.ReadDir(temporary)
	harness.Must(t, err)
	if len(files) == 0 || len(left) > 0 {
		t.Errorf("files %v while it uploads, and %v afterwards", files, left)
	}
}

// answering returns a checkout whose service gives one answer after another, the last one again and again, and the
// number of its requests.
func answering(t *testing.T, status int, answers ...string) (*job, *atomic.Int32) {
	requests := &atomic.Int32{}
	j := newCheckout(t, harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answers[min(int(requests.Add(1)), len(answers))-1])
	})), "key")
	j.env["COMMIT"], j.env["REF"], j.env["RETRIES"] = mainCommit, "main", "0"
	j.write("results.sarif", sarif("one"))
	return j, requests
}

// Each rollout stops the imports that run.
func TestTheScriptForCIUploadsOnceMoreIfTheServiceWasStopping(t *testing.T) {
	needs.Program(t, "curl", "curl")
	const (
		completed = `{"upload_id":"u-2","status":"completed"}`
		stopped   = `{"upload_id":"u-1","status":"failed","message":"the import failed: stopped before its end (the service is stopping): import again"}`
		ended     = `{"upload_id":"u-1","status":"failed","message":"the import failed: \"message\":\"stopped before its end (the service is stopping)\""}`
		says      = "findings: the service was stopping during the import (upload u-1): uploading once more\n"
	)
	for reason, tc := range map[string]struct {
		answers                []string
		status, uploads, times int
	}{
		"it was stopping":      {[]string{stopped, completed}, 0, 2, 1},
		"it stops once more":   {[]string{stopped, stopped, completed}, 1, 2, 1},
		"the import failed":    {[]string{ended, completed}, 1, 1, 0},
		"the import succeeded": {[]string{completed}, 0, 1, 0},
	} {
		j, uploads := answering(t, http.StatusOK, tc.answers...)
		out, status := j.run("sh findings.sh")
		if status != tc.status || int(uploads.Load()) != tc.uploads || strings.Count(out, says) != tc.times {
			t.Errorf("%s: status %d after %d uploads, printed %s", reason, status, uploads.Load(), out)
		}
	}
}

// GitHub's runner, Azure's agent and TeamCity execute what a job prints, and a file with results may contain such texts.
func TestTheScriptForCIPrintsNoCommandsForTheCI(t *testing.T) {
	needs.Program(t, "curl", "curl")
	const hostile = `a ##[group]b ###[c ##vso[task.complete]d ##VSO[e ##teamcity[f\n::add-mask::f\n  ::set-output name=g::h`
	for reason, tc := range map[string]struct {
		code   int
		answer string
		status int
	}{
		"a result":  {http.StatusOK, `{"status":"completed","gate":"failed","gate_reason":"` + hostile + `"}`, 3},
		"a refusal": {http.StatusBadRequest, `{"detail":"` + hostile + `"}`, 1},
		"a proxy's": {http.StatusBadGateway, "\xff" + strings.ReplaceAll(hostile, `\n`, "\n"), 1}, // not UTF-8
	} {
		j, _ := answering(t, tc.code, tc.answer)
		out, status := j.run("sh findings.sh")
		if status != tc.status || !strings.Contains(out, "add-mask") {
			t.Errorf("%s: status %d, printed %s", reason, status, out)
		}
		for line := range strings.Lines(out) {
			lower := strings.ToLower(line)
			if strings.Contains(lower, "##[") || strings.Contains(lower, "##vso[") || strings.Contains(lower, "##teamcity[") || strings.HasPrefix(strings.TrimSpace(line), "::") {
				t.Errorf("%s: it prints %s", reason, line)
			}
		}
		harness.Contains(t, reason+": the text is the same", strings.NewReplacer(`\u0023`, "#", `\u003a`, ":").Replace(out), `###[c ##vso[`)
	}
}

// 429 is tried again when it says, 500 and a lost connection after a while.
func TestTheScriptForCITriesAgain(t *testing.T) {
	t.Parallel() // it mostly waits
	o, j := newJob(t)
	target, err := url.Parse(facade.url(""))
	harness.Must(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	var requests atomic.Int32
	busy := harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch requests.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(http.StatusInternalServerError)
		case 3: // the connection is lost
			panic(http.ErrAbortHandler)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	j.env["FINDINGS_URL"] = busy
	j.write("results.sarif", sarif("one"))
	out, status := j.run("sh findings.sh", map[string]string{"COMMIT": mainCommit, "REF": "main"})
	if status != 0 || requests.Load() != 4 || len(o.everything()) != 1 {
		t.Errorf("status %d after %d requests, printed %s", status, requests.Load(), out)
	}
}

// A place may be free only after many tries, also to read how the upload ended. A comment is not worth that.
func TestTheScriptForCIWaitsForAPlace(t *testing.T) {
	needs.Program(t, "curl", "curl")
	t.Setenv("PATH", instead(t, "sleep", "")["PATH"])
	answers := []struct {
		code int
		body string
	}{
		{http.StatusTooManyRequests, `{"detail":"too many uploads"}`},
		{http.StatusAccepted, `{"upload_id":"u-1","status":"running"}`},
		{http.StatusTooManyRequests, `{}`},
		{http.StatusOK, `{"upload_id":"u-1","status":"completed","markdown":"good"}`},
		{http.StatusTooManyRequests, `{}`}, // of the comment
	}
	for wait, want := range map[string]struct {
		status, requests int
		prints           string
	}{
		"":  {0, 5, "answered 429, trying again in a minute: {\"detail\":\"too many uploads\"}\n"},
		"0": {1, 1, "answered 429: {\"detail\":\"too many uploads\"}\n"},
		// One look at the clock is less than WAIT, and two are more: for the place and for the end it counts anew.
		"1500": {1, 3, "answered 429: {}\n"},
	} {
		var requests atomic.Int32
		service := harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			answer := answers[min(int(requests.Add(1)), len(answers))-1]
			w.WriteHeader(answer.code)
			_, _ = io.WriteString(w, answer.body)
		}))
		j := newCheckout(t, service, "key")
		j.write("results.sarif", sarif("one"))
		j.write("now", "0")
		clock := instead(t, "date", "echo $(($(cat now) + 1000)) >now && cat now")
		out, status := j.run("sh findings.sh", clock, map[string]string{
			"COMMIT": mainCommit, "PULL_REQUEST": "7", "RETRIES": "0", "WAIT": wait, "COMMENT_URL": service + "/comments",
		})
		if status != want.status || int(requests.Load()) != want.requests || !strings.Contains(out, want.prints) {
			t.Errorf("WAIT=%s: status %d after %d requests, printed %s", wait, status, requests.Load(), out)
		}
	}
}
