package sarif

import (
	"regexp"
	"strings"
)

const (
	// sensitive matches words for credentials.
	sensitive = `(?:secrets?|credentials?|passwords?|passwd|passphrases?|keys?|tokens?)`
	// inCode matches what rules call a credential in code, so no key alone: it may be one of a map.
	inCode = `(?:secrets?|credentials?|passwords?|(?:access )?tokens?|(?:api|private|access|secret|encryption) keys?)`
	// beginning matches what may stand before the credential in the name of a rule about the place of one. "No password
	// in configuration file", "Empty password in URL" and "Sending password in URL" show none.
	beginning = `(?:^|\bmanagement |misconfiguration |^cwe \d+ |^(?:js|ts|cs|java|py|go|rb|cpp|php|spring) )` +
		`(?:(?:plain ?text|clear ?text|unencrypted|possible|potential|database|db|aws|git ?hub|user ?names? (?:and|or)) )*`
)

// secretRule matches, in words, the names of rules about credentials in code. A word for credentials alone is not
// enough: the code of such a rule is not stored, and users need to see the code of a missing CSRF token.
var secretRule = regexp.MustCompile(strings.Join([]string{
	// "Do not hard-code encryption key", "Credentials should not be hard-coded"
	`\bhard ?coded?(?: \w+){0,3} ` + sensitive + `\b`,
	`\b` + sensitive + `(?: \w+){0,3} hard ?coded?\b`,
	// KICS
	`\bpasswords and secrets\b`,
	// DevSkim: "Do not store tokens or keys in source code"
	`\bstor(?:e|ed|ing)(?: \w+){0,4} ` + sensitive + `(?: \w+){0,3} in (?:the )?(?:source )?code\b`,
	// CodeQL, Fortify and titles of CWEs: "Cleartext password in configuration file"
	beginning + `(?:passwords?|credentials?)(?: stored| found)?` +
		` in (?:a |the )?(?:\w+ )?(?:config(?:uration)?|propert(?:y|ies)|xml|ya?ml|json)(?: files?)?$`,
	// "Password in source code", "Database password in connection string"
	beginning + inCode + `(?: stored| found)? in (?:a |the )?` +
		`(?:source|(?:source )?code|(?:code )?comments?|ur[il]s?|connection strings?|repositor(?:y|ies))$`,
	// eslint-plugin-no-secrets and Biome, but not "No secrets in logs"
	`^no secrets no pattern match$`,
	`\bno secrets?$`,
	// "No password in source code" forbids one: only configuration may lack it
	`^no (?:secrets?|passwords?|credentials?)(?: \w+){0,3} in (?:the )?(?:source )?code\b`,
	// kinds of keys: "detected-sendgrid-api-key", "Private key detected"
	`^(?:\w+ ){0,4}(?:api|private) keys?(?: (?:detected|found|exposed|leaked|disclosed|disclosure))?$`,
	// "GitHub personal access token detected", "Private key checked into repository"
	`^(?:\w+ ){0,4}(?:secrets?|credentials|access tokens?|access keys?) (?:detected|found|exposed|leaked|disclosed)$`,
	`^(?:\w+ ){0,4}` + inCode + ` (?:committed|checked in(?:to)?)(?: (?:(?:in|to) )?(?:the )?(?:git )?repository)?$`,
	// "Leaked AWS secret access key", "Generic secret"
	`^(?:exposed|leaked|embedded|committed)(?: \w+){0,3} ` + inCode + `$`,
	`^generic ` + inCode + `$`,
	// Checkov: CKV_SECRET_6 is "Base64 High Entropy String"
	`^ckv secret \d+$`,
}, "|"))

var (
	afterLower   = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	afterCapital = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
	noWord       = regexp.MustCompile(`[^a-z0-9]+`)
)

// maxName bounds how many bytes of a rule's texts are searched.
const maxName = 512

// wordsOf returns the words of a sentence or a name, in lower case: "DoNotStoreAPIKeys" has five.
func wordsOf(s string) string {
	s = afterLower.ReplaceAllString(shorten(s, maxName), "$1 $2")
	s = strings.ToLower(afterCapital.ReplaceAllString(s, "$1 $2"))
	return strings.TrimSpace(noWord.ReplaceAllString(s, " "))
}

// NamesSecret reports whether the rule is about credentials in code, by its id, name, short description and tags. It is
// computed once per rule.
func (r *Rule) NamesSecret() bool {
	if r.namesSecret == nil {
		names := strings.EqualFold(r.Name, "secret") || tagged(r.Tags)
		for _, s := range []string{r.ID, r.Name, r.ShortDescription} {
			names = names || secretRule.MatchString(wordsOf(s))
		}
		r.namesSecret = &names
	}
	return *r.namesSecret
}

// matchLine matches where Trivy quotes, in the help of a rule about secrets, the line in which it found one.
var matchLine = regexp.MustCompile(`(?m)^Match:`)

// QuotesMatch reports whether the rule's help and full description quote the code of one of its results. Trivy writes
// that of the rule's last result, whichever result refers to the rule.
func (r *Rule) QuotesMatch() bool { return matchLine.MatchString(r.Help) }

// tagged reports whether one of the tags is for secrets.
func tagged[T ~string](tags []T) bool {
	for _, tag := range tags {
		if s := string(tag); strings.EqualFold(s, "secret") || strings.EqualFold(s, "secrets") ||
			secretRule.MatchString(wordsOf(s)) {
			return true
		}
	}
	return false
}
