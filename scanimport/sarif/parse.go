package sarif

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// version is the only supported version of SARIF.
const version = "2.1.0"

// Options of Parse.
type Options struct {
	// Limits of the input; zero: DefaultLimits.
	Limits Limits
	// SourceRoot is the folder, on the scanning machine, that paths are relative to. Empty: use the roots in the file.
	SourceRoot string
	// LateSourceRoot returns the SourceRoot after the whole file was read; nil: use SourceRoot.
	LateSourceRoot func() (string, error)
	// Reserve is called for each result and each rule of fewer than MinEntry bytes, with the number of missing ones. Its
	// error refuses the file. nil: not called.
	Reserve func(bytes int) error
}

// Parse reads one file. The error explains to users why the file is refused, without naming the file.
func Parse(r io.Reader, options Options) (*Log, error) {
	if options.Limits == (Limits{}) {
		options.Limits = DefaultLimits
	}
	// A byte order mark decides the encoding: PowerShell writes UTF-16, .NET writes UTF-8 with a mark.
	decoded := transform.NewReader(r, unicode.BOMOverride(transform.Nop))
	bounded := &boundedReader{source: decoded, limits: options.Limits}
	p := &parser{decoder: json.NewDecoder(bounded), source: bounded, limits: options.Limits, rules: maxRules,
		reserve: options.Reserve}
	if err := p.file(); err != nil {
		if bounded.violation != nil {
			err = bounded.violation
		}
		return nil, explain(err)
	}
	if options.LateSourceRoot != nil {
		var err error
		if options.SourceRoot, err = options.LateSourceRoot(); err != nil {
			return nil, err
		}
	}
	log := &Log{Runs: make([]Run, 0, len(p.runs)), Bytes: bounded.read}
	expanded := &budget{left: options.Limits.Bytes}
	for i := range p.runs {
		log.Runs = append(log.Runs, normalise(&p.runs[i], options.SourceRoot, expanded))
		p.runs[i] = wireRun{}
		if !expanded.spend(0) {
			return nil, fmt.Errorf("its paths and messages unfold to more than %d MiB: no scanner writes that",
				options.Limits.Bytes>>20)
		}
	}
	return log, nil
}

func explain(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the file is empty: the scanner may have failed before it wrote anything")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("not JSON: the file ends too early and is probably truncated")
	case errors.As(err, &syntax) && syntax.Offset == 1 && strings.Contains(syntax.Error(), `'\x1f'`):
		return errors.New("not JSON: it begins as a file that is compressed with gzip. Decompress it " +
			"(gunzip -c FILE | kubectl findings import - ...), or name gzip in Content-Encoding when it is uploaded")
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: at byte %d: %w", syntax.Offset, syntax)
	default:
		return err
	}
}

// wireRun is a run as read. Members may come in any order, so nothing is computed before the end.
type wireRun struct {
	tool        wireTool
	invocations []wireInvocation
	baseIDs     map[string]wireArtifactLocation
	artifacts   []wireArtifact
	provenance  []wireProvenance
	automation  wireAutomation
	// pointers, because a growing list of structs takes twice its memory
	results      []*wireResult
	resultsGiven bool
}

// parser reads a file member by member, and keeps only what is used.
type parser struct {
	decoder *json.Decoder
	source  *boundedReader
	limits  Limits
	runs    []wireRun
	results int
	// held is how many bytes of memory the entries of the lists read so far take.
	held int64
	// rules is how many more rules are allowed.
	rules int
	// reserve is Options.Reserve.
	reserve func(bytes int) error
}

func (p *parser) file() error {
	if err := p.openObject("the file"); err != nil {
		return err
	}
	var fileVersion text
	versionGiven, runsGiven := false, false
	err := p.members(func(name string) error {
		switch name {
		case "version":
			versionGiven = true
			if err := p.decode(name, &fileVersion); err != nil {
				return err
			}
			return checkVersion(string(fileVersion))
		case "runs":
			given, err := p.array("runs", p.limits.Runs, p.run)
			runsGiven = given
			return err
		}
		return p.skip()
	})
	switch {
	case err != nil:
		return unexpectedEOF(err)
	case !versionGiven:
		return errors.New(`not SARIF 2.1.0: it has no member "version"`)
	case !runsGiven:
		return errors.New(`not SARIF 2.1.0: it has no member "runs"`)
	case len(p.runs) == 0:
		return errors.New("it holds no run, so there is nothing to import: check that the scanner ran")
	}
	return p.end()
}

// end reads to the end of the file, where a damaged download may first show.
func (p *parser) end() error {
	var syntax *json.SyntaxError
	switch _, err := p.decoder.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil, errors.As(err, &syntax):
		return errors.New("not JSON: something follows the end of the document")
	default:
		return err
	}
}

func checkVersion(v string) error {
	if v != version {
		return fmt.Errorf("not SARIF 2.1.0: its version is %q; have the scanner write 2.1.0, or convert the file (`sarif transform` of Microsoft's SARIF Multitool does)", v)
	}
	return nil
}

func (p *parser) run() error {
	if err := p.openObject(fmt.Sprintf("runs[%d]", len(p.runs))); err != nil {
		return err
	}
	var run wireRun
	err := p.members(func(name string) error {
		switch name {
		case "tool":
			return p.tool(&run.tool)
		case "invocations":
			return p.invocations(&run.invocations)
		case "originalUriBaseIds":
			if err := p.decode(name, &run.baseIDs); err != nil {
				return err
			}
			return p.hold(listed(reflect.ValueOf(run.baseIDs)))
		case "artifacts":
			return each(p, name, maxArtifacts, &run.artifacts, reader[wireArtifact](p, name))
		case "automationDetails":
			return p.decode(name, &run.automation)
		case "versionControlProvenance":
			return each(p, name, maxParts, &run.provenance, reader[wireProvenance](p, name))
		case "results":
			given, err := p.array(fmt.Sprintf("runs[%d].results", len(p.runs)), p.limits.Results, func() error {
				return p.result(&run)
			})
			run.resultsGiven = given
			return err
		}
		return p.skip()
	})
	p.runs = append(p.runs, run)
	return err
}

func (p *parser) result(run *wireRun) error {
	if p.results++; p.results > p.limits.Results {
		return fmt.Errorf("more than %d results: %s", p.limits.Results, reportLess)
	}
	var raw json.RawMessage
	if err := p.decoder.Decode(&raw); err != nil {
		return err
	}
	if err := p.fill(int64(len(raw))); err != nil {
		return err
	}
	var result wireResult
	switch {
	case len(raw) == 0 || raw[0] != '{':
		result.notAnObject = true
	case len(raw) > maxElement:
		result.tooLarge = true
	default:
		if err := lenient(json.Unmarshal(raw, &result)); err != nil {
			return err
		}
		result.trim()
		if err := p.hold(listed(reflect.ValueOf(result))); err != nil {
			return err
		}
	}
	run.results = append(run.results, &result)
	return nil
}

// members calls visit, which reads the value, for each member of the opened object. Duplicate members are refused,
// because different readers would see different files.
func (p *parser) members(visit func(name string) error) error {
	seen := map[string]bool{}
	for p.decoder.More() {
		token, err := p.decoder.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok {
			return fmt.Errorf("not JSON: a member's name is %v", token)
		}
		if seen[name] {
			return fmt.Errorf("not SARIF 2.1.0: the member %q occurs twice", name)
		}
		seen[name] = true
		if err := visit(name); err != nil {
			return err
		}
	}
	_, err := p.decoder.Token()
	return err
}

// array calls element, which reads the element, for each element. It reports whether there was an array; null is not
// one.
func (p *parser) array(what string, most int, element func() error) (bool, error) {
	token, err := p.decoder.Token()
	if err != nil {
		return false, err
	}
	if token == nil {
		return false, nil
	}
	if token != json.Delim('[') {
		return false, fmt.Errorf("not SARIF 2.1.0: %s is not an array", what)
	}
	n := 0
	return true, p.entries(func() error {
		if n++; n > most {
			return fmt.Errorf("%s holds more than %d entries: %s", what, most, reportLess)
		}
		return element()
	})
}

// openObject reads the opening brace of an object, and refuses any other value.
func (p *parser) openObject(what string) error {
	token, err := p.decoder.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		return fmt.Errorf("not SARIF 2.1.0: %s is not an object", what)
	}
	return nil
}

// decode reads one value as a whole.
func (p *parser) decode(what string, into any) error {
	var raw json.RawMessage
	if err := p.decoder.Decode(&raw); err != nil {
		return err
	}
	if len(raw) > maxElement {
		return fmt.Errorf("%s holds a value of more than %d MiB: no scanner writes that", what, maxElement>>20)
	}
	return lenient(json.Unmarshal(raw, into))
}

// hold counts the memory of list entries, in bytes, and refuses a file whose entries take too much.
func (p *parser) hold(bytes int64) error {
	p.held += bytes
	if most := spareLists + listsPerByte*p.source.read; p.held > most {
		return fmt.Errorf("its lists expand to more than %d MiB, because their entries are nearly empty: no scanner writes "+
			"that. Have the scanner report less", most>>20)
	}
	return nil
}

// fill reserves what a result or rule of that many bytes lacks of MinEntry.
func (p *parser) fill(bytes int64) error {
	if p.reserve == nil || bytes >= MinEntry {
		return nil
	}
	return p.reserve(int(MinEntry - bytes))
}

// each reads a list entry by entry; read also counts the lists within an entry. Any other value counts as missing.
func each[T any](p *parser, what string, most int, into *[]T, read func(into *T) error) error {
	return p.list(func() error { return next(p, what, most, into, read) })
}

// next reads one more entry of a list.
func next[T any](p *parser, what string, most int, into *[]T, read func(into *T) error) error {
	if len(*into) == most {
		return fmt.Errorf("%s holds more than %d entries: no scanner writes that", what, most)
	}
	var entry T
	if err := read(&entry); err != nil {
		return err
	}
	*into = append(*into, entry)
	return p.hold(sizeOf(reflect.TypeFor[T]()))
}

// reader returns the function that reads an entry without lists as a whole.
func reader[T any](p *parser, what string) func(into *T) error {
	return func(into *T) error { return p.decode(what, into) }
}

// invocations reads a list of invocations, or a single one without a list. Any other value may report a failure, so it
// counts as an unreadable invocation; null counts as missing.
func (p *parser) invocations(into *[]wireInvocation) error {
	const what = "invocations"
	read, err := p.listOrObject(func() error { return next(p, what, maxParts, into, p.invocation) },
		func() error { return next(p, what, maxParts, into, p.onlyInvocation) })
	if !read {
		*into = []wireInvocation{{unread: true}}
	}
	return err
}

func (p *parser) invocation(into *wireInvocation) error {
	opened, err := p.openOrSkip('{')
	if into.unread = !opened; err != nil || !opened {
		return err
	}
	return p.invocationMembers(into)
}

// onlyInvocation reads an object without a list. Converters from XML wrap the list in one, so it is an invocation only
// if it has executionSuccessful, which SARIF 2.1.0, 3.20.14, requires.
func (p *parser) onlyInvocation(into *wireInvocation) error {
	err := p.invocationMembers(into)
	into.unread = into.ExecutionSuccessful == truthAbsent
	return err
}

// invocationMembers reads the overrides one by one, because a few bytes become a large entry.
func (p *parser) invocationMembers(into *wireInvocation) error {
	fields := map[string]any{"executionSuccessful": &into.ExecutionSuccessful, "startTimeUtc": &into.StartTimeUTC,
		"workingDirectory": &into.WorkingDirectory}
	return p.members(func(name string) error {
		if field, known := fields[name]; known {
			return p.decode(name, field)
		}
		switch name {
		case "ruleConfigurationOverrides":
			return each(p, name, maxRules, &into.RuleConfigurationOverrides, reader[wireOverride](p, name))
		case "toolExecutionNotifications":
			return p.notifications(name, &into.Execution)
		case "toolConfigurationNotifications":
			return p.notifications(name, &into.Configuration)
		}
		return p.skip()
	})
}

// notifications reads a list of notifications, or a single one without a list. It reads them one by one, because some
// tools write one per file. Any other value has no level, so it is no error.
func (p *parser) notifications(what string, into *wireNotifications) error {
	add := func(read func(one *wireNotification) error) error {
		var one wireNotification
		if err := read(&one); err != nil {
			return err
		}
		if one.Level == "error" {
			into.add(&one)
		}
		return nil
	}
	_, err := p.listOrObject(func() error { return add(reader[wireNotification](p, what)) },
		func() error { return add(p.notificationMembers) })
	return err
}

func (p *parser) notificationMembers(into *wireNotification) error {
	fields := map[string]any{"level": &into.Level, "message": &into.Message, "locations": &into.Locations}
	return p.members(func(name string) error {
		if field, known := fields[name]; known {
			return p.decode(name, field)
		}
		return p.skip()
	})
}

// tool reads rules one by one, because there may be thousands with long texts.
func (p *parser) tool(into *wireTool) error {
	return p.object(func(name string) error {
		switch name {
		case "driver":
			return p.component(&into.Driver)
		case "extensions":
			return each(p, name, maxParts, &into.Extensions, p.component)
		}
		return p.skip()
	})
}

func (p *parser) component(into *wireComponent) error {
	fields := map[string]*text{"name": &into.Name, "guid": &into.GUID, "semanticVersion": &into.SemanticVersion,
		"version": &into.Version}
	return p.object(func(name string) error {
		if field, known := fields[name]; known {
			return p.decode(name, field)
		}
		if name != "rules" {
			return p.skip()
		}
		return p.list(func() error {
			if p.rules--; p.rules < 0 {
				return fmt.Errorf("more than %d rules: no scanner has them", maxRules)
			}
			var rule wireRule
			before := p.decoder.InputOffset()
			if err := p.decode(name, &rule); err != nil {
				return err
			}
			if err := p.fill(p.decoder.InputOffset() - before); err != nil {
				return err
			}
			rule.trim()
			into.Rules = append(into.Rules, rule)
			return p.hold(listed(reflect.ValueOf(rule)))
		})
	})
}

// object is members for a value that may not be an object: any other counts as an empty one.
func (p *parser) object(visit func(name string) error) error {
	opened, err := p.openOrSkip('{')
	if err != nil || !opened {
		return err
	}
	return p.members(visit)
}

// list calls element, which reads the entry, for each entry. Any other value counts as an empty list.
func (p *parser) list(element func() error) error {
	opened, err := p.openOrSkip('[')
	if err != nil || !opened {
		return err
	}
	return p.entries(element)
}

// listOrObject calls element for each entry of a list, or object once for a single value without a list, to read the
// members of the opened object. It reports whether the value was either of them, or null.
func (p *parser) listOrObject(element, object func() error) (read bool, err error) {
	token, err := p.decoder.Token()
	switch {
	case err != nil || token == nil:
		return true, err
	case token == json.Delim('['):
		return true, p.entries(element)
	case token == json.Delim('{'):
		return true, object()
	}
	return false, nil
}

// entries calls element for each entry of the list that was opened; element reads it.
func (p *parser) entries(element func() error) error {
	for p.decoder.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := p.decoder.Token()
	return err
}

// openOrSkip reads the opening delimiter of the expected value; it skips any other value.
func (p *parser) openOrSkip(delimiter json.Delim) (bool, error) {
	token, err := p.decoder.Token()
	if err != nil || token == delimiter {
		return err == nil, err
	}
	depth := 0
	for {
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return false, nil
		}
		if token, err = p.decoder.Token(); err != nil {
			return false, err
		}
	}
}

func (p *parser) skip() error {
	var ignored json.RawMessage
	return p.decoder.Decode(&ignored)
}

// unexpectedEOF distinguishes a file that ends too early from an empty one.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
