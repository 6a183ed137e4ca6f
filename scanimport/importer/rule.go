package importer

import "github.com/appsec-dev/findings-operator/scanimport/sarif"

// ruleTexts are the parts of a rule's texts that the texts of its findings are built from. They are built once per
// rule, since a rule may have many results and long texts.
type ruleTexts struct {
	// title is the title of all findings of the rule; empty: the message comes first, and otherTitle is used without
	// one.
	title, otherTitle string
	description       string
	// advice is what to do, link where to read it. One of them is empty.
	advice, link string
}

func textsOf(rule *sarif.Rule) *ruleTexts {
	advice := rule.Advice()
	t := &ruleTexts{
		title: sentence(rule.ShortDescription),
		otherTitle: sarif.FirstOf(sentence(rule.FullDescription), line(rule.ShortDescription),
			line(rule.Name)),
		description: cut(paragraph(rule.FullDescription), maxDescription),
		advice:      cut(paragraph(advice), maxRemediation),
	}
	if !describes(t.title) {
		t.title = ""
	}
	if webAddress.MatchString(t.advice) {
		t.advice, t.link = "", "See "+line(advice)
	}
	return t
}

// ruleTexts returns the texts of a rule.
func (c *scanContext) ruleTexts(rule *sarif.Rule) *ruleTexts {
	if c.rules == nil {
		c.rules = map[*sarif.Rule]*ruleTexts{}
	}
	if c.rules[rule] == nil {
		c.rules[rule] = textsOf(rule)
	}
	return c.rules[rule]
}
