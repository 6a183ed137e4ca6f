package importer

import "github.com/appsec-dev/findings-operator/scanimport/sarif"

// ruleTexts holds the parts of a rule's texts from which the texts of its findings are built. They are built once per
// rule, because a rule may have many results and long texts.
type ruleTexts struct {
	// title is the title of all findings of the rule. If it is empty, the message is used, or otherTitle without a
	// message.
	title, otherTitle string
	description       string
	// advice tells what to do, link where to read it. One of them is empty.
	advice, link string
	// ofSecret are the texts of a finding that shows a secret: without those that quote code.
	ofSecret *ruleTexts
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
	t.ofSecret = t
	if rule.QuotesMatch() {
		name := line(sarif.FirstOf(rule.ShortDescription, rule.Name))
		t.ofSecret = &ruleTexts{title: t.title, otherTitle: name, link: t.link}
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
