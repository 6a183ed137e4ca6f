package dataset

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// shape holds what the findings of one rule have in common. The shapes resemble the output of
// scanners of code, packages and secrets: some have a short description and show code, some
// describe an advisory at length with references.
type shape struct {
	tool        string
	category    v1alpha1.FindingCategory
	rule, class string
	severity    v1alpha1.Level
	title       string
	description string
	remediation string
	code        string
	fingerprint string
	extension   string
	// weight is how often the shape occurs, relative to the others.
	weight int
}

// Rare is the class of a rare finding: one in RareEvery.
const (
	Rare      = "CWE-1333"
	RareEvery = 2_000
)

var shapes = []shape{
	{
		tool: "semgrep", category: v1alpha1.CategoryCode, rule: "go.lang.security.audit.database.string-formatted-query", class: "CWE-89",
		severity: v1alpha1.LevelHigh, title: "A query is put together from strings", extension: ".go", weight: 10, fingerprint: "matchBasedId/v1",
		description: "A value that comes from outside is put into the text of a query. Whoever sends the value decides what the database does: it may read what it should not, change it, or remove it. " +
			"The value reaches this line from a handler's parameter without being checked on the way, and the account that the service uses may write to all tables of the schema. " +
			"Formatting functions do not quote: a quotation mark in the value ends the literal, and what follows it is read as part of the statement. " +
			"That the value is a number in the user interface changes nothing, since requests are not made by the user interface alone.",
		remediation: "Give the value to the driver as an argument and leave a placeholder in the text of the query. Where a column or a table is to be chosen, compare with a list of those that may be chosen. " +
			"Take the right to change the schema from the account that the service uses. A query builder that quotes identifiers is the better way where queries are made of many optional parts.",
		code: "rows, err := s.db.QueryContext(ctx, fmt.Sprintf(\n\t\"SELECT id, customer, total, created_at FROM orders WHERE customer = '%s' ORDER BY %s LIMIT %d\",\n\trequest.URL.Query().Get(\"customer\"), request.URL.Query().Get(\"sort\"), pageSize))\nif err != nil {\n\treturn nil, fmt.Errorf(\"list the customer's orders: %w\", err)\n}\ndefer rows.Close()",
	},
	{
		tool: "codeql", category: v1alpha1.CategoryCode, rule: "js/reflected-xss", class: "CWE-79",
		severity: v1alpha1.LevelMedium, title: "A parameter is written into a page as it came", extension: ".ts", weight: 9, fingerprint: "primaryLocationLineHash",
		description: "The parameter `next` of the request is written into the answer's HTML without being escaped. A link that holds a script in this parameter makes the browser of whoever follows it run that script with the rights of this site: " +
			"it may read the session, act in the person's name, and show what it likes. The path from the parameter to the answer has four steps, of which none escapes or checks. " +
			"The site sets no policy that would keep inline scripts from running.",
		remediation: "Let the template escape what it writes, and mark nothing as safe that has come from outside. For a link, accept paths of this site alone. Set a content security policy without `unsafe-inline` as a second line.",
		code:        "router.get('/login', (request, response) => {\n  const next = String(request.query.next ?? '/');\n  response.type('html').send(\n    layout(`<a class=\"button\" href=\"${next}\">Continue to where you were</a>`, { title: 'Signed in' }),\n  );\n});",
	},
	{
		tool: "trivy", category: v1alpha1.CategoryPackage, rule: "CVE-2099-10417", class: "CWE-400",
		severity: v1alpha1.LevelHigh, title: "A header of many small parts keeps the server busy", extension: ".mod", weight: 14, fingerprint: "advisory/v1",
		description: "Package: example.org/net/frames\nInstalled version: v0.17.0\nVulnerability CVE-2099-10417\nSeverity: HIGH\nFixed version: v0.23.0\n\n" +
			"An attacker may make a server of this protocol read arbitrary amounts of header data by sending an endless number of continuation frames. To keep the state of the decoder right, headers must be parsed although the request is refused. " +
			"Where a request's headers exceed the maximum, no memory is taken for what is too much, but it is still parsed: a client can make the server parse headers for a request that will be refused in any case. " +
			"These headers can be compressed in a form that costs far more to decode than to send. The mended version sets a limit to how many frames it reads before it closes the connection.\n\n" +
			"References: https://advisories.example.org/CVE-2099-10417 https://example.org/net/frames/issues/65051 https://lists.example.org/announce/2099-04-03",
		remediation: "Raise example.org/net/frames to v0.23.0 or later, which is compatible, and release anew. Until then let the load balancer in front end connections that send more than a hundred continuation frames.",
		code:        "require (\n\texample.org/net/frames v0.17.0\n)",
	},
	{
		tool: "osv-scanner", category: v1alpha1.CategoryPackage, rule: "OSV-2099-0317", class: "CWE-1321",
		severity: v1alpha1.LevelMedium, title: "Merging an object may change the prototype of all", extension: ".json", weight: 12, fingerprint: "advisory/v1",
		description: "## Impact\nThe function `merge` of the package copies keys named `__proto__` and `constructor`. An application that merges what a client sent into an object of its own lets that client add members to every object of the process. " +
			"What that leads to depends on the application: checks that look for a member are passed, defaults are replaced, and in templates it has led to code being run.\n\n## Patches\nVersions 4.6.2 and 5.1.0 leave these keys out.\n\n" +
			"## Workarounds\nRemove the keys before merging, or make the target with a null prototype. Freezing the prototype of Object at the start of the process works too, where no library depends on changing it.\n\n" +
			"## References\n* https://advisories.example.org/OSV-2099-0317\n* https://example.org/deep-merge/pull/412\n* https://blog.example.org/prototype-pollution-again",
		remediation: "Raise deep-merge to 4.6.2. It comes by way of `config-loader`, whose version 2.3.1 asks for it. The lock file must be written anew; nothing in the code changes.",
		code:        "    \"node_modules/deep-merge\": {\n      \"version\": \"4.6.1\",\n      \"resolved\": \"https://packages.example.org/deep-merge/-/deep-merge-4.6.1.tgz\",\n      \"dev\": false\n    }",
	},
	{
		tool: "gitleaks", category: v1alpha1.CategorySecret, rule: "generic-api-key", class: "CWE-798",
		severity: v1alpha1.LevelHigh, title: "A key of a service is in the repository", extension: ".yaml", weight: 5, fingerprint: "commitFingerprint/v1",
		description: "A string that looks like a key was found by the name before it and by how random it is. Whoever can read the repository, or a copy of it that was made at any time, can use the key. " +
			"Removing the line does not help, since the history keeps it. The line was added by a commit that is part of three release branches.",
		remediation: "Make a new key where it comes from, withdraw this one, and read the new one from a secret store at the start. Look through the service's own log for uses of the old key that were not yours. Rewriting history is worth the trouble only after the key is withdrawn.",
	},
	{
		tool: "gosec", category: v1alpha1.CategoryCode, rule: "G402", class: "CWE-295",
		severity: v1alpha1.LevelHigh, title: "Certificates are not checked", extension: ".go", weight: 6, fingerprint: "matchBasedId/v1",
		description: "TLS InsecureSkipVerify set true. The connection is encrypted, and nobody knows to whom: whoever stands between the two ends can answer in the name of the server, read everything, and change it. " +
			"The client is used for calls that carry the user's token. The comment beside it says that this is for the test environment, but no build leaves it out of what is released.",
		remediation: "Remove the setting, and add the authority of the test environment to the pool of roots where it is needed. Set the lowest version to TLS 1.2.",
		code:        "transport := &http.Transport{\n\tTLSClientConfig: &tls.Config{\n\t\tInsecureSkipVerify: true, // the staging certificate is self-signed\n\t},\n\tMaxIdleConnsPerHost: 32,\n\tIdleConnTimeout:     90 * time.Second,\n}\nclient := &http.Client{Transport: transport, Timeout: 10 * time.Second}",
	},
	{
		tool: "checkov", category: v1alpha1.CategoryCode, rule: "CKV_K8S_38", class: "CWE-250",
		severity: v1alpha1.LevelLow, title: "The token of a service account is mounted where nothing uses it", extension: ".yaml", weight: 11, fingerprint: "resource/v1",
		description: "Every container of the pod can read the token of its service account, and with it ask the API server for whatever that account may do. The program does not talk to the API server. " +
			"If it is taken over, the token is the way on from there. Deployment default.payments-worker, container worker, resource kind Deployment, guideline 4.1.6.",
		remediation: "Set automountServiceAccountToken to false in the pod's spec, or in the service account, and bind no roles to that account.",
		code:        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: payments-worker\nspec:\n  template:\n    spec:\n      serviceAccountName: payments\n      containers:\n        - name: worker\n          image: registry.example.org/payments/worker:1.42.0\n          resources:\n            limits: {cpu: 500m, memory: 256Mi}",
	},
	{
		tool: "semgrep", category: v1alpha1.CategoryCode, rule: "python.lang.security.deserialization.pickle", class: "CWE-502",
		severity: v1alpha1.LevelHigh, title: "Data from outside is unpickled", extension: ".py", weight: 6, fingerprint: "matchBasedId/v1",
		description: "Unpickling runs code that the data names. The data comes from a queue that three services write to, of which one takes it from uploads. It carries no signature, so whoever can write to the queue can run code here, " +
			"with the rights of the worker: it reads the model store and writes to the result table. A check of the type comes after the object has been made, when it is too late.",
		remediation: "Use a format that holds data alone, such as JSON, and check it against a schema. Where the objects are too rich for that, sign the messages and verify before they are read.",
		code:        "def handle(self, message: Message) -> None:\n    job = pickle.loads(base64.b64decode(message.body))\n    if not isinstance(job, ScoringJob):\n        raise TypeError(f\"unexpected job {type(job)!r}\")\n    self.results.put(job.id, self.model.score(job.features))",
	},
	{
		tool: "codeql", category: v1alpha1.CategoryCode, rule: "java/path-injection", class: "CWE-22",
		severity: v1alpha1.LevelMedium, title: "A path depends on what a client sent", extension: ".java", weight: 8, fingerprint: "primaryLocationLineHash",
		description: "The name of the file is taken from the request and joined to a folder. A name with `../` leads out of the folder, and an absolute one replaces it. The service can read its own configuration and the credentials that are mounted beside it. " +
			"The same value is logged before, so an attempt can be seen in the log. The method is reached by two endpoints, of which one needs no login.",
		remediation: "Resolve the path, then see whether it is still within the folder, and refuse it otherwise. Better: keep a table of identifiers and names, and let clients send identifiers.",
		code:        "@GetMapping(\"/statements/{name}\")\npublic ResponseEntity<Resource> statement(@PathVariable String name, Principal principal) throws IOException {\n    log.info(\"statement {} asked for by {}\", name, principal.getName());\n    Path file = folder.resolve(principal.getName()).resolve(name);\n    return ResponseEntity.ok().contentType(MediaType.APPLICATION_PDF).body(new PathResource(file));\n}",
	},
	{
		tool: "grype", category: v1alpha1.CategoryPackage, rule: "CVE-2098-44487", class: "CWE-770",
		severity: v1alpha1.LevelHigh, title: "Streams that are opened and reset at once use up the server", extension: ".lock", weight: 10, fingerprint: "advisory/v1",
		description: "The protocol allows a client to open a stream and to cancel it at once. The server has begun to work on it by then, and the stream no longer counts against the limit of those that are open at a time, so that a single connection can cause any amount of work. " +
			"It was used for attacks between August and October. The mended version counts the streams that were reset and closes a connection that resets too many.\n\nPackage: libframe 1.57.0-1 (deb), in the image's layer 3, at /var/lib/dpkg/status.d/libframe. " +
			"EPSS 0.94, listed as exploited. No other package of the image needs this one but the http client, which opens streams itself and is not affected by what it receives.",
		remediation: "Build the image anew on the base of this month, which has libframe 1.57.0-2. No change of the Dockerfile is needed but for the digest of the base.",
		code:        "FROM registry.example.org/base/debian@sha256:1f9d0a0c9a31c7e0f4b5b1ffb1a4f4f5d7b0b6d6e9a1c0ce9a5b0f7b21bb6b8f",
	},
}

// rare occurs once in RareEvery findings, for filters that few findings match.
var rare = shape{
	tool: "semgrep", category: v1alpha1.CategoryCode, rule: "javascript.lang.security.audit.regex-dos", class: Rare,
	severity: v1alpha1.LevelLow, title: "An expression takes long for some texts", extension: ".js", fingerprint: "matchBasedId/v1",
	description: "The regular expression has nested repetitions. For a text of thirty characters that almost matches it takes minutes, and the process does nothing else meanwhile. The text comes from a form.",
	remediation: "Write the expression without nested repetitions, or bound the length of the text before.",
	code:        "const address = /^([a-zA-Z0-9_.+-]+)+@([a-zA-Z0-9-]+\\.)+[a-zA-Z]{2,}$/;\nif (!address.test(form.get('email'))) {\n  return reject('email');\n}",
}

// byWeight contains each shape as often as its weight.
var byWeight = func() []*shape {
	var out []*shape
	for i := range shapes {
		for range shapes[i].weight {
			out = append(out, &shapes[i])
		}
	}
	return out
}()
