package attack

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// pairs calls attack for every pair of organizations.
func pairs(t *testing.T, attack func(t *testing.T, attacker, victim *tenant)) {
	t.Helper()
	for _, attacker := range tenants(t) {
		for _, victim := range tenants(t) {
			if attacker != victim {
				t.Run(attacker.name+"-attacks-"+victim.name, func(t *testing.T) { attack(t, attacker, victim) })
			}
		}
	}
}

// takes reports whether the attacker sends the i-th value of a table in the n-th place where the table is used. In the
// short form, each of the two organizations sends one of so many values, and these change with the place: both attack
// each place. With one of two, each place gets each value; with one of more, a value skips places, perhaps all those
// of one kind.
func takes(t *testing.T, attacker *tenant, n, i, oneOf int) bool {
	t.Helper()
	return full || (n+i)%oneOf == slices.Index(tenants(t), attacker)
}

// craftedOneOf returns oneOf for the hundred crafted values in a parameter. Of the hundreds of places, few hold an id:
// these get all values.
func craftedOneOf(op operation, parameter string) int {
	if op.kindOf(parameter) != "" {
		return 2
	}
	return 12
}

// tells reports whether an answer contains information about the victim that was not in the
// request.
func (o *tenant) tells(a *answer, s shot) bool {
	if a.holds(o.marker) {
		return true
	}
	asked := strings.ToLower(fmt.Sprint(s.path, s.body, s.header))
	return slices.ContainsFunc([]string{o.mark, o.name, o.namespace, o.sent.id, o.ids["triage-operation"]}, func(known string) bool {
		return a.holds(known) && !strings.Contains(asked, known)
	})
}

// fire sends the attacker's shot at the victim: it must not succeed, reveal anything about the
// victim, or cause an internal error.
func fire(t *testing.T, attacker, victim *tenant, s shot, allowed ...int) *answer {
	t.Helper()
	a := target.facade.send(t, attacker.token, s)
	switch {
	case victim.tells(a, s):
		attempt(t, isolation, false, "%s: the answer is the victim's: %s\n%s", s, a, a.headers())
	case !slices.Contains(allowed, a.status):
		attempt(t, isolation, false, "%s: got %s, want one of %v", s, a, allowed)
	default:
		attempt(t, isolation, true, "")
	}
	return a
}

// The answers to an organization's own requests must contain its marker in every text; otherwise
// the tests here would search for something that is never sent.
func TestIsolation_OwnAnswersHoldTheMarkerInEveryText(t *testing.T) {
	// Values that are the same for everybody: enumerated values, scopes and times.
	common := regexp.MustCompile(`^([a-z_]{1,14}|(findings|repos|reviews|webhooks|policies|keys):[a-z]+|used-in-tests|github|CWE-\d+|HTTP|GET|Code|webhook\.ping|WebhookEndpoint|\d{4}-\d\d-\d\dT[\d:]+Z|)$`)
	o := tenants(t)[0]
	for _, op := range operations(t) {
		if op.method != http.MethodGet {
			continue
		}
		a := target.facade.send(t, o.token, op.shotAt(t, o.ids, o.sent))
		if a.status != http.StatusOK {
			t.Fatalf("%s: %s; seed what it shows", op.id, a)
		}
		for path, text := range texts(t, a) {
			mine := strings.Contains(text, o.marker) || strings.Contains(text, o.mark) || text == o.name || text == o.sent.id || text == o.ids["triage-operation"]
			// Conditions and why a decision failed are written by the controllers, the seed's author is the tests'
			// administrator, and the API server sets UIDs.
			anybodys := strings.Contains(path, "conditions") || strings.HasSuffix(path, "author") || strings.HasSuffix(path, ".uid") ||
				strings.Contains(path, "failures") && strings.HasSuffix(path, ".message")
			if !mine && !anybodys && !common.MatchString(text) && !strings.HasSuffix(path, "next_cursor") {
				t.Errorf("%s: %s is %q, which does not show whose it is: have seed set it", op.id, path, text)
			}
		}
	}
}

// A foreign id is answered like one that does not exist, in every operation and for each of its
// parameters.
func TestIsolation_ForeignIDsAreAnsweredLikeAbsentOnes(t *testing.T) {
	pairs(t, func(t *testing.T, attacker, victim *tenant) {
		for _, op := range operations(t) {
			if own := target.facade.send(t, attacker.token, op.shotAt(t, attacker.ids, attacker.sent)); !op.hits(own) {
				t.Fatalf("%s: own ids: %s; a shot that never hits proves nothing", op.id, own)
			}
			for _, aim := range aims(op, attacker) {
				absent := victim.absent()
				foreign := op.shotAt(t, aim(victim.ids), victim.sent)
				missing := op.shotAt(t, aim(absent), victim.sent)
				for i, s := range withHead(foreign) {
					a := fire(t, attacker, victim, s, http.StatusNotFound, http.StatusOK)
					b := target.facade.send(t, attacker.token, withHead(missing)[i])
					hides := a.same(b) && (op.isOfMany() || a.status == http.StatusNotFound)
					attempt(t, isolation, hides, "%s: foreign %s\n%sabsent %s\n%s", s, a, a.headers(), b, b.headers())
				}
			}
		}
		victim.unharmed(t)
	})
}

// aims returns which ids are replaced by the victim's: all of them, and each one alone among the
// attacker's own.
func aims(op operation, attacker *tenant) []func(ids map[string]string) map[string]string {
	all := []func(map[string]string) map[string]string{func(ids map[string]string) map[string]string { return ids }}
	for _, name := range op.inPath {
		all = append(all, func(ids map[string]string) map[string]string {
			out := maps.Clone(attacker.ids)
			out[op.kindOf(name)] = ids[op.kindOf(name)]
			return out
		})
	}
	return all
}

// signature matches a signature of an API key, in any member or annotation. In the annotation of a redelivery, a slash
// and more follow.
var signature = regexp.MustCompile(`"apikey/[^"/]*`)

// unharmed expects that the victim's objects still exist, and that only its own keys have signed anything in its
// namespace.
func (o *tenant) unharmed(t *testing.T) {
	t.Helper()
	for id, object := range map[string]client.Object{
		"finding": &v1alpha1.Finding{}, "issue": &v1alpha1.ReviewIssue{}, "policy": &v1alpha1.TriagePolicy{}, "delivery": &v1alpha1.WebhookDelivery{},
	} {
		err := target.env.Client.Get(t.Context(), client.ObjectKey{Namespace: o.namespace, Name: o.ids[id]}, object)
		attempt(t, isolation, err == nil, "the %s of %s: %v", id, o.name, err)
	}
	signed := 0
	for kind := range target.env.Scheme.KnownTypes(v1alpha1.GroupVersion) {
		if !strings.HasSuffix(kind, "List") {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
		harness.Must(t, target.env.Client.List(t.Context(), list, client.InNamespace(o.namespace)))
		for _, object := range list.Items {
			for _, by := range signature.FindAllString(string(harness.JSON(t, object.Object)), -1) {
				signed++
				attempt(t, isolation, strings.Contains(by, o.mark) || strings.Contains(by, o.marker),
					"%s %s of %s is signed by %s", object.GetKind(), object.GetName(), o.name, by)
			}
		}
	}
	if signed == 0 {
		t.Fatalf("nothing in %s is signed by a key, so nothing is proven", o.namespace)
	}
}

// Ids in queries and bodies are also limited to the caller's organization.
func TestIsolation_ForeignIDsInQueriesAndBodies(t *testing.T) {
	pairs(t, func(t *testing.T, attacker, victim *tenant) {
		for _, op := range operations(t) {
			own := op.shotAt(t, attacker.ids, attacker.sent)
			absent := victim.absent()
			for _, name := range op.inQuery {
				kind := op.kindOf(name)
				if kind == "" {
					continue
				}
				a := fire(t, attacker, victim, withQuery(own, name, victim.ids[kind]), http.StatusOK, http.StatusNotFound)
				b := target.facade.send(t, attacker.token, withQuery(own, name, absent[kind]))
				attempt(t, isolation, a.same(b), "%s: %s: foreign %s, absent %s", own, name, a, b)
				if op.isOfMany() {
					attempt(t, isolation, op.isOfNothing(t, a), "%s: %s: %s", own, name, a)
				} else {
					attempt(t, isolation, a.status == http.StatusNotFound, "%s: %s: %s", own, name, a)
				}
			}
			for name := range op.body {
				if kind := op.kindOf(name); kind != "" {
					s, missing := own, own
					s.body = strings.Replace(own.body, "{", `{"`+name+`":"`+victim.ids[kind]+`",`, 1)
					missing.body = strings.Replace(own.body, "{", `{"`+name+`":"`+absent[kind]+`",`, 1)
					a, b := fire(t, attacker, victim, s, http.StatusNotFound), target.facade.send(t, attacker.token, missing)
					attempt(t, isolation, a.same(b), "%s: foreign %s, absent %s", s, a, b)
				}
			}
		}
		victim.unharmed(t)
	})
}

func withQuery(s shot, name, value string) shot {
	separator := "?"
	if strings.Contains(s.path, "?") {
		separator = "&"
	}
	s.path += separator + name + "=" + url.QueryEscape(value)
	return s
}

// forgedCursors returns the cursor changed at every position, cut and extended.
func forgedCursors(cursor string) []string {
	out := []string{cursor + "A", cursor + "=", cursor + "\n", " " + cursor, cursor[1:], cursor[:len(cursor)-1], cursor + cursor, strings.ToUpper(cursor), cursor + "\x00", strings.Repeat("A", 4096), strings.Repeat("A", 4097), "AQ", "e30", "null", "0", "-1"}
	step := 1
	if !full {
		step = max(1, len(cursor)/16)
	}
	for i := 0; i < len(cursor); i += step {
		changed := []byte(cursor)
		if changed[i] = 'A'; cursor[i] == 'A' {
			changed[i] = 'B'
		}
		out = append(out, string(changed))
	}
	return out
}

// Ids that try to escape from the organization find nothing, wherever they are used.
func TestIsolation_CraftedIDsFindNothing(t *testing.T) {
	pairs(t, func(t *testing.T, attacker, victim *tenant) {
		place := 0
		for _, op := range operations(t) {
			for _, name := range op.inPath {
				place++
				for i, value := range craftedValues(victim, victim.ids[op.kindOf(name)]) {
					if !takes(t, attacker, place, i, craftedOneOf(op, name)) {
						continue
					}
					for _, crafted := range segments(value) {
						values := op.idsFor(t, attacker.ids)
						for other := range values {
							values[other] = url.PathEscape(values[other])
						}
						values[name] = crafted
						s := op.shotWith(values, victim.sent)
						fire(t, attacker, victim, s, http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed)
					}
				}
			}
			for _, name := range op.inQuery {
				place++
				for i, crafted := range craftedValues(victim, victim.ids[kindOr(op, name)]) {
					if takes(t, attacker, place, i, craftedOneOf(op, name)) {
						fire(t, attacker, victim, withQuery(op.shotAt(t, attacker.ids, attacker.sent), name, crafted),
							http.StatusOK, http.StatusBadRequest, http.StatusNotFound)
					}
				}
			}
		}
		victim.unharmed(t)
	})
}

func kindOr(op operation, name string) string {
	if kind := op.kindOf(name); kind != "" {
		return kind
	}
	return "finding"
}

// craftedValues returns texts with a special meaning to some layer.
func craftedValues(victim *tenant, id string) []string {
	n := victim.namespace
	return []string{
		n + "/" + id, "/" + n + "/" + id, "../" + n + "/" + id, "../../" + n + "/findings/" + id, "..\\" + n + "\\" + id,
		"../../../../apis/appsec.dev/v1alpha1/namespaces/" + n + "/findings/" + id, "..", ".", "../..", "...", "%2e%2e%2f" + n + "%2f" + id,
		"%252e%252e%252f" + n + "%252f" + id, "..%2f" + id, n + "%2f" + id, n + "%252f" + id, "..;/" + n + "/" + id,
		id + "/", "/" + id, id + "//", id + "/status", id + "/scale", id + "?x=y", id + "#x", id + ";x", id + "\x00", "\x00" + id, id + "\x00.json", id + "%00",
		id + "\r\nX-Injected: yes", id + "%0d%0aX-Injected: yes", id + "\t", " " + id, id + " ", id + "\u200b", id + "\u00ad", "\ufeff" + id, id + "\u202e",
		strings.ReplaceAll(id, "a", "\u0430"), fullWidth(id), strings.ToUpper(id), strings.ReplaceAll(id, "-", "\u2010"), id + "\u0301", "\u2024\u2024\u2215" + n,
		"/spec/details", "~1" + id, "~0" + id, "#/" + id, "/metadata/name", "$.items[0]", "metadata.name=" + id, "metadata.namespace=" + n + ",metadata.name=" + id,
		"metadata.name!=x", "name in (" + id + ")", "!name", "app=" + n, "*", id + "*", id[:4] + "*", ".*", "^" + id, id + "," + id, id + "|" + id,
		"' OR '1'='1", `" OR ""="`, `{"$ne":null}`, `{"$gt":""}`, "${jndi:ldap://" + id + "}", "{{7*7}}", "$(" + id + ")", "`" + id + "`", "<" + id + ">",
		victim.name + "/" + id, victim.name + ":" + id, n + ":" + id, n + "." + id, id + "@" + n, id + "." + n, "null", "undefined", "0", "-1", "true", "[]", "{}",
		strings.Repeat("a", 253), strings.Repeat("a", 254), id + strings.Repeat("a", 253-len(id)), id + strings.Repeat("\x00", 10), strings.Repeat("../", 80),
		strings.Repeat("a", 8000), strings.Repeat("\u20ac", 84), "\xff\xfe", "\xc0\xae\xc0\xae\xc0\xaf" + id, "\xed\xa0\x80" + id, id + "\x7f", id + "\u0085",
	}
}

// segments returns the value as a segment of a path, encoded once, twice, and as little as a request line allows.
func segments(value string) []string {
	out := []string{url.PathEscape(value), url.PathEscape(url.PathEscape(value))}
	if !strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("?#", r) }) {
		out = append(out, value)
	}
	return slices.Compact(out)
}

func fullWidth(id string) string {
	return strings.Map(func(r rune) rune { return r - '!' + '\uff01' }, id)
}

// Only the key determines the organization of a request.
func TestIsolation_NothingButTheKeyNamesTheOrganization(t *testing.T) {
	pairs(t, func(t *testing.T, attacker, victim *tenant) {
		place := 0
		for _, op := range operations(t) {
			foreign := op.shotAt(t, victim.ids, victim.sent)
			for _, name := range []string{
				"X-Organization", "X-Organization-Id", "X-Org", "X-Tenant", "X-Tenant-Id", "X-Namespace", "Impersonate-User", "Impersonate-Group",
				"X-Remote-User", "X-Remote-Group", "X-Forwarded-User", "X-Forwarded-Host", "X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override", "Host", "Forwarded", "Cookie", "X-Api-Key",
			} {
				place++
				for i, value := range []string{victim.name, victim.namespace, foreign.path} {
					if takes(t, attacker, place, i, 2) {
						fire(t, attacker, victim, foreign.with(name, value), http.StatusNotFound, http.StatusOK)
					}
				}
			}
			if !op.isList() {
				continue
			}
			own := shot{method: op.method, path: op.listOf(t, attacker)}
			before := target.facade.send(t, attacker.token, own)
			for _, name := range []string{
				"organization", "organization_id", "org", "tenant", "namespace", "ns", "labelSelector", "fieldSelector", "allNamespaces", "limit", "continue", "access_token", "api_key", "key",
			} {
				place++
				for i, value := range []string{victim.name, victim.namespace, "metadata.namespace=" + victim.namespace, victim.token, "true"} {
					if !takes(t, attacker, place, i, 2) {
						continue
					}
					s := withQuery(own, name, value)
					a := fire(t, attacker, victim, s, http.StatusOK)
					held := a.same(before)
					if !held { // or a controller has written since: then the attacker's own page is another, too
						before = target.facade.send(t, attacker.token, own)
						held = a.same(before)
					}
					attempt(t, isolation, held, "%s: the page is another: %s", s, a)
				}
			}
		}
	})
}

// A tag of another organization's resource confirms nothing.
func TestIsolation_ForeignTagsRevealNothing(t *testing.T) {
	pairs(t, func(t *testing.T, attacker, victim *tenant) {
		for _, op := range operations(t) {
			s := op.shotAt(t, victim.ids, victim.sent)
			tags := []string{"*", `"x"`}
			if tag := target.facade.send(t, victim.token, s).header.Get("Etag"); tag != "" {
				tags = append(tags, tag)
			}
			if op.isOfMany() {
				continue
			}
			for _, tag := range tags {
				for _, name := range []string{"If-None-Match", "If-Match"} {
					want := http.StatusNotFound
					if name == "If-Match" && op.id == "updateTriagePolicy" { // refused before the policy is looked up
						want = http.StatusBadRequest
					}
					fire(t, attacker, victim, s.with(name, tag), want)
				}
			}
		}
		victim.unharmed(t)
	})
}
