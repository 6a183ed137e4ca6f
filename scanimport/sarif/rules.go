package sarif

import (
	"slices"
	"strings"
)

// ruleBook finds the rule of a result: by index, in the driver or an extension, by id or by GUID.
type ruleBook struct {
	// components[0] is the driver; extension i is components[i+1].
	components []component
	// byGUID is by GUIDs in lower case.
	byID, byGUID map[string]*Rule
	overrides    map[string]string
}

type component struct {
	name, guid string
	rules      []*Rule
}

func newRuleBook(run *wireRun) *ruleBook {
	book := &ruleBook{byID: map[string]*Rule{}, byGUID: map[string]*Rule{}, overrides: map[string]string{}}
	book.add(&run.tool.Driver)
	for i := range run.tool.Extensions {
		book.add(&run.tool.Extensions[i])
	}
	book.addFormerIDs()
	for _, invocation := range run.invocations {
		for _, o := range invocation.RuleConfigurationOverrides {
			id := string(o.Descriptor.ID)
			if id == "" {
				if rule := book.reference(&o.Descriptor); rule != nil {
					id = rule.ID
				}
			}
			if id != "" && o.Configuration.Level != "" {
				book.overrides[id] = string(o.Configuration.Level)
			}
		}
	}
	return book
}

func (b *ruleBook) add(wire *wireComponent) {
	c := component{name: string(wire.Name), guid: string(wire.GUID), rules: make([]*Rule, 0, len(wire.Rules))}
	for i := range wire.Rules {
		rule := newRule(&wire.Rules[i])
		c.rules = append(c.rules, rule)
		// An id finds the first of several rules with that id; an index finds the others.
		if _, there := b.byID[rule.ID]; !there && rule.ID != "" {
			b.byID[rule.ID] = rule
		}
		if guid := strings.ToLower(string(wire.Rules[i].GUID)); guid != "" && b.byGUID[guid] == nil {
			b.byGUID[guid] = rule
		}
	}
	b.components = append(b.components, c)
}

// addFormerIDs adds to each rule its former ids. A rule may be described several times.
func (b *ruleBook) addFormerIDs() {
	ids := map[string]string{} // of the rules by a deprecated id; "" if there are several
	each := func(visit func(rule *Rule, former string)) {
		for _, c := range b.components {
			for _, rule := range c.rules {
				for _, former := range rule.deprecatedIDs {
					if former != "" && rule.ID != "" && b.byID[former] == nil {
						visit(rule, former)
					}
				}
			}
		}
	}
	each(func(rule *Rule, former string) {
		if id, ok := ids[former]; ok && id != rule.ID {
			ids[former] = ""
		} else {
			ids[former] = rule.ID
		}
	})
	each(func(rule *Rule, former string) {
		if ids[former] == rule.ID {
			rule.Formerly = append(rule.Formerly, former)
		}
	})
}

func newRule(w *wireRule) *Rule {
	rule := &Rule{
		ID:               string(w.ID),
		Name:             string(w.Name),
		ShortDescription: FirstOf(string(w.ShortDescription.Text), string(w.ShortDescription.Markdown)),
		FullDescription:  FirstOf(string(w.FullDescription.Text), string(w.FullDescription.Markdown)),
		Help:             FirstOf(string(w.Help.Text), string(w.Help.Markdown)),
		HelpURI:          string(w.HelpURI),
		Precision:        string(w.Properties.Precision),
		level:            string(w.DefaultConfiguration.Level),
		securitySeverity: rating(w.Properties.SecuritySeverity),
		severityWord: FirstOf(rating(w.Properties.Severity), rating(w.Properties.IssueSeverity),
			rating(w.Properties.CVSS4Severity), rating(w.Properties.CVSS3Severity), rating(w.Properties.CVSS2Severity)),
		problemSeverity: rating(w.Properties.ProblemSeverity),
		messages:        make(map[string]string, len(w.MessageStrings)),
	}
	if rule.helpMarkdown = string(w.Help.Markdown); rule.helpMarkdown == rule.Help {
		rule.helpMarkdown = ""
	}
	for _, tag := range w.Properties.Tags {
		rule.Tags = append(rule.Tags, string(tag))
	}
	for _, cvss := range []text{w.Properties.CVSS4, w.Properties.CVSS3, w.Properties.CVSS2} {
		rule.cvss = append(rule.cvss, rating(cvss))
	}
	for _, purl := range w.Properties.PURLs {
		if found := parsePURL(string(purl)); found != nil {
			rule.packages = append(rule.packages, found)
		}
	}
	for _, id := range w.DeprecatedIDs {
		rule.deprecatedIDs = append(rule.deprecatedIDs, string(id))
	}
	for id, m := range w.MessageStrings {
		rule.messages[id] = FirstOf(string(m.Text), string(m.Markdown))
	}
	rule.CWEs = ruleCWEs(w)
	return rule
}

// rating returns a rule's score or word for the severity; "" if it is too long for one, because it is read again for
// each result.
func rating(t text) string {
	if s := strings.TrimSpace(string(t)); len(s) <= maxWord {
		return s
	}
	return ""
}

// reference returns the rule of a reference without an id; nil if it is not described.
func (b *ruleBook) reference(ref *wireReference) *Rule {
	if rule := b.at(b.component(ref.ToolComponent), ref.Index.value(-1)); rule != nil {
		return rule
	}
	return b.byGUID[strings.ToLower(string(ref.GUID))]
}

// of returns the rule of a result, never nil, and its id. ok is false if the result names its rule only by an index
// that is out of range or by an unknown GUID.
func (b *ruleBook) of(wire *wireResult) (rule *Rule, id string, notes []string, ok bool) {
	id = FirstOf(string(wire.RuleID), string(wire.Rule.ID))
	if wire.RuleID != "" && wire.Rule.ID != "" && wire.RuleID != wire.Rule.ID {
		notes = append(notes, NoteRuleConflict)
	}
	byGUID := b.byGUID[strings.ToLower(string(wire.Rule.GUID))]
	index := wire.Rule.Index.value(wire.RuleIndex.value(-1))
	if index >= 0 {
		rule = b.at(b.component(wire.Rule.ToolComponent), index)
		if rule != nil && (id == "" || matches(id, rule.ID)) {
			return rule, FirstOf(id, rule.ID, rule.Name), notes, true
		}
		notes = append(notes, NoteRuleIndex)
	}
	if id == "" && byGUID == nil && (index >= 0 || wire.Rule.GUID != "") {
		return &Rule{}, "", nil, false
	}
	if rule = b.find(id); rule == nil {
		rule = byGUID
	}
	if rule == nil {
		rule = &Rule{ID: id}
		notes = append(notes, NoteUnknownRule)
	}
	return rule, FirstOf(id, rule.ID, rule.Name), notes, true
}

// component returns the index in components, the driver's if the reference is empty; -1 if it does not exist.
func (b *ruleBook) component(ref wireComponRef) int {
	if i := ref.Index.value(-1); i >= 0 {
		if i+1 < len(b.components) {
			return i + 1
		}
		return -1
	}
	if ref.GUID == "" && ref.Name == "" {
		return 0
	}
	i := slices.IndexFunc(b.components, func(c component) bool {
		return ref.GUID != "" && strings.EqualFold(c.guid, string(ref.GUID))
	})
	if i >= 0 || ref.Name == "" {
		return i
	}
	return slices.IndexFunc(b.components, func(c component) bool {
		return (ref.GUID == "" || c.guid == "") && c.name == string(ref.Name)
	})
}

func (b *ruleBook) at(component, index int) *Rule {
	if component < 0 || index < 0 || index >= len(b.components[component].rules) {
		return nil
	}
	return b.components[component].rules[index]
}

// find looks up an id; a hierarchical one ("A/B/C") falls back to its parents.
func (b *ruleBook) find(id string) *Rule {
	for level := 0; id != "" && level < maxLevels; level++ {
		if rule := b.byID[id]; rule != nil {
			return rule
		}
		cut := strings.LastIndexByte(id, '/')
		if cut < 0 {
			return nil
		}
		id = id[:cut]
	}
	return nil
}

// matches reports whether a result's rule id can belong to the rule with that id.
func matches(id, ruleID string) bool {
	return id == ruleID || ruleID == "" || strings.HasPrefix(id, ruleID+"/")
}

// level returns the result's own level, or else the one derived as in SARIF 2.1.0, 3.27.10.
func (b *ruleBook) level(wire *wireResult, rule *Rule, id string) string {
	if !isLevel(string(wire.Level)) && wire.Kind != "" && wire.Kind != "fail" {
		return "none"
	}
	return FirstOf(b.given(wire, rule, id), "warning")
}

// given returns the level that the file gives a result: its own, else an override's, else the rule's; empty if there is
// none.
func (b *ruleBook) given(wire *wireResult, rule *Rule, id string) string {
	for _, level := range []string{string(wire.Level), b.overrides[id], b.overrides[rule.ID], rule.level} {
		if isLevel(level) {
			return level
		}
	}
	return ""
}

func isLevel(level string) bool {
	switch level {
	case "error", "warning", "note", "none":
		return true
	}
	return false
}
