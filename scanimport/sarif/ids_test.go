package sarif

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyID finds what findID finds, but takes 200 ns a byte.
var anyID = regexp.MustCompile(`(?i)\b(?:CVE-[0-9]{4}-[0-9]{4,19}` +
	`|GHSA(?:-[23456789cfghjmpqrvwx]{4}){3}` +
	`|(?:GO|RUSTSEC|PYSEC|OSV|MAL|RSEC|HSEC|UVI|CVE-LOCAL)-[0-9]{4}-[0-9]{1,19}` +
	`|SNYK-[A-Z0-9]{1,32}-[A-Z0-9_]{1,96}-[0-9]{1,19}` +
	`|(?:RHSA|RHBA|RHEA|ELSA|ALSA|RLSA)-[0-9]{4}:[0-9]{1,9}` +
	`|XRAY-[0-9]{1,19}` +
	`|(?:BDSA|TEMP|DSA|DLA|USN|GLSA|ALAS[0-9A-Z]*|SUSE-SU)-[0-9][0-9A-Z:.-]{0,63}[0-9A-Z])(?:_|\b)`)

var (
	digits, letters = strings.Repeat("7", 20), strings.Repeat("x", 97)
	idWords         = append(regexp.MustCompile(`[A-Z]{2,}`).FindAllString(anyID.String(), -1), "ALAS2", "ALAS_2", "SUSE-SU", "CVE-LOCAL")
	idRests         = []string{
		"-2024-1234", "-2024-" + digits[:19], "-2024-" + digits, "-1", "-2024:1", "-2024:" + digits[:10], "-2cfg-hjmp-qrvw", "-2cfg-hjmp",
		"-JS-LODASH_ES-1", "-" + letters[:32] + "-" + letters[:96] + "-" + digits[:19], "-" + letters[:33] + "-x-1", "-x-" + letters + "-1",
		"-0" + letters[:64], "-0" + letters[:65], "-0.", "-00.1-1:A.",
	}
)

// textWithIDs draws texts from parts of ids, valid ones among them, and what may stand between them.
var textWithIDs = rapid.Custom(func(t *rapid.T) string {
	word, rest := rapid.SampledFrom(idWords), rapid.SampledFrom(idRests)
	between := rapid.SampledFrom([]string{"", "", " ", "-", "_", ".", ", ", "x", "1", "é", "\xff"})
	var text strings.Builder
	for _, part := range rapid.SliceOfN(rapid.OneOf(word, rest, between), 0, 12).Draw(t, "parts") {
		if rapid.Bool().Draw(t, "lower") {
			part = strings.ToLower(part)
		}
		text.WriteString(part)
	}
	return text.String()
})

func TestIDsAreFoundAsByOneExpression(t *testing.T) {
	compare := func(t rapid.TB, s string) {
		wantBegin, wantEnd := 0, 0
		if at := anyID.FindStringIndex(s); at != nil {
			wantBegin, wantEnd = at[0], at[1]
		}
		if begin, end := findID(s); begin != wantBegin || end != wantEnd {
			t.Fatalf("in %q: found %q, want %q", s, s[begin:end], s[wantBegin:wantEnd])
		}
	}
	for _, word := range idWords {
		for _, rest := range idRests {
			for _, after := range []string{"", "_", "x"} {
				compare(t, word+rest+after)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) { compare(t, textWithIDs.Draw(t, "text")) })
}
