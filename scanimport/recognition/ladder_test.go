package recognition

import (
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// ev returns evidence at a location; the options add more.
func ev(rule, path string, line int32, options ...func(*Evidence)) Evidence {
	e := Evidence{Rule: rule, Path: path, Line: line}
	for _, o := range options {
		o(&e)
	}
	return e
}

func hash(s string) func(*Evidence)    { return func(e *Evidence) { e.Fingerprint = s } }
func code(s string) func(*Evidence)    { return func(e *Evidence) { e.Snippet = s } }
func masked(s string) func(*Evidence)  { return func(e *Evidence) { e.Masked = s } }
func message(s string) func(*Evidence) { return func(e *Evidence) { e.Message = s } }
func in(s string) func(*Evidence)      { return func(e *Evidence) { e.Resource = s } }
func of(s string) func(*Evidence)      { return func(e *Evidence) { e.Package = s } }
func purl(s string) func(*Evidence)    { return func(e *Evidence) { e.PURL = s } }
func column(n int32) func(*Evidence)   { return func(e *Evidence) { e.Column = n } }
func suppressed(e *Evidence)           { e.Suppressed = true }
func pkg(name, version string) func(*Evidence) {
	return func(e *Evidence) { e.Vulnerability, e.Package, e.Version = "CVE-1", name, version }
}

// noted returns evidence of one rule and message at those lines, and coded with different code, too.
func noted(lines ...int32) (out []Evidence) {
	for _, line := range lines {
		out = append(out, ev("R", "a", line, message("m")))
	}
	return out
}

func coded(lines ...int32) []Evidence {
	out := noted(lines...)
	for i := range out {
		out[i].Snippet = "code " + strconv.Itoa(i)
	}
	return out
}

// as returns findings with that evidence, as set changes them.
func as(set func(*Known), list []Evidence) []Known {
	out := make([]Known, len(list))
	for i := range list {
		out[i].Evidence = list[i]
		set(&out[i])
	}
	return out
}

func open(list ...Evidence) []Known   { return as(func(*Known) {}, list) }
func closed(list ...Evidence) []Known { return as(func(k *Known) { k.Closed = true }, list) }
func legacy(list ...Evidence) []Known { return as(func(k *Known) { k.Legacy = true }, list) }

// written returns findings that the second of two interrupted imports wrote.
func written(list ...Evidence) []Known {
	return as(func(k *Known) { k.Unfinished, k.CutOff = 2, true }, list)
}

// added returns findings that the second of two interrupted imports created.
func added(list ...Evidence) []Known {
	return as(func(k *Known) { k.Unfinished, k.CutOff, k.Added = 2, true, true }, list)
}

// muted returns the findings with a decision.
func muted(known []Known) []Known {
	for i := range known {
		known[i].Decision = "muted"
	}
	return known
}

// one is a case: want holds for each result the index of its finding, or -1.
type one struct {
	reason string
	// rung is the rung that the case needs; empty: the case is about what is not paired.
	rung    Rung
	known   []Known
	results []Evidence
	named   []Match
	want    []int
	doubts  int
}

var cases = map[string]one{
	"nothing changed": {"the usual case, next to a closed one that was at another line", Unchanged,
		append(closed(ev("R", "a", 9, message("m"))), open(ev("R", "a", 5, message("m")))...), []Evidence{ev("R", "a", 5, message("m"))}, nil, []int{1}, 0},
	"back again": {"a closed finding is reopened, without code too", Unchanged,
		closed(ev("R", "", 0)), []Evidence{ev("R", "", 0)}, nil, []int{0}, 0},
	"earlier version": {"it stored nothing but the name", Earlier,
		open(ev("R", "a", 5)), []Evidence{ev("R", "a", 90, message("m"))}, []Match{{Result: 0, Known: 0}}, []int{0}, 0},
	"scanner's fingerprint": {"code and message are others, and far away", Fingerprint,
		open(ev("R", "a", 5, hash("h"), code("x"), message("m"))), []Evidence{ev("R", "a", 500, hash("h"), code("y"), message("n"))}, nil, []int{0}, 0},
	"package raised": {"two packages with one vulnerability in one file; versions and messages are others", Package,
		open(ev("R", "lock", 0, pkg("ssl", "1"), message("a")), ev("R", "lock", 0, pkg("crypto", "1"), message("b"))),
		[]Evidence{ev("R2", "lock", 0, pkg("crypto", "2"), message("c")), ev("R2", "lock", 0, pkg("ssl", "2"), message("d"))}, nil, []int{1, 0}, 0},
	"resource": {"the resources are further down, one at the place of the other", Resource,
		open(ev("R", "main.tf", 5, in("s3.a"), message("m")), ev("R", "main.tf", 50, in("s3.b"), message("m"))),
		[]Evidence{ev("R", "main.tf", 50, in("s3.a"), message("m")), ev("R", "main.tf", 80, in("s3.b"), message("m"))}, nil, []int{0, 1}, 0},
	"same code": {"reworded, and the code has moved over another's line", Snippet,
		open(ev("R", "a", 5, code("x"), message("m")), ev("R", "a", 9, code("y"), message("m"))),
		[]Evidence{ev("R", "a", 9, code("x"), message("n")), ev("R", "a", 13, code("y"), message("n"))}, nil, []int{0, 1}, 0},
	"file renamed": {"no code, but rule, line and message of all results agree", File,
		open(ev("R", "a", 5, message("m")), ev("S", "a", 9, message("n"))),
		[]Evidence{ev("S", "b", 9, message("n")), ev("R", "b", 5, message("m"))}, nil, []int{1, 0}, 0},
	"suppressed ones above, and lines are inserted": {"they had no finding before, unless the nearer one is suppressed now", "",
		open(ev("R", "a", 30, code("x"))),
		[]Evidence{ev("R", "a", 16, code("x"), suppressed), ev("R", "a", 26, code("x"), suppressed), ev("R", "a", 36, code("x"))},
		nil, []int{-1, -1, 0}, 1},
	"suppressed by a comment above, and written anew": {"the new one may be another", "",
		open(ev("R", "a", 30, code("x"))),
		[]Evidence{ev("R", "a", 31, code("x"), suppressed), ev("R", "a", 100, code("x"))}, nil, []int{-1, 0}, 1},
	"suppressed by comments above, and written anew twice": {"the new ones may be others", "",
		open(ev("R", "a", 30, code("x")), ev("R", "a", 50, code("x"))),
		[]Evidence{ev("R", "a", 31, code("x"), suppressed), ev("R", "a", 52, code("x"), suppressed), ev("R", "a", 100, code("x")),
			ev("R", "a", 170, code("x"))}, nil, []int{-1, -1, 0, 1}, 2},
	"suppressed where they are, and written anew": {"the new ones may be others", "",
		open(ev("R", "a", 20, code("x"), column(5)), ev("R", "a", 30, code("x"), column(5))),
		[]Evidence{ev("R", "a", 20, code("x"), column(5), suppressed), ev("R", "a", 30, code("x"), column(5), suppressed),
			ev("R", "a", 120, code("x"), column(5)), ev("R", "a", 130, code("x"), column(9))}, nil, []int{-1, -1, 0, 1}, 2},
	"suppressed where they are, and written anew three times": {"the new ones may be others", "",
		open(ev("R", "a", 20, code("x"), column(1)), ev("R", "a", 30, code("x"), column(1))),
		[]Evidence{ev("R", "a", 20, code("x"), column(1), suppressed), ev("R", "a", 30, code("x"), column(1), suppressed),
			ev("R", "a", 120, code("x"), column(1)), ev("R", "a", 120, code("x"), column(2)), ev("R", "a", 130, code("x"), column(1))},
		nil, []int{-1, -1, 0, -1, 1}, 2},
	"suppressed in another file, and copied to a third": {"either may be the finding", "",
		open(ev("R", "a", 30, code("x"), hash("h"))),
		[]Evidence{ev("R", "b", 31, code("x"), hash("h"), suppressed), ev("R", "c", 100, code("x"), hash("h"))}, nil, []int{-1, 0}, 1},
	"code that some findings of the rule have not": {"it tells the others apart", "",
		open(ev("R", "a", 10, code("a"), message("m")), ev("R", "a", 50, message("m")), ev("R", "a", 60, message("m"))),
		[]Evidence{ev("R", "a", 10, code("a"), message("m")), ev("R", "a", 200, code("b"), message("m")),
			ev("R", "a", 210, code("c"), message("m"))}, nil, []int{0, -1, -1}, 0},
	"code that closed findings of the rule have not": {"it tells the others apart", "",
		append(open(ev("R", "a", 10, code("a"), message("m"))), closed(ev("R", "a", 50, message("m")), ev("R", "a", 60, message("m")))...),
		[]Evidence{ev("R", "a", 10, code("a"), message("m")), ev("R", "a", 200, code("b"), message("m")),
			ev("R", "a", 210, code("c"), message("m"))}, nil, []int{0, -1, -1}, 0},
	"suppressed ones above, and one of them comes to the line of the finding": {"it may be that one, suppressed now", "",
		open(ev("R", "a", 30, code("x"))),
		[]Evidence{ev("R", "a", 20, code("x"), suppressed), ev("R", "a", 30, code("x"), suppressed), ev("R", "a", 40, code("x"))},
		nil, []int{-1, -1, 0}, 1},
	"suppressed ones above without code, and one of them comes to the line of the finding": {"another rule moved as it did", "",
		open(ev("R", "a", 68, message("m"), column(17)), ev("S", "a", 90, message("n"))),
		[]Evidence{ev("R", "a", 66, message("m"), column(17), suppressed), ev("R", "a", 67, message("m"), column(17), suppressed),
			ev("R", "a", 68, message("m"), column(17), suppressed), ev("R", "a", 69, message("m"), column(17), suppressed),
			ev("R", "a", 70, message("m"), column(17)), ev("S", "a", 92, message("n"))}, nil, []int{-1, -1, -1, -1, 0, 1}, 0},
	"suppressed one above, and each comes to the line of the next": {"or the first is suppressed now, and the last is new", "",
		open(ev("R", "a", 20, code("x")), ev("R", "a", 30, code("x"))),
		[]Evidence{ev("R", "a", 20, code("x"), suppressed), ev("R", "a", 30, code("x")), ev("R", "a", 40, code("x"))},
		nil, []int{-1, 0, 1}, 2},
	"suppressed one above, and all move by fewer lines": {"it was suppressed from the beginning", "",
		open(ev("R", "a", 30, code("x")), ev("R", "a", 50, code("x"))),
		[]Evidence{ev("R", "a", 16, code("x"), suppressed), ev("R", "a", 36, code("x")), ev("R", "a", 56, code("x"))},
		nil, []int{-1, 0, 1}, 0},
	"suppressed at its line, and two more come": {"it did not move", "",
		open(ev("R", "a", 30, code("x"))),
		[]Evidence{ev("R", "a", 20, code("x")), ev("R", "a", 30, code("x"), suppressed), ev("R", "a", 50, code("x"))},
		nil, []int{-1, 0, -1}, 0},
	"suppressed one of several that moved differently": {"the others stay in order, unless it is one of them", "",
		open(ev("R", "a", 30, code("x")), ev("R", "a", 50, code("x"))),
		[]Evidence{ev("R", "a", 26, code("x"), suppressed), ev("R", "a", 45, code("x")), ev("R", "a", 70, code("x"))},
		nil, []int{-1, 0, 1}, 2},
	"suppressed one that moved less than the other": {"each has its own result, and no line confirms it", "",
		open(ev("R", "a", 10, message("m")), ev("R", "a", 100, message("m"), suppressed)),
		[]Evidence{ev("R", "a", 60, message("m")), ev("R", "a", 130, message("m"), suppressed)}, nil, []int{0, 1}, 2},
	"suppressed at the same time as it moves": {"more pairs have that distance", "",
		open(ev("R", "a", 10, code("x")), ev("R", "a", 20, code("x")), ev("R", "a", 50, code("x"))),
		[]Evidence{ev("R", "a", 13, code("x")), ev("R", "a", 23, code("x"), suppressed), ev("R", "a", 53, code("x"))},
		nil, []int{0, 1, 2}, 0},
	"suppressed one on a line whose columns move": {"it may be the finding", "",
		open(ev("R", "a", 1, code("x"), column(10))),
		[]Evidence{ev("R", "a", 1, code("x"), column(13)), ev("R", "a", 1, code("x"), column(90), suppressed)}, nil, []int{0, -1}, 1},
	"file with suppressed results renamed": {"those without a finding were suppressed from the beginning", "",
		open(ev("R", "a", 5, message("m")), ev("R", "a", 7, message("m"), suppressed), ev("S", "a", 20, message("n"))),
		[]Evidence{ev("R", "b", 5, message("m")), ev("R", "b", 7, message("m"), suppressed), ev("R", "b", 9, message("m"), suppressed),
			ev("S", "b", 20, message("n"))}, nil, []int{0, 1, -1, 2}, 0},
	"file renamed, and suppressed at the same time": {"all its results agree", "",
		open(ev("R", "a", 5, message("m")), ev("S", "a", 20, message("n"))),
		[]Evidence{ev("R", "b", 5, message("m"), suppressed), ev("S", "b", 20, message("n"))}, nil, []int{0, 1}, 0},
	"file renamed, and one suppressed before is gone": {"it is another file", "",
		open(ev("R", "a", 5, message("m")), ev("S", "a", 20, message("n"), suppressed)),
		[]Evidence{ev("R", "b", 5, message("m")), ev("R", "b", 9, message("m"), suppressed)}, nil, []int{-1, -1}, 0},
	"file renamed, and another is like it without its suppressed result": {"it may be either", "",
		open(ev("R", "a", 5, message("m"))),
		[]Evidence{ev("R", "b", 5, message("m")), ev("R", "c", 5, message("m")), ev("S", "c", 9, message("m"), suppressed)},
		nil, []int{-1, -1, -1}, 0},
	"folder renamed, with suppressed results in some of its files": {"the names of the files tell which is which", "",
		open(ev("R", "a/x", 5, message("m")), ev("R", "a/y", 5, message("m")), ev("R", "a/z", 7, message("m"))),
		[]Evidence{ev("R", "b/y", 5, message("m")), ev("R", "b/x", 5, message("m")), ev("S", "b/x", 9, message("m"), suppressed),
			ev("R", "b/z", 7, message("m"))}, nil, []int{1, 0, -1, 2}, 0},
	"moved, and suppressed code like it is in the new file": {"it was suppressed in the old file too", "",
		open(ev("R", "a", 5, code("x"), message("m"))),
		[]Evidence{ev("R", "b", 9, code("x"), message("m")), ev("R", "b", 50, code("x"), message("m"), suppressed)}, nil, []int{0, -1}, 1},
	"suppressed and moved, and code like it comes unsuppressed": {"the suppressed one was suppressed before", "",
		open(ev("R", "a", 5, code("x"), message("m"), suppressed)),
		[]Evidence{ev("R", "b", 5, code("x"), message("m")), ev("R", "b", 50, code("x"), message("m"), suppressed)}, nil, []int{-1, 0}, 1},
	"file of another resource": {"the first was deleted with its problems, or a module is named after its file", File,
		open(ev("R", "a", 1, in("s3.a"), message("m")), ev("S", "a", 1, in("s3.a"), message("n"))),
		[]Evidence{ev("R", "b", 1, in("s3.b"), message("m")), ev("S", "b", 1, in("s3.b"), message("n"))}, nil, []int{0, 1}, 2},
	"file with another name of one resource": {"the others do not lose their decisions", File,
		open(ev("R", "a", 1, in("s3.a"), message("m")), ev("S", "a", 2, in("s3.b"), message("n")), ev("T", "a", 3, message("n"))),
		[]Evidence{ev("R", "b", 1, in("s3.a"), message("m")), ev("S", "b", 2, in("s3.c"), message("n")), ev("T", "b", 3, message("n"))}, nil, []int{0, 1, 2}, 3},
	"renamed file of two resources at one line": {"fingerprints that cover the path change their order", File,
		open(ev("R", "dev/m", 1, in("s3.a"), hash("f1"), message("m")), ev("R", "dev/m", 1, in("s3.b"), hash("f2"), message("m"))),
		[]Evidence{ev("R", "stg/m", 1, in("s3.a"), hash("z1"), message("m")), ev("R", "stg/m", 1, in("s3.b"), hash("y1"), message("m"))}, nil, []int{0, 1}, 2},
	"columns move, and one of a line is gone": {"as a line of a bundle that is built anew", Snippet,
		open(ev("R", "a", 1, code("x"), column(100)), ev("R", "a", 1, code("x"), column(900)), ev("R", "a", 1, code("x"), column(2000))),
		[]Evidence{ev("R", "a", 1, code("x"), column(890)), ev("R", "a", 1, code("x"), column(1990))}, nil, []int{0, 1}, 2},
	"columns move, and one of a line without code is gone": {"the other may be either", Shift,
		open(ev("R", "a", 1, message("m"), column(100)), ev("R", "a", 1, message("m"), column(900)), ev("R", "a", 1, message("m"), column(2000))),
		[]Evidence{ev("R", "a", 1, message("m"), column(890)), ev("R", "a", 1, message("m"), column(1990))}, nil, []int{0, 1}, 2},
	"two at one place get other URLs": {"nothing tells which is the muted one", "",
		append(muted(open(ev("R", "lock", 5, pkg("ssl", "")))), open(ev("R", "lock", 5, pkg("ssl", "")))...),
		[]Evidence{ev("R", "lock", 5, pkg("ssl", ""), purl("npm/ssl")), ev("R", "lock", 5, pkg("ssl", ""), purl("pypi/ssl"))}, nil, []int{0, 1}, 2},
	"two at one place get other columns": {"nothing tells which is the muted one", "",
		append(muted(open(ev("R", "a", 5, message("m")))), open(ev("R", "a", 5, message("m")))...),
		[]Evidence{ev("R", "a", 5, message("m"), column(3)), ev("R", "a", 5, message("m"), column(30))}, nil, []int{0, 1}, 2},
	"columns of a line with code move with it, and one is gone": {"the other may be either", Snippet,
		open(ev("R", "a", 5, code("x"), column(100)), ev("R", "a", 5, code("x"), column(900)), ev("R", "a", 5, code("x"), column(2000)), ev("R", "a", 9, code("x"), column(3))),
		[]Evidence{ev("R", "a", 8, code("x"), column(890)), ev("R", "a", 8, code("x"), column(1990)), ev("R", "a", 12, code("x"), column(5))}, nil, []int{0, 1, 3}, 2},
	"the column of one without code moves, and another rule is gone": {"there is no other that it can be", "",
		open(ev("R", "a", 1, message("m"), column(100)), ev("S", "a", 1, message("m"), column(200))),
		[]Evidence{ev("R", "a", 1, message("m"), column(90))}, nil, []int{0}, 0},
	"columns move, and other code on the line is gone": {"the code tells them apart", "",
		open(ev("R", "a", 1, code("x"), message("m"), column(1)), ev("R", "a", 1, code("y"), message("m"), column(10))),
		[]Evidence{ev("R", "a", 1, code("x"), message("m"), column(5))}, nil, []int{0}, 0},
	"columns move, and other code has come on the line": {"the code tells them apart", "",
		open(ev("R", "a", 1, code("x"), message("m"), column(1))),
		[]Evidence{ev("R", "a", 1, code("y"), message("m"), column(1)), ev("R", "a", 1, code("x"), message("m"), column(9))}, nil, []int{-1, 0}, 0},
	"columns move, and another resource of the line is gone": {"as in a template of one line", "",
		open(ev("R", "a", 1, in("s3.a"), message("m"), column(100)), ev("R", "a", 1, in("s3.b"), message("m"), column(900))),
		[]Evidence{ev("R", "a", 1, in("s3.b"), message("m"), column(890))}, nil, []int{1}, 0},
	"columns move, and another package of the line is gone": {"as in a lock file of one line", "",
		open(ev("R", "a", 1, of("core"), message("m"), column(1)), ev("R", "a", 1, of("api"), message("m"), column(10))),
		[]Evidence{ev("R", "a", 1, of("api"), message("m"), column(5))}, nil, []int{1}, 0},
	"closed, and its column moved": {"the open one of the line has its own result", "",
		append(open(ev("R", "a", 5, message("m"), column(10))), closed(ev("R", "a", 5, message("m"), column(30)))...),
		[]Evidence{ev("R", "a", 5, message("m"), column(10)), ev("R", "a", 5, message("m"), column(31))}, nil, []int{0, 1}, 0},
	"one of two closed is back, and its column moved": {"it may be either", "",
		append(open(ev("R", "a", 5, message("m"), column(10))),
			closed(ev("R", "a", 5, message("m"), column(30)), ev("R", "a", 5, message("m"), column(50)))...),
		[]Evidence{ev("R", "a", 5, message("m"), column(10)), ev("R", "a", 5, message("m"), column(47))}, nil, []int{0, 1}, 1},
	"the line of a closed one is back, and all lines move": {"the open one may be either", "",
		append(open(ev("R", "a", 30, code("x"))), closed(ev("R", "a", 10, code("x")))...),
		[]Evidence{ev("R", "a", 25, code("x")), ev("R", "a", 45, code("x"))}, nil, []int{0, 1}, 2},
	"one where a closed one was, and the open one like it goes": {"it may be the closed one, back in its place", "",
		append(open(ev("R", "a", 30, code("x"))), closed(ev("R", "a", 10, code("x")))...),
		[]Evidence{ev("R", "a", 10, code("x"))}, nil, []int{0}, 1},
	"an open one moves, and a closed one like it was elsewhere": {"nothing is in the place of the closed one", "",
		append(open(ev("R", "a", 30, code("x"))), closed(ev("R", "a", 10, code("x")))...),
		[]Evidence{ev("R", "a", 35, code("x"))}, nil, []int{0}, 0},
	"two closed ones are back, and their lines moved": {"there are as many as before", "",
		closed(ev("R", "a", 10, code("x")), ev("R", "a", 30, code("x"))),
		[]Evidence{ev("R", "a", 12, code("x")), ev("R", "a", 45, code("x"))}, nil, []int{0, 1}, 0},
	"muted, closed, and its code comes at another line": {"it may have been written anew, for another purpose", "",
		muted(closed(ev("R", "a", 10, code("x"), message("m")))), []Evidence{ev("R", "a", 300, code("x"), message("m"))}, nil, []int{0}, 1},
	"muted, closed, and its fingerprint comes at another line": {"it covers only that line", "",
		muted(closed(ev("R", "a", 10, hash("h"), message("m")))), []Evidence{ev("R", "a", 300, hash("h"), message("m"))}, nil, []int{0}, 1},
	"muted, closed, and back at its line, reworded": {"code and line are the same", "",
		muted(closed(ev("R", "a", 10, code("x"), message("m")))), []Evidence{ev("R", "a", 10, code("x"), message("n"))}, nil, []int{0}, 0},
	"muted, closed, and back with another one that moved by as many lines": {"both confirm that lines were inserted", "",
		append(muted(closed(ev("R", "a", 10, code("x"), message("m")))), open(ev("S", "a", 20, code("y"), message("m")))...),
		[]Evidence{ev("R", "a", 15, code("x"), message("m")), ev("S", "a", 25, code("y"), message("m"))}, nil, []int{0, 1}, 0},
	"muted, closed, and its resource is back at another line": {"the resource has a name of its own", "",
		muted(closed(ev("R", "a", 10, in("s3.a"), code("x"), message("m")))), []Evidence{ev("R", "a", 90, in("s3.a"), code("x"), message("m"))}, nil, []int{0}, 0},
	"muted, closed, and its package is back at another line": {"the same vulnerability of the same package, here by its fingerprint", "",
		muted(closed(ev("R", "lock", 10, pkg("ssl", "1"), hash("h"), message("m")))), []Evidence{ev("R", "lock", 90, pkg("ssl", "1"), hash("h"), message("m"))}, nil, []int{0}, 0},
	"muted, open, and its code moves alone": {"the code was there all the time", "",
		muted(open(ev("R", "a", 10, code("x"), message("m")))), []Evidence{ev("R", "a", 300, code("x"), message("m"))}, nil, []int{0}, 0},
	"closed without a decision, and its code comes at another line": {"no decision can be wrong", "",
		closed(ev("R", "a", 10, code("x"), message("m"))), []Evidence{ev("R", "a", 300, code("x"), message("m"))}, nil, []int{0}, 0},
	"closed, and the like of it comes while an open one stays": {"it may be the closed one or new, though the open one did not move", "",
		append(open(ev("R", "a", 30, code("x"))), closed(ev("R", "a", 10, code("x")))...),
		[]Evidence{ev("R", "a", 30, code("x")), ev("R", "a", 60, code("x"))}, nil, []int{0, 1}, 1},
	"closed, and one of alike comes to its place": {"only that one may be the closed one", "",
		append(open(ev("R", "a", 10, code("x")), ev("R", "a", 30, code("x")), ev("R", "a", 70, code("x"))), closed(ev("R", "a", 36, code("x")))...),
		[]Evidence{ev("R", "a", 11, code("x")), ev("R", "a", 36, code("x")), ev("R", "a", 75, code("x"))}, nil, []int{0, 1, 2}, 1},
	"closed, and one with another message comes to its place": {"the messages tell them apart", "",
		append(open(ev("R", "a", 30, code("x"), message("b"))), closed(ev("R", "a", 35, code("x"), message("a")))...),
		[]Evidence{ev("R", "a", 35, code("x"), message("b"))}, nil, []int{0}, 0},
	"closed, and one that says something else comes to its place, reworded": {"no message tells them apart any more", "",
		append(open(ev("R", "a", 30, code("x"), message("b"))), closed(ev("R", "a", 35, code("x"), message("a")))...),
		[]Evidence{ev("R", "a", 35, code("x"), message("c"))}, nil, []int{0}, 1},
	"closed version is back, and all lines move": {"the versions tell them apart", "",
		append(open(ev("R", "lock", 200, pkg("ssl", "2"))), closed(ev("R", "lock", 150, pkg("ssl", "1")))...),
		[]Evidence{ev("R", "lock", 205, pkg("ssl", "2")), ev("R", "lock", 155, pkg("ssl", "1"))}, nil, []int{0, 1}, 0},
	"renamed file, and another that its resource tells apart goes": {"so it is the only one that can be it", File,
		open(ev("R", "dev/a", 1, in("s3.a"), message("m")), ev("R", "dev/a", 2, in("s3.a"), message("m")),
			ev("R", "dev/b", 1, in("s3.b"), message("m")), ev("R", "dev/b", 2, in("s3.b"), message("m")),
			ev("R", "prod/a", 1, in("s3.a"), message("m")), ev("R", "prod/a", 2, in("s3.a"), message("m"))),
		[]Evidence{ev("R", "dev/s", 1, in("s3.a"), message("m")), ev("R", "dev/s", 2, in("s3.a"), message("m")),
			ev("R", "prod/a", 1, in("s3.a"), message("m")), ev("R", "prod/a", 2, in("s3.a"), message("m"))}, nil, []int{0, 1, 4, 5}, 0},
	"file of another resource, and the resource elsewhere": {"the fingerprints are those of another file", Moved,
		open(ev("R", "a", 1, in("s3.a"), hash("h1"), message("m")), ev("S", "a", 2, in("s3.a"), hash("h2"), message("n"))),
		[]Evidence{ev("R", "b", 1, in("s3.b"), hash("z1"), message("m")), ev("S", "b", 2, in("s3.b"), hash("z2"), message("n")),
			ev("R", "c", 20, in("s3.a"), hash("h1"), message("m")), ev("S", "c", 21, in("s3.a"), hash("h2"), message("n"))},
		nil, []int{-1, -1, 0, 1}, 0},
	"renamed module, and a new one like it": {"its line is reported in both", File,
		open(ev("R", "a/m", 1, in("a.m"), hash("h"), message("m"))),
		[]Evidence{ev("R", "b/m", 1, in("b.m"), hash("h"), message("m")), ev("R", "c/m", 7, in("c.m"), hash("h"), message("m"))},
		nil, []int{0, -1}, 1},
	"renamed folder, and a module in it": {"the files without a module show the rename", File,
		open(ev("R", "a/x", 7, message("o")), ev("R", "a/m", 1, in("a.m"), message("m")), ev("R", "c/m", 1, in("c.m"), message("m"))),
		[]Evidence{ev("R", "b/x", 7, message("o")), ev("R", "b/m", 1, in("b.m"), message("m"))}, nil, []int{0, 1}, 2},
	"folder of other resources": {"nor do two files confirm each other", "",
		open(ev("R", "a/x", 1, in("s3.a"), message("m")), ev("R", "a/y", 1, in("s3.b"), message("m"))),
		[]Evidence{ev("R", "b/x", 1, in("s3.c"), message("m")), ev("R", "b/y", 1, in("s3.d"), message("m"))}, nil, []int{0, 1}, 2},
	"file of another package": {"one vulnerability of two packages, in two lock files", "",
		open(ev("R", "a", 1, pkg("core", "1"), message("m")), ev("S", "a", 1, pkg("core", "1"), message("n"))),
		[]Evidence{ev("R", "b", 1, pkg("api", "1"), message("m")), ev("S", "b", 1, pkg("api", "1"), message("n"))}, nil, []int{-1, -1}, 0},
	"file of packages with other URLs": {"packages of two ecosystems have one name", "",
		open(ev("R", "a", 1, purl("npm/a"), message("m")), ev("S", "a", 1, purl("npm/a"), message("n"))),
		[]Evidence{ev("R", "b", 1, purl("pypi/a"), message("m")), ev("S", "b", 1, purl("pypi/a"), message("n"))}, nil, []int{-1, -1}, 0},
	"file moved, and the resource was not stored": {"an unknown resource is not a different one", "",
		open(ev("R", "a", 1, message("m")), ev("S", "a", 1, message("n"))),
		[]Evidence{ev("R", "b", 1, in("s3.b"), message("m")), ev("S", "b", 1, in("s3.b"), message("n"))}, nil, []int{0, 1}, 0},
	"one fingerprint of another resource elsewhere": {"the scanner computed it without the resource", "",
		open(ev("R", "a", 1, hash("h"), in("s3.a"), message("m"))), []Evidence{ev("R", "b", 1, hash("h"), in("s3.b"), message("m"))}, nil, []int{0}, 1},
	"the same code about another package": {"the code is the same for every package", "",
		open(ev("R", "a", 1, code("x"), purl("npm/a"), message("m"))), []Evidence{ev("R", "a", 1, code("x"), purl("npm/b"), message("m"))}, nil, []int{0}, 1},
	"package whose URL is new, and another place of it": {"no version tells them apart, but nothing else changed", "",
		open(ev("R", "lock", 5, pkg("ssl", ""), message("m")), ev("R", "lock", 9, pkg("ssl", ""), message("m"))),
		[]Evidence{ev("R", "lock", 5, pkg("ssl", ""), purl("npm/ssl"), message("m")), ev("R", "lock", 9, pkg("ssl", ""), purl("npm/ssl"), message("m"))}, nil, []int{0, 1}, 0},
	"package whose URL is unknown now, and another place of it": {"as when it is new", "",
		open(ev("R", "lock", 5, pkg("ssl", ""), purl("npm/ssl"), message("m")), ev("R", "lock", 9, pkg("ssl", ""), purl("npm/ssl"), message("m"))),
		[]Evidence{ev("R", "lock", 5, pkg("ssl", ""), message("m")), ev("R", "lock", 9, pkg("ssl", ""), message("m"))}, nil, []int{0, 1}, 0},
	"one code of a package that is named differently": {"its URL is the same", "",
		open(ev("R", "a", 1, code("x"), pkg("b:a", "1"), purl("maven/b/a"), message("m"))),
		[]Evidence{ev("R", "a", 1, code("x"), pkg("a", "1"), purl("maven/b/a"), message("n"))}, nil, []int{0}, 0},
	"root renamed": {"every file is like every other; the folders tell which is which", File,
		open(ev("R", "old/a", 1, message("m")), ev("R", "old/b", 1, message("m"))),
		[]Evidence{ev("R", "new/b", 1, message("m")), ev("R", "new/a", 1, message("m"))}, nil, []int{1, 0}, 0},
	"moved and reworded": {"code once here and once there", Moved,
		open(ev("R", "a", 5, code("x"), message("m"))), []Evidence{ev("R", "b", 70, code("x"), message("n"))}, nil, []int{0}, 1},
	"moved between files that both stay": {"the code may have been copied, and the first repaired", Moved,
		open(ev("R", "a", 5, code("x")), ev("S", "a", 6, code("s"))), []Evidence{ev("R", "b", 70, code("x")), ev("S", "a", 6, code("s"))}, nil, []int{0, 1}, 1},
	"swapped": {"two files have changed names", Moved,
		open(ev("R", "a", 5, code("x"), message("m")), ev("R", "b", 5, code("y"), message("m"))),
		[]Evidence{ev("R", "a", 6, code("y"), message("m")), ev("R", "b", 6, code("x"), message("m"))}, nil, []int{1, 0}, 2},
	"lines shifted": {"no code; two of different rules moved by the same 4 lines and confirm each other", Shift,
		open(ev("R", "a", 5, message("m")), ev("S", "a", 20, message("n"))),
		[]Evidence{ev("R", "a", 9, message("m")), ev("S", "a", 24, message("n")), ev("R", "a", 300, message("m"))}, nil, []int{0, 1, -1}, 0},
	"code of all appears, and they move by a multiple of their distance": {"as without code, the distance with the most of them tells", Shift,
		open(noted(10, 20, 30, 40, 50)...), coded(40, 50, 60, 70, 80), nil, []int{0, 1, 2, 3, 4}, 0},
	"code of all appears, they move, and another one comes": {"each is near to another one's line", Shift,
		open(noted(10, 20, 30, 40, 50)...), coded(22, 32, 42, 52, 62, 100), nil, []int{0, 1, 2, 3, 4, -1}, 0},
	"code of all disappears, they move, and another one comes": {"each is near to another one's line", Shift,
		open(coded(10, 20, 30, 40, 50)...), noted(22, 32, 42, 52, 62, 100), nil, []int{0, 1, 2, 3, 4, -1}, 0},
	"code takes the place of fingerprints, and all move": {"neither can be compared", Shift,
		open(ev("R", "a", 10, hash("h"), message("m")), ev("R", "a", 20, hash("i"), message("m"))), coded(22, 32), nil, []int{0, 1}, 0},
	"code of one rule appears, and all move": {"those of the other rule tell the distance, too", Shift,
		open(ev("R", "a", 10, message("m")), ev("S", "a", 300, message("n"))),
		[]Evidence{ev("R", "a", 40, message("m"), code("x")), ev("S", "a", 330, message("n"))}, nil, []int{0, 1}, 0},
	"code of one appears, and it moves far": {"the like of it may have come", Message,
		open(noted(10)...), coded(90), nil, []int{0}, 1},
	"code of a closed one appears, and it is back at its line": {"the message and the line are the same", Message,
		muted(closed(noted(10)...)), coded(10), nil, []int{0}, 0},
	"code of one was unknown, and it is near another one whose code changed": {"the code of the rule tells the others apart, so only the line is left", Line,
		open(ev("R", "a", 10, message("m")), ev("R", "a", 20, code("x"), message("m")), ev("R", "a", 30, message("m"))),
		coded(22, 32), nil, []int{1, 2}, 2},
	"message": {"no code, and the line moved far alone: the like of it may have come", Message,
		open(ev("R", "a", 5, message("m"))), []Evidence{ev("R", "a", 90, message("m"))}, nil, []int{0}, 1},
	"reworded": {"nothing but the line is left, and the nearest is the one", Line,
		open(ev("R", "a", 5, message("m")), ev("R", "a", 40, message("m"))),
		[]Evidence{ev("R", "a", 40, message("n")), ev("R", "a", 5, message("n"))}, nil, []int{1, 0}, 2},
	"code changed at its line": {"it is the finding still, and what changed is the code", Line,
		open(ev("R", "a", 5, code("x"), message("m"))), []Evidence{ev("R", "a", 7, code("y"), message("m"))}, nil, []int{0}, 1},

	"other code at the line": {"a secret was repaired, and another put in its place", "",
		open(ev("R", "a", 5, code("x"), message("m"))), []Evidence{ev("R", "a", 5, code("y"), message("m"))}, nil, []int{0}, 1},
	"other fingerprint near": {"the fingerprint is all that is known of the code", "",
		open(ev("R", "a", 5, hash("h"), message("m"))), []Evidence{ev("R", "a", 7, hash("i"), message("m"))}, nil, []int{0}, 1},
	"one of a hash is reworded in its place, and another one of it comes": {"either may be it", "",
		open(ev("R", "a", 10, hash("h"), message("m"))),
		[]Evidence{ev("R", "a", 10, hash("h"), message("n")), ev("R", "a", 40, hash("h"), message("n"))}, nil, []int{0, -1}, 1},
	"one of a hash is reworded in its place, and another one of it goes": {"it may be either", "",
		open(ev("R", "a", 10, hash("h"), message("m")), ev("R", "a", 40, hash("h"), message("m"))),
		[]Evidence{ev("R", "a", 10, hash("h"), message("n"))}, nil, []int{0}, 1},
	"long fingerprint of a reworded one far away": {"only its beginning was stored", "",
		as(func(k *Known) { k.Cut = true }, []Evidence{ev("R", "a", 5, hash("h"), message("m"))}),
		[]Evidence{ev("R", "a", 90, hash("h"), message("n"))}, nil, []int{0}, 1},
	"long fingerprint in another file": {"only its beginning was stored", "",
		as(func(k *Known) { k.Cut = true }, []Evidence{ev("R", "a", 5, hash("h"), message("m"))}),
		[]Evidence{ev("R", "b", 90, hash("h"), message("m"))}, nil, []int{0}, 1},
	"long fingerprint of a closed one is back": {"only its beginning was stored", "",
		as(func(k *Known) { k.Cut, k.Closed = true, true }, []Evidence{ev("R", "a", 5, hash("h"), message("m"))}),
		[]Evidence{ev("R", "a", 5, hash("h"), message("m"))}, nil, []int{0}, 1},
	"closed in a file that may be another": {"an earlier version gave several files one path", "",
		as(func(k *Known) { k.Closed, k.Presumed = true, true }, []Evidence{ev("R", "a", 5, message("m"))}),
		[]Evidence{ev("R", "a", 5, message("m"))}, nil, []int{0}, 1},
	"package with another URL": {"packages of two ecosystems have one name", "",
		open(ev("R", "lock", 5, pkg("ssl", "1"), purl("npm/ssl"))),
		[]Evidence{ev("R", "lock", 9, pkg("ssl", "1"), purl("pypi/ssl"))}, nil, []int{0}, 1},
	"two others far away": {"equal distances do not confirm what is reworded", "",
		open(ev("R", "a", 5, message("m")), ev("R", "a", 9, message("n"))),
		[]Evidence{ev("R", "a", 105, message("k")), ev("R", "a", 109, message("l"))}, nil, []int{-1, -1}, 0},
	"file moved with another fingerprint": {"what is new there is other code", "",
		open(ev("R", "a", 5, hash("h"), message("m"))), []Evidence{ev("R", "b", 5, hash("i"), message("m"))}, nil, []int{0}, 1},
	"resource reworded and moved": {"another problem of the resource may have come", "",
		open(ev("R", "main.tf", 5, in("s3"), message("m"))), []Evidence{ev("R", "main.tf", 90, in("s3"), message("n"))}, nil, []int{0}, 1},
	"other endpoint says the same": {"the first was repaired", "",
		open(ev("R", "", 0, in("GET /a"), message("m"))), []Evidence{ev("R", "", 0, in("GET /b"), message("m"))}, nil, []int{0}, 1},
	"first of alike by name goes": {"the ordinal of the second is now the first's", "",
		legacy(ev("R", "a", 10), ev("R", "a", 20)), []Evidence{ev("R", "a", 30, message("m"))}, []Match{{Result: 0, Known: 0}}, []int{0}, 1},
	"earlier version without the name": {"what it stored is not enough", "",
		legacy(ev("R", "a", 10, code("x"))), []Evidence{ev("R", "a", 10, code("x"), message("m"))}, nil, []int{0}, 1},
	"earlier version in another file": {"what it stored is not enough, even if no other has its fingerprint", "",
		legacy(ev("R", "a", 10, hash("h"))), []Evidence{ev("R", "b", 90, hash("h"), message("m"))}, nil, []int{0}, 1},
	"earlier version by name in another file": {"its line confirms it", "",
		legacy(ev("R", "a", 10)), []Evidence{ev("R", "b", 10, message("m"))}, []Match{{Result: 0, Known: 0}}, []int{0}, 0},
	"package in another file": {"repaired in one, and come in the other", "",
		open(ev("CVE-1", "a/lock", 0, pkg("ssl", "1"), message("m"))), []Evidence{ev("CVE-1", "b/lock", 0, pkg("ssl", "1"), message("m"))}, nil, []int{0}, 1},
	"reworded alone at its line": {"no code, and other words", "",
		open(ev("R", "a", 5, message("m"))), []Evidence{ev("R", "a", 5, message("n"))}, nil, []int{0}, 1},
	"first of one hash goes": {"fingerprint without ordinal, and the rest has moved", "",
		open(ev("R", "a", 10, hash("h"), message("m")), ev("R", "a", 20, hash("h"), message("m"))),
		[]Evidence{ev("R", "a", 12, hash("h"), message("m"))}, nil, []int{0}, 1},

	"one of two at one place goes": {"nothing tells whether it is the muted one", "",
		append(muted(open(ev("R", "a", 5, message("m")))), open(ev("R", "a", 5, message("m")))...),
		[]Evidence{ev("R", "a", 5, message("m"))}, nil, []int{0}, 1},
	"one of three at one place goes": {"nothing tells whether it is the muted one", "",
		append(muted(open(ev("R", "a", 5, message("m")))), open(ev("R", "a", 5, message("m")), ev("R", "a", 5, message("m")))...),
		[]Evidence{ev("R", "a", 5, message("m")), ev("R", "a", 5, message("m"))}, nil, []int{0, 1}, 1},
	"one of two muted ones at one place goes": {"the other is muted, whichever it is", "",
		muted(open(ev("R", "a", 5, message("m")), ev("R", "a", 5, message("m")))),
		[]Evidence{ev("R", "a", 5, message("m"))}, nil, []int{0}, 0},
	"one of two repaired at one place is back": {"nothing tells whether it is the muted one", "",
		append(muted(closed(ev("R", "a", 5, message("m")))), closed(ev("R", "a", 5, message("m")))...),
		[]Evidence{ev("R", "a", 5, message("m"))}, nil, []int{0}, 1},
	"one of two at one place goes, and was written before the scan was cut off": {"nothing tells whether it is the muted one", "",
		append(muted(added(ev("R", "a", 5, message("m")))), open(ev("R", "a", 5, message("m")))...),
		[]Evidence{ev("R", "a", 5, message("m"))}, nil, []int{0}, 1},
	"one of two at one place goes, and all lines move": {"nothing tells whether it is the muted one", "",
		append(muted(open(ev("R", "a", 5, message("m")))), open(ev("R", "a", 5, message("m")), ev("S", "a", 20, message("n")))...),
		[]Evidence{ev("R", "a", 8, message("m")), ev("S", "a", 23, message("n"))}, nil, []int{0, 2}, 1},
	"one of two at one place goes, and a third moves": {"nothing tells whether it is the muted one, nor confirms the move", "",
		append(muted(open(ev("R", "a", 5, message("m")))), open(ev("R", "a", 5, message("m")), ev("R", "a", 20, message("m")))...),
		[]Evidence{ev("R", "a", 5, message("m")), ev("R", "a", 23, message("m"))}, nil, []int{0, 2}, 2},

	"copied": {"the copy is new", "",
		open(ev("R", "a", 5, code("x"))), []Evidence{ev("R", "b", 5, code("x")), ev("R", "a", 5, code("x"))}, nil, []int{-1, 0}, 0},
	"goes, and another comes far away": {"other code is another problem", "",
		open(ev("R", "a", 5, code("x"))), []Evidence{ev("R", "a", 500, code("y"))}, nil, []int{-1}, 0},
	"goes, and another comes elsewhere": {"other code in another file", "",
		open(ev("R", "a", 5, code("x"), message("m"))), []Evidence{ev("R", "b", 90, code("y"), message("m"))}, nil, []int{-1}, 0},
	"one of three goes and another comes": {"those that stayed are not taken for their neighbours", "",
		open(ev("R", "a", 5, message("m")), ev("R", "a", 9, message("m")), ev("R", "a", 30, message("m"))),
		[]Evidence{ev("R", "a", 9, message("m")), ev("R", "a", 30, message("m")), ev("R", "a", 1030, message("m"))}, nil, []int{1, 2, 0}, 1},
	"ambiguous elsewhere": {"the code occurs twice in new files", "",
		open(ev("R", "a", 5, code("x"), message("m")), ev("S", "a", 6)),
		[]Evidence{ev("R", "b", 5, code("x"), message("m")), ev("R", "c", 5, code("x"), message("m"))}, nil, []int{-1, -1}, 0},
	"ambiguous lines": {"two are as near", "",
		open(ev("R", "a", 10, message("k"))), []Evidence{ev("R", "a", 8, message("m")), ev("R", "a", 12, message("n"))}, nil, []int{-1, -1}, 0},
	"ambiguous lines, and one was added": {"two are as near, as they were before the scan was cut off", "",
		append(open(ev("R", "a", 10, message("k"))), added(ev("R", "a", 12, message("n")))...),
		[]Evidence{ev("R", "a", 8, message("m")), ev("R", "a", 12, message("n"))}, nil, []int{-1, 1}, 0},
	"ambiguous file, and one was added": {"either may be the file that is gone, as before the scan was cut off", "",
		append(open(ev("R", "a", 5, message("m"))), added(ev("R", "c", 5, message("m")))...),
		[]Evidence{ev("R", "b", 5, message("m")), ev("R", "c", 5, message("m"))}, nil, []int{-1, 1}, 0},
	"folder that two others are like": {"it may be either", "",
		open(ev("R", "a/x", 1, message("m")), ev("S", "a/y", 1, message("n"))),
		[]Evidence{ev("R", "b/x", 1, message("m")), ev("S", "b/y", 1, message("n")), ev("R", "c/x", 1, message("m")), ev("S", "c/y", 1, message("n"))},
		nil, []int{-1, -1, -1, -1}, 0},
	"file of a foreign one": {"it is in no file of the scan", "",
		[]Known{{Evidence: ev("R", "a", 5, message("m")), Foreign: true}}, []Evidence{ev("R", "b", 5, message("m"))}, nil, []int{-1}, 0},
	"of no file, and the like of it in one": {"no file was renamed", "",
		open(ev("R", "", 0, message("m"))), []Evidence{ev("R", "b", 0, message("m"))}, nil, []int{-1}, 0},
	"of a file, and the like of it in none": {"no file was renamed", "",
		open(ev("R", "a", 0, message("m"))), []Evidence{ev("R", "", 0, message("m"))}, nil, []int{-1}, 0},
	"code of no file, reworded": {"the same code may be anywhere", "",
		open(ev("R", "", 0, code("x"), message("m"))), []Evidence{ev("R", "", 0, code("x"), message("n"))}, nil, []int{0}, 1},
	"file that an unfinished scan began": {"it was there beside the one that is gone", "",
		append(open(ev("R", "a", 5, message("m")), ev("S", "a", 9, message("n"))), added(ev("R", "c", 5, message("m")))...),
		[]Evidence{ev("R", "c", 5, message("m")), ev("S", "c", 9, message("n"))}, nil, []int{2, -1}, 0},
	"alike by count": {"nothing but their order tells them apart", "",
		open(ev("R", "a", 5, code("x")), ev("R", "a", 9, code("x"))),
		[]Evidence{ev("R", "a", 13, code("x")), ev("R", "a", 7, code("x"))}, nil, []int{1, 0}, 0},
	"one of alike goes": {"the lines tell which", "",
		open(ev("R", "a", 5, code("x")), ev("R", "a", 9, code("x")), ev("R", "a", 12, code("x"))),
		[]Evidence{ev("R", "a", 7, code("x")), ev("R", "a", 14, code("x"))}, nil, []int{0, 2}, 0},
	"all lines move, and the last of alike goes": {"another distance fits as well", "",
		open(ev("R", "a", 10, code("x")), ev("R", "a", 20, code("x")), ev("R", "a", 30, code("x"))),
		[]Evidence{ev("R", "a", 17, code("x")), ev("R", "a", 27, code("x"))}, nil, []int{1, 2}, 2},
	"all lines move, and the last of alike without code goes": {"another distance fits as well", "",
		open(ev("R", "a", 10, message("m")), ev("R", "a", 20, message("m")), ev("R", "a", 30, message("m"))),
		[]Evidence{ev("R", "a", 17, message("m")), ev("R", "a", 27, message("m"))}, nil, []int{1, 2}, 2},
	"all lines move, and the last of alike becomes another": {"the order is the best guess, but another distance fits as well", "",
		open(ev("R", "a", 10, code("x")), ev("R", "a", 20, code("x")), ev("R", "a", 30, code("x"))),
		[]Evidence{ev("R", "a", 17, code("x")), ev("R", "a", 27, code("x")), ev("R", "a", 50, code("x"))}, nil, []int{0, 1, 2}, 3},
	"the first of three alike is deleted, and another is added": {"equal numbers prove nothing", "",
		open(ev("R", "a", 10, code("x")), ev("R", "a", 20, code("x")), ev("R", "a", 30, code("x"))),
		[]Evidence{ev("R", "a", 19, code("x")), ev("R", "a", 29, code("x")), ev("R", "a", 60, code("x"))}, nil, []int{0, 1, 2}, 3},
	"a line is inserted between some alike": {"the columns fit both distances equally well", "",
		open(ev("R", "a", 10, code("x"), column(1)), ev("R", "a", 11, code("x"), column(5)), ev("R", "a", 12, code("x"), column(9)), ev("R", "a", 13, code("x"), column(13))),
		[]Evidence{ev("R", "a", 10, code("x"), column(1)), ev("R", "a", 11, code("x"), column(5)), ev("R", "a", 13, code("x"), column(9)), ev("R", "a", 14, code("x"), column(13))},
		nil, []int{0, 1, 2, 3}, 2},
	"the line of the first of alike is deleted": {"the columns tell that the others moved", "",
		open(ev("R", "a", 32, message("m"), column(24)), ev("R", "a", 33, message("m"), column(26)), ev("R", "a", 34, message("m"), column(22))),
		[]Evidence{ev("R", "a", 32, message("m"), column(26)), ev("R", "a", 33, message("m"), column(22))}, nil, []int{1, 2}, 0},
	"one of alike goes, and the columns of the others move": {"it may be any, in their lines or not", "",
		open(ev("R", "a", 32, message("m"), column(24)), ev("R", "a", 33, message("m"), column(26)), ev("R", "a", 34, message("m"), column(22))),
		[]Evidence{ev("R", "a", 32, message("m"), column(3)), ev("R", "a", 33, message("m"), column(5))}, nil, []int{0, 1}, 2},
	"two parts of a file move differently, and another like them comes": {"each part has moved as a whole", "",
		open(ev("R", "a", 10, code("x")), ev("R", "a", 20, code("x")), ev("R", "a", 100, code("x")), ev("R", "a", 120, code("x"))),
		[]Evidence{ev("R", "a", 13, code("x")), ev("R", "a", 23, code("x")), ev("R", "a", 105, code("x")), ev("R", "a", 125, code("x")), ev("R", "a", 300, code("x"))},
		nil, []int{0, 1, 2, 3, -1}, 0},
	"one of two on one line goes, and the other moves": {"two findings of a line are not two moves", "",
		open(ev("R", "a", 5, code("x"), column(1)), ev("R", "a", 5, code("x"), column(20))), []Evidence{ev("R", "a", 300, code("x"))}, nil, []int{0}, 1},
	"one moves, and another comes on its line": {"nor are two results", "",
		open(ev("R", "a", 5, code("x"))), []Evidence{ev("R", "a", 300, code("x"), column(7)), ev("R", "a", 300, code("x"), column(20))}, nil, []int{0, -1}, 1},
	"one of two without code on one line goes, and the other moves": {"nor without code", "",
		open(ev("R", "a", 5, message("m"), column(1)), ev("R", "a", 5, message("m"), column(20))), []Evidence{ev("R", "a", 300, message("m"))}, nil, []int{0}, 1},
	"one of two at one place is left, reworded": {"it may be either", "",
		append(muted(open(ev("R", "a", 5, code("x"), message("b")))), open(ev("R", "a", 5, code("x"), message("a")))...),
		[]Evidence{ev("R", "a", 5, code("x"), message("c"))}, nil, []int{1}, 1},
	"one of two at one place is left, reworded, and moved": {"it may be either", "",
		open(ev("R", "a", 5, code("x"), message("a")), ev("R", "a", 5, code("x"), message("b"))),
		[]Evidence{ev("R", "a", 9, code("x"), message("c"))}, nil, []int{0}, 1},
	"one of two of a resource is left, reworded": {"it may be either", "",
		open(ev("R", "a", 5, in("s3"), message("a")), ev("R", "a", 5, in("s3"), message("b"))),
		[]Evidence{ev("R", "a", 5, in("s3"), message("c"))}, nil, []int{0}, 1},
	"one of two repaired at one place is back, reworded": {"it may be either", "",
		closed(ev("R", "a", 5, code("x"), message("a")), ev("R", "a", 5, code("x"), message("b"))),
		[]Evidence{ev("R", "a", 5, code("x"), message("c"))}, nil, []int{0}, 1},
	"one of two at one place is left": {"its message identifies it", "",
		open(ev("R", "a", 5, code("x"), message("a")), ev("R", "a", 5, code("x"), message("b"))),
		[]Evidence{ev("R", "a", 5, code("x"), message("b"))}, nil, []int{1}, 0},
	"one of two at two places is left, reworded": {"the lines tell which", "",
		open(ev("R", "a", 5, code("x"), message("a")), ev("R", "a", 9, code("x"), message("b"))),
		[]Evidence{ev("R", "a", 9, code("x"), message("c"))}, nil, []int{1}, 0},
	"two on one line move": {"each confirms the other", "",
		open(ev("R", "a", 5, code("x"), column(1)), ev("R", "a", 5, code("x"), column(20)), ev("R", "a", 90, code("x"))),
		[]Evidence{ev("R", "a", 8, code("x"), column(20)), ev("R", "a", 8, code("x"), column(1))}, nil, []int{1, 0}, 0},
	"lines inserted, and one was written before the scan was cut off": {"the others moved like the one that is in its place", "",
		append(written(ev("R", "a", 9, code("x"))), open(ev("R", "a", 9, code("x")), ev("R", "a", 13, code("x")))...),
		[]Evidence{ev("R", "a", 9, code("x")), ev("R", "a", 13, code("x")), ev("R", "a", 17, code("x"))}, nil, []int{0, 1, 2}, 0},
	"lines inserted since the scan was cut off": {"one that was written is not in its place: this is another scan", "",
		written(ev("R", "a", 5, code("x")), ev("R", "a", 9, code("x")), ev("R", "a", 13, code("x"))),
		[]Evidence{ev("R", "a", 9, code("x")), ev("R", "a", 13, code("x")), ev("R", "a", 17, code("x"))}, nil, []int{0, 1, 2}, 0},
	"repeated where another was that is gone": {"the unfinished scan wrote the one and closed nothing", "",
		append(open(ev("R", "a", 9, code("x"))), written(ev("R", "a", 9, code("x")))...), []Evidence{ev("R", "a", 9, code("x"))}, nil, []int{1}, 0},
	"two scans in succession were cut off": {"the second is repeated; the first is not", "",
		append(append(written(ev("R", "a", 9, code("x"))), open(ev("R", "a", 9, code("x")), ev("R", "a", 13, code("x")))...),
			Known{Evidence: ev("R", "a", 30, code("x")), Unfinished: 1, CutOff: true}),
		[]Evidence{ev("R", "a", 9, code("x")), ev("R", "a", 13, code("x")), ev("R", "a", 17, code("x")), ev("R", "a", 34, code("x"))}, nil, []int{0, 1, 2, 3}, 0},
	"repeated where a scan was cut off before one that was not": {"the later one has moved its finding to the place of one that is gone", "",
		append(open(ev("R", "a", 9, code("x"))), Known{Evidence: ev("R", "a", 9, code("x")), Unfinished: 1}, Known{Evidence: ev("R", "a", 9, code("x")), Unfinished: 2}),
		[]Evidence{ev("R", "a", 9, code("x"))}, nil, []int{2}, 0},
	"moved, and one like it is foreign": {"the foreign one is in no file of the scan, so it is no candidate", "",
		append(open(ev("R", "a", 5, hash("h"))), Known{Evidence: ev("R", "c", 5, hash("h")), Foreign: true}),
		[]Evidence{ev("R", "b", 70, hash("h"))}, nil, []int{0}, 0},
	"moved, and one like it is foreign, in a file of the scan": {"the foreign one may have moved", "",
		append(open(ev("R", "a", 5, hash("h"))), Known{Evidence: ev("R", "c", 5, hash("h")), Foreign: true}),
		[]Evidence{ev("R", "b", 70, hash("h")), ev("S", "c", 1)}, nil, []int{0, -1}, 1},
	"closed, and its fingerprint comes in another file": {"a complete scan has found it nowhere, and the line is a common one", Moved,
		closed(ev("R", "a", 10, hash("h"), code("x"), message("m"))), []Evidence{ev("R", "b", 99, hash("h"), code("x"), message("m"))}, nil, []int{0}, 1},
	"masked code at the place is other code": {"it is another secret", "",
		open(ev("R", "a", 5, message("m"), masked("x"))), []Evidence{ev("R", "a", 5, message("m"), masked("y"))}, nil, []int{0}, 1},
	"masked code, and the scanner's fingerprint is the same": {"only what is around the secret has changed", "",
		open(ev("R", "a", 5, hash("h"), message("m"), masked("x"))), []Evidence{ev("R", "a", 5, hash("h"), message("m"), masked("y"))}, nil, []int{0}, 0},
	"masked code was not stored": {"by an earlier version", "",
		open(ev("R", "a", 5, message("m"))), []Evidence{ev("R", "a", 5, message("m"), masked("x"))}, nil, []int{0}, 0},
	"masked code is other code, without its mask": {"it comes with the other secret", "",
		open(ev("R", "a", 5, message("m"), code("x"))), []Evidence{ev("R", "a", 5, message("m"), masked("y"))}, nil, []int{0}, 1},
	"masked code of two at one place in another order": {"each keeps its own finding", "",
		append(muted(open(ev("R", "a", 5, message("m"), masked("x")))), open(ev("R", "a", 5, message("m"), masked("y")))...),
		[]Evidence{ev("R", "a", 5, message("m"), masked("y")), ev("R", "a", 5, message("m"), masked("x"))}, nil, []int{1, 0}, 0},
	"masked code of two at one place goes, and another secret comes": {"the undecided one stays open", "",
		append(muted(open(ev("R", "a", 5, message("m"), masked("x")))), open(ev("R", "a", 5, message("m"), masked("y")))...),
		[]Evidence{ev("R", "a", 5, message("m"), masked("z"))}, nil, []int{1}, 1},
	"masked code of a muted one alone at its place goes, and another secret comes": {"it is told by the doubt", "",
		muted(open(ev("R", "a", 5, message("m"), masked("x")))), []Evidence{ev("R", "a", 5, message("m"), masked("z"))}, nil, []int{0}, 1},
	"masked code of two at one place goes, and a result shows none": {"it may be either, and decided ones come first", "",
		append(muted(open(ev("R", "a", 5, message("m"), masked("x")))), open(ev("R", "a", 5, message("m"), masked("y")))...),
		[]Evidence{ev("R", "a", 5, message("m"))}, nil, []int{0}, 1},
	"masked code of two at one place was not stored, and one is left": {"it may be either, and decided ones come first", "",
		append(muted(open(ev("R", "a", 5, message("m")))), open(ev("R", "a", 5, message("m")))...),
		[]Evidence{ev("R", "a", 5, message("m"), masked("x"))}, nil, []int{0}, 1},
	"masked code moves, and no line confirms it": {"another secret may look the same", "",
		open(ev("R", "a", 5, message("m"), masked("x"))), []Evidence{ev("R", "a", 90, message("m"), masked("x"))}, nil, []int{0}, 1},
	"masked code moves together, and one is other code": {"lines do not confirm that one", "",
		open(ev("R", "a", 5, message("m"), masked("x")), ev("R", "a", 9, message("m"), masked("x")), ev("R", "a", 12, message("m"), masked("x"))),
		[]Evidence{ev("R", "a", 8, message("m"), masked("x")), ev("R", "a", 12, message("m"), masked("y")), ev("R", "a", 15, message("m"), masked("x"))}, nil, []int{0, 1, 2}, 1},
	"masked code of a package and of a resource": {"neither is recognised by code", "",
		open(ev("R", "lock", 5, pkg("ssl", "1"), masked("x")), ev("R", "main.tf", 5, in("s3.a"), message("m"), masked("x"))),
		[]Evidence{ev("R", "lock", 5, pkg("ssl", "1"), masked("y")), ev("R", "main.tf", 5, in("s3.a"), message("m"), masked("y"))}, nil, []int{0, 1}, 0},
	"closed far away": {"a finding that was repaired is not the neighbour that came", "",
		closed(ev("R", "a", 5, code("x"))), []Evidence{ev("R", "a", 6, code("y"))}, nil, []int{-1}, 0},
	"name is taken": {"its finding has moved to another file; the same comes again in the first", "",
		open(ev("R", "b", 5, code("x"), message("m"))), []Evidence{ev("R", "a", 5, code("x"), message("m")), ev("R", "b", 5, code("x"), message("m"))},
		nil, []int{-1, 0}, 0},
}

func paired(n int, matches []Match) (out []int, doubts int) {
	out = slices.Repeat([]int{-1}, n)
	for _, m := range matches {
		out[m.Result] = m.Known
		if m.Doubt != "" {
			doubts++
		}
	}
	return out, doubts
}

func TestLadder(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			matches := Recognise(Scan{Results: c.results, Known: c.known, Named: c.named})
			got, doubts := paired(len(c.results), matches)
			if d := cmp.Diff(c.want, got); d != "" || doubts != c.doubts {
				t.Errorf("%s: findings of the results (-want +got):\n%s%d doubts, want %d; %+v", c.reason, d, doubts, c.doubts, matches)
			}
		})
	}
}

// Every rung is needed: without it, each case that names it fails.
func TestEveryRungIsNeeded(t *testing.T) {
	needed := map[Rung]bool{}
	for name, c := range cases {
		if c.rung == "" {
			continue
		}
		shortened := slices.DeleteFunc(slices.Clone(ladder), func(r rung) bool { return r.name == c.rung })
		got, doubts := paired(len(c.results), recognise(shortened, Scan{Results: c.results, Known: c.known, Named: c.named}))
		if !cmp.Equal(c.want, got) || doubts != c.doubts {
			needed[c.rung] = true
			continue
		}
		t.Logf("case %q holds without the rung %q", name, c.rung)
	}
	for _, r := range ladder {
		if !needed[r.name] {
			t.Errorf("no case fails without the rung %q", r.name)
		}
	}
}

// evidenceGen draws from few values, so that values repeat.
func evidenceGen() *rapid.Generator[Evidence] {
	pick := func(t *rapid.T, name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, name) }
	return rapid.Custom(func(t *rapid.T) Evidence {
		return Evidence{
			Rule: pick(t, "rule", "R", "S"), Path: pick(t, "path", "", "a/x", "b/x", "b/y"),
			Line: rapid.Int32Range(0, 6).Draw(t, "line"), Column: rapid.Int32Range(0, 1).Draw(t, "column"),
			Fingerprint: pick(t, "fingerprint", "", "", "h", "i"), Vulnerability: pick(t, "vulnerability", "", "v", "w"),
			Aliases: pick(t, "aliases", "", "v"), IDs: pick(t, "ids", "v", "w", "v\nw"),
			PURL: pick(t, "purl", "", "", "pkg:p", "pkg:q"), Package: pick(t, "package", "", "", "p", "q"),
			Version: pick(t, "version", "", "1", "2"), Resource: pick(t, "resource", "", "", "r"),
			Snippet: pick(t, "snippet", "", "", "x", "y"), Message: pick(t, "message", "m", "n"),
			Masked: pick(t, "masked", "", "", "x", "y"), Suppressed: rapid.Bool().Draw(t, "suppressed"),
		}
	})
}

func knownGen() *rapid.Generator[Known] {
	return rapid.Custom(func(t *rapid.T) Known {
		return Known{Evidence: evidenceGen().Draw(t, "evidence"), Closed: rapid.Bool().Draw(t, "closed")}
	})
}

func TestPairsAreOneToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.SliceOfN(evidenceGen(), 0, 12).Draw(t, "results")
		known := rapid.SliceOfN(knownGen(), 0, 12).Draw(t, "known")
		taken, seen := map[int]bool{}, map[int]bool{}
		for _, m := range Recognise(Scan{Results: results, Known: known}) {
			if taken[m.Known] || seen[m.Result] || m.Rung == "" {
				t.Fatalf("%+v: a finding or a result is in two pairs, or in one without a rung", m)
			}
			taken[m.Known], seen[m.Result] = true, true
		}
	})
}

func TestPairsDoNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.SliceOfN(evidenceGen(), 0, 10).Draw(t, "results")
		known := rapid.SliceOfN(knownGen(), 0, 10).Draw(t, "known")
		random := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed"))) //nolint:gosec // a test's order
		describe := func(results []Evidence, known []Known) []string {
			var out []string
			for _, m := range Recognise(Scan{Results: results, Known: known}) {
				out = append(out, fmt.Sprintf("%+v = %+v by %s %s", results[m.Result], known[m.Known], m.Rung, m.Doubt))
			}
			slices.Sort(out)
			return out
		}
		want := describe(results, known)
		random.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
		random.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
		harness.Same(t, "pairs in another order", want, describe(results, known))
	})
}

func TestResultsThatDifferInOneFactAreOrderedByIt(t *testing.T) {
	for name, set := range map[string]func(e *Evidence, value string){
		"package":       func(e *Evidence, value string) { e.Package = value },
		"PURL":          func(e *Evidence, value string) { e.PURL = value },
		"vulnerability": func(e *Evidence, value string) { e.Vulnerability = value },
		"aliases":       func(e *Evidence, value string) { e.Aliases = value },
		"ids":           func(e *Evidence, value string) { e.IDs = value },
		"masked code":   func(e *Evidence, value string) { e.Masked = value },
	} {
		a := Evidence{Rule: "R", Path: "a", Line: 9, Snippet: "x"}
		b := a
		set(&a, "1")
		set(&b, "2")
		known := open(Evidence{Rule: "R", Path: "a", Line: 1, Snippet: "x"})
		for at, results := range [][]Evidence{{a, b}, {b, a}} {
			if got := Recognise(Scan{Results: results, Known: known}); len(got) != 1 || got[0].Result != at {
				t.Errorf("%s: of the results %+v one is recognised by their order: %+v", name, results, got)
			}
		}
	}
}

// Unchanged results are recognised, whatever else is reported, and each keeps the finding that says the same.
func TestTheSameScanIsRecognisedWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.SliceOfN(evidenceGen(), 1, 15).Draw(t, "results")
		scan := Scan{Results: results, Known: open(results...)}
		for _, m := range Recognise(scan) {
			if m.Rung != Unchanged || results[m.Result] != results[m.Known] {
				t.Fatalf("%+v pairs %+v with %+v", m, results[m.Result], results[m.Known])
			}
		}
		var order []int
		for i := range results {
			order = append(order, i)
		}
		order = rapid.Permutation(order).Draw(t, "order")
		for i, of := range order {
			scan.Known[i] = Known{Evidence: results[of], Decision: rapid.SampledFrom([]string{"", "muted"}).Draw(t, "decision")}
		}
		factsOf := func(i int) Facts { return Facts{Lines: strconv.Itoa(i), Distances: strconv.Itoa(i)} }
		scan.ResultFacts, scan.Job = factsOf, func(int) string { return "" }
		scan.KnownFacts = func(known int) Facts { return factsOf(order[known]) }
		matches := Recognise(scan)
		for _, m := range matches {
			if order[m.Known] != m.Result || m.Doubt != "" {
				t.Fatalf("%+v is not its own finding, or in doubt", m)
			}
		}
		if len(matches) != len(results) {
			t.Fatalf("%d of %d recognised", len(matches), len(results))
		}
	})
}

// A decision is in doubt if its finding has lost its own result, and the facts of a finding or of a result say so.
func TestADecisionIsInDoubtIfTheFactsAreThoseOfAnother(t *testing.T) {
	facts := func(texts string) func(int) Facts {
		return func(i int) Facts { return Facts{texts[i : i+1], texts[i : i+1]} }
	}
	at := func(lines ...int32) (out []Evidence) {
		for _, line := range lines {
			out = append(out, ev("R", "a", line, hash("h")))
		}
		return out
	}
	noCode := func(lines ...int32) (out []Evidence) {
		for _, line := range lines {
			out = append(out, ev("R", "a", line, message("m")))
		}
		return out
	}
	elsewhere := at(10, 20, 30)
	for i := range elsewhere {
		elsewhere[i].Path = "b"
	}
	for reason, tc := range map[string]struct {
		results   []Evidence
		ofResults string
		known     []Known // the first one is muted
		ofKnown   string
		doubted   bool
	}{
		"two have the facts of one finding":             {at(31, 10, 10), "bbc", open(at(9, 9, 9)...), "abc", true},
		"two have them, in another order":               {at(10, 31, 10), "bbc", open(at(9, 9, 9)...), "abc", true},
		"it is where the one was whose facts it has":    {at(20, 30), "bc", open(at(10, 20)...), "ab", true},
		"its own one stays where it was":                {at(20, 30), "bc", open(at(20, 10)...), "ba", true},
		"its own one is new at another line":            {at(9, 12), "ba", open(at(9)...), "a", true},
		"its own one is another's at another line":      {at(9, 12), "ba", append(open(at(9)...), closed(at(9)...)...), "ab", true},
		"its own one is a closed one's at another line": {at(9, 12), "ba", append(open(at(9)...), closed(at(9)...)...), "aa", true},
		"it has the facts of a closed one that is back": {at(9, 12), "ca", append(open(at(9)...), closed(at(9)...)...), "bc", true},
		"its own one is that of a closed one":           {at(9, 9), "ba", append(open(at(9)...), closed(at(9)...)...), "aa", true},
		"another one had these facts too":               {at(9, 9), "ab", open(at(9, 9)...), "aa", true},
		"the only result has neither one's":             {at(9), "c", open(at(9, 9)...), "ab", true},
		"it has the facts of a closed one like it": {[]Evidence{ev("R", "a", 6, code("x"), message("m"))}, "b",
			append(open(ev("R", "a", 8, code("x"), message("n"))), closed(ev("R", "a", 5, code("x"), message("m")))...), "ab", true},
		"it has the facts of one like the finding": {[]Evidence{ev("R", "a", 5, code("x"), message("m")), ev("R", "a", 5, message("m"))}, "bb",
			open(ev("R", "a", 5, message("m")), ev("R", "a", 5, message("m"))), "ab", true},
		"it has the facts of a closed one like the finding": {[]Evidence{ev("R", "a", 5, code("x"), message("m"))}, "b",
			append(open(ev("R", "a", 5, message("m"))), closed(ev("R", "a", 40, message("m")))...), "ab", true},
		"another one at another line has these facts":  {at(9, 12), "ba", open(at(9, 12)...), "aa", false},
		"it has its own one, and another one is new":   {at(9, 12), "ab", open(at(9)...), "a", false},
		"all state something new, as after an upgrade": {at(9, 12), "cd", open(at(9, 12)...), "ab", false},
		"others at another place did not move":         {at(10, 20, 20), "gfh", open(at(10, 20, 20)...), "ffh", false},
		"its own is that of one that did not move":     {at(9, 12), "bb", open(at(9, 12)...), "ab", false},
		"both at one place state the same new facts":   {at(9, 9), "cc", open(at(9, 9)...), "aa", false},
		"all moved by as many lines":                   {at(40, 30, 20), "gff", open(at(30, 20, 10)...), "fff", false},
		"one of them moved further":                    {at(20, 30, 41), "gff", open(at(10, 20, 30)...), "fff", true},
		"all moved, and a closed one is gone":          {at(40, 30, 20), "gff", append(open(at(30, 20, 10)...), closed(at(90)...)...), "fffh", false},
		"all moved, and its column changed": {append(at(30, 20), ev("R", "a", 40, hash("h"), column(2))), "ffg",
			open(at(30, 20, 10)...), "fff", true},
		"all moved, and another one is new":  {noCode(40, 30, 20, 70), "gffx", open(noCode(30, 20, 10)...), "fff", true},
		"all moved, and another one is gone": {noCode(40, 30, 20), "gff", open(noCode(30, 20, 10, 70)...), "fffx", true},
		"all moved to another file":          {elsewhere, "gff", open(at(10, 20, 30)...), "fff", false},
	} {
		known := slices.Clone(tc.known)
		muted(known[:1])
		matches := Recognise(Scan{
			Results: tc.results, Known: known, Job: func(int) string { return "" },
			ResultFacts: facts(tc.ofResults), KnownFacts: facts(tc.ofKnown),
		})
		at := slices.IndexFunc(matches, func(p Match) bool { return p.Known == 0 })
		if at < 0 || (matches[at].Doubt != "") != tc.doubted {
			t.Errorf("%s: want a doubt about the first finding: %t; %+v", reason, tc.doubted, matches)
		}
	}
}

// Facts that an earlier version did not store tell nothing, but the names do, unless a result has been added.
func TestLegacyFindingsAreToldApartByTheirNames(t *testing.T) {
	facts := func(texts ...string) func(int) Facts { return func(i int) Facts { return Facts{texts[i], texts[i]} } }
	at := func(messages ...string) (out []Evidence) {
		for _, text := range messages {
			out = append(out, ev("R", "a", 5, hash("h"), message(text)))
		}
		return out
	}
	two := []Evidence{ev("R", "a", 5, hash("h"), message("m")), ev("R", "a", 20, hash("h"), message("m"))}
	for reason, tc := range map[string]struct {
		results []Evidence
		known   func(int) Facts
		doubts  int
	}{
		"alike":                   {at("m", "m"), facts("a", "b"), 0},
		"with the same few facts": {at("m", "n"), facts("a", "a"), 0},
		"and another one":         {at("m", "m", "m"), facts("a", "b"), 2},
		"at two lines":            {two, facts("d", "d"), 0},
	} {
		known := append(muted(legacy(ev("R", "a", 5, hash("h")))), legacy(ev("R", "a", tc.results[1].Line, hash("h")))...)
		got, doubts := paired(len(tc.results), Recognise(Scan{
			Results: tc.results, Known: known, Named: []Match{{Result: 0, Known: 0}, {Result: 1, Known: 1}},
			ResultFacts: facts("c", "d", "e"), KnownFacts: tc.known, Job: func(int) string { return "" },
		}))
		harness.Same(t, reason+": recognised", []int{0, 1}, got[:2])
		harness.Same(t, reason+": doubts", tc.doubts, doubts)
	}
}

// Many similar files moved to another root: each is recognised, at a cost linear in their number.
func TestManyFilesAlikeThatMovedAreRecognised(t *testing.T) {
	const kinds, files = 4, 1000
	var before, after []Evidence
	for kind := range kinds {
		for i := range files {
			path := fmt.Sprintf("kind%d/file%04d.go", kind, i)
			before = append(before, ev(fmt.Sprintf("R%d", kind), path, 1, message("no licence")))
			after = append(after, ev(fmt.Sprintf("R%d", kind), "src/"+path, 1, message("no licence")))
		}
	}
	m := newMatcher(Scan{Results: after, Known: open(before...)})
	if moves := len(possibleMoves(m.goneFiles(), m.newFiles(), func(*move) bool { return false })); moves > maxPairs+2*maxMoves*kinds*files {
		t.Errorf("%d moves of %d files are looked at", moves, kinds*files)
	}
	for _, p := range Recognise(Scan{Results: after, Known: open(before...)}) {
		if "src/"+before[p.Known].Path != after[p.Result].Path {
			t.Fatalf("%s became %s", before[p.Known].Path, after[p.Result].Path)
		}
	}
	harness.Same(t, "recognised", kinds*files, len(Recognise(Scan{Results: after, Known: open(before...)})))
}

// Alike results that moved by different numbers of lines cost their number of pairs once, not once per move.
func TestManyResultsAlikeThatMovedDifferentlyCostTheirPairsOnce(t *testing.T) {
	const moves = 150
	apart := func(i int) int32 { return int32(i * i) } // so that no two shifts are equal by chance
	var known, oneByOne, twoByTwo []Evidence
	for i := range 2 * moves {
		line := int32(1_000_000 * i)
		known = append(known, ev("R", "a", line, message("m")))
		oneByOne = append(oneByOne, ev("R", "a", line+apart(i), message("m")))
		twoByTwo = append(twoByTwo, ev("R", "a", line+apart(i/2), message("m")))
	}
	for name, tc := range map[string]struct {
		results []Evidence
		rung    Rung
	}{"one by one": {oneByOne[1:], Message}, "two by two": {twoByTwo, Shift}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		matches := Recognise(Scan{Results: tc.results, Known: open(known...)})
		runtime.ReadMemStats(&after)
		harness.Same(t, name+": recognised", len(tc.results), len(matches))
		harness.Same(t, name+": by", tc.rung, matches[len(matches)/2].Rung)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<20 {
			t.Errorf("%s: %d MB are allocated for %d results", name, allocated>>20, len(tc.results))
		}
	}
}

// Lines that moved in many files cost each file its own results, not those of the whole scan.
func TestLinesThatMovedInManyFilesCostTheirFilesOnce(t *testing.T) {
	const files = 2000
	var known, results []Evidence
	for i := range files {
		path := fmt.Sprintf("file%04d.go", i)
		for line := range int32(2) {
			known = append(known, ev("R", path, 10*line+1, message("m")))
			results = append(results, ev("R", path, 10*line+4, message("m")))
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	matches := Recognise(Scan{Results: results, Known: open(known...)})
	runtime.ReadMemStats(&after)
	harness.Same(t, "recognised", len(results), len(matches))
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 128<<20 {
		t.Errorf("%d MB are allocated for %d results", allocated>>20, len(results))
	}
}

// Of too many alike to compare all, those at their places are recognised there, or all if they moved together.
func TestTooManyAlikeToCompareAllKeepTheirPlaces(t *testing.T) {
	const many = 501
	var before, oneGone, moved []Evidence
	for i := range int32(many) {
		before = append(before, ev("R", "a", 10*i, code("x")))
		oneGone = append(oneGone, ev("R", "a", 10*(i+1), code("x")))
		moved = append(moved, ev("R", "a", 10*i+3, code("x")))
	}
	oneGone[many-1].Line = 9000
	for name, tc := range map[string]struct {
		results []Evidence
		ofFirst int
		doubts  int
	}{
		"the first goes, and another comes": {oneGone, 1, 1},
		"all move":                          {moved, 0, 0},
		"the last goes":                     {before[:many-1], 0, 0},
		"all move, and the last goes":       {moved[:many-1], 0, many - 1},
	} {
		got, doubts := paired(len(tc.results), Recognise(Scan{Results: tc.results, Known: muted(open(before...))}))
		harness.Same(t, name+": doubts", tc.doubts, doubts)
		for i, known := range got {
			if want := (i + tc.ofFirst) % many; known != want {
				t.Fatalf("%s: result %d is finding %d, want %d", name, i, known, want)
			}
		}
	}
}

// Whether several at one place have changed is the same for all of them, and is found out once.
func TestManyResultsAtOnePlaceThatMovedAreComparedOnce(t *testing.T) {
	const many = 300
	best, compared := ties[0], 0
	t.Cleanup(func() { ties[0] = best })
	ties[0] = func(e *Evidence) (Evidence, bool) {
		compared++
		return best(e)
	}
	known := slices.Repeat([]Evidence{ev("R", "a", 5, code("x"))}, many)
	now := slices.Repeat([]Evidence{ev("R", "a", 9, code("x"))}, many)
	harness.Same(t, "recognised", many, len(Recognise(Scan{Results: now, Known: open(known...)})))
	if compared > 10*many {
		t.Errorf("%d results are compared %d times", many, compared)
	}
}

// Masked code tells them apart, and each is looked up once for it, also before its digest was stored.
func TestManyResultsWithMaskedCodeAtOnePlaceAreComparedOnce(t *testing.T) {
	const many = 300
	compared := 0
	for _, spotOf := range []*func(*Evidence) spot{&withMasked, &atPlace} {
		original := *spotOf
		t.Cleanup(func() { *spotOf = original })
		*spotOf = func(e *Evidence) spot {
			compared++
			return original(e)
		}
	}
	var now []Evidence
	for i := range many {
		now = append(now, ev("R", "a", 5, message("m"), masked(strconv.Itoa(i))))
	}
	backwards := slices.Clone(now)
	slices.Reverse(backwards)
	notStored := slices.Repeat([]Evidence{ev("R", "a", 5, message("m"))}, many)
	for name, known := range map[string][]Evidence{"backwards": backwards, "after an upgrade": notStored} {
		compared = 0
		harness.Same(t, name+": recognised", many, len(Recognise(Scan{Results: now, Known: open(known...)})))
		if compared > 4*many {
			t.Errorf("%s: %d results are compared %d times", name, many, compared)
		}
	}
}

// The facts of several alike at one place are read once per rung, and not again for each of many places.
func TestTheFactsOfManyAlikeAtOnePlaceAreReadOnce(t *testing.T) {
	const many = 300
	calls := 0
	facts := func(from int) func(int) Facts {
		return func(i int) Facts {
			calls++
			return Facts{"lines " + strconv.Itoa(from+i), "distances " + strconv.Itoa(from+i)}
		}
	}
	var here, apart []Evidence
	for i := range many {
		here, apart = append(here, ev("R", "a", 1, message("m"))), append(apart, ev("R", "a", int32(3+i), message("m")))
	}
	more := ev("S", "b", 1) // so that no rung is the last one
	for name, tc := range map[string]struct{ results, known []Evidence }{
		"findings": {append(apart, more), here}, "results": {append(here, more), apart},
	} {
		calls = 0
		matches := Recognise(Scan{
			Results: tc.results, Known: open(tc.known...), Job: func(int) string { return "" },
			ResultFacts: facts(0), KnownFacts: facts(many),
		})
		harness.Same(t, name+": recognised", many, len(matches))
		if calls > 100*many {
			t.Errorf("%s at one place: the facts of %d are read %d times", name, many, calls)
		}
	}
	calls = 0
	Recognise(Scan{
		Results: []Evidence{ev("R", "a", 9, code("x"))}, Known: muted(open(ev("R", "a", 5, code("x")))),
		Job: func(int) string { return "" }, ResultFacts: facts(0), KnownFacts: facts(many),
	})
	harness.Same(t, "facts of a decided one that nothing resembles", 0, calls)
}

// A vulnerability may be reported under another of its ids.
func TestAVulnerabilityIsKnownByItsAliases(t *testing.T) {
	ids := map[string]string{"CVE-1": "CVE-1\nGHSA-1", "CVE-3": "CVE-3\nXRAY-1", "GHSA-2": "GHSA-2\nXRAY-1", "CVE-4": "CVE-4\nCVE-1"}
	by := func(id, name string) Evidence {
		return Evidence{
			Rule: id, Path: "go.sum", Vulnerability: id, Aliases: "CVE-1", IDs: ids[id], Package: name, Message: id,
		}
	}
	got := Recognise(Scan{Results: []Evidence{by("CVE-1", "ssl"), by("CVE-1", "crypto")}, Known: open(by("GHSA-1", "crypto"), by("GHSA-1", "ssl"))})
	want := []Match{{Result: 0, Known: 1, Rung: Package}, {Result: 1, Known: 0, Rung: Package}}
	harness.Same(t, "recognised", want, got)

	in := func(id, version string) Evidence {
		e := by(id, "ssl")
		e.Version, e.Message = version, "m"
		return e
	}
	got = Recognise(Scan{Results: []Evidence{in("CVE-1", "1"), in("CVE-1", "2")}, Known: open(in("GHSA-1", "2"), in("GHSA-1", "1"))})
	harness.Same(t, "the version tells two packages apart", want, got)
	got = Recognise(Scan{Results: []Evidence{in("CVE-2", "1"), in("CVE-3", "1")}, Known: open(in("CVE-1", "1"), in("CVE-2", "1"))})
	want = []Match{{Result: 0, Known: 1, Rung: Unchanged}, {Result: 1, Known: 0, Rung: Package, Doubt: DoubtVulnerability}}
	harness.Same(t, "but not two vulnerabilities that an id joins", want, got)
	ofLock := func(id string) Evidence {
		return Evidence{Rule: "outdated", Path: "go.sum", Vulnerability: id, Package: "ssl", Snippet: "ssl v1", Message: "m"}
	}
	for _, tc := range []struct {
		reason    string
		was, is   Evidence
		rung      Rung
		wantDoubt Doubt
	}{
		{"one that replaces another with an id of both", in("CVE-1", "1"), in("CVE-3", "1"), Package, DoubtVulnerability},
		{"one that replaces another at the same code", ofLock("CVE-1"), ofLock("CVE-3"), Snippet, DoubtVulnerability},
		{"one that names the one that it replaces", in("CVE-1", "1"), in("CVE-4", "1"), Package, DoubtVulnerability},
		{"one that gets a CVE", in("GHSA-1", "1"), in("CVE-1", "1"), Package, ""},
		{"one that loses its CVE", in("CVE-1", "1"), in("GHSA-1", "1"), Package, ""},
		{"two that only a third id joins", in("GHSA-2", "1"), in("CVE-3", "1"), Package, DoubtVulnerability},
		{"two without a CVE at the same code", ofLock("GHSA-1"), ofLock("GHSA-2"), Snippet, DoubtVulnerability},
		{"the CVE of an advisory at the same code", ofLock("RHSA-1"), ofLock("CVE-1"), Snippet, DoubtVulnerability},
	} {
		got = Recognise(Scan{Results: []Evidence{tc.is}, Known: open(tc.was)})
		harness.Same(t, tc.reason, []Match{{Rung: tc.rung, Doubt: tc.wantDoubt}}, got)
	}
}
