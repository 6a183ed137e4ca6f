package sarif

import (
	"fmt"
	"regexp"
	"strings"
)

// wireNotifications summarizes the notifications of level error. According to SARIF 2.1.0, 3.58.6, an error means that
// the run stopped, or that its results are incorrect or incomplete.
type wireNotifications struct {
	// general counts errors that name no file; cause is the message of the first.
	general int
	cause   text
	// ofFiles counts errors about a file; file is that of the first.
	ofFiles int
	file    wireArtifactLocation
}

type wireNotification struct {
	Level     word        `json:"level"`
	Message   wireMessage `json:"message"`
	Locations []struct {
		PhysicalLocation struct {
			ArtifactLocation wireArtifactLocation `json:"artifactLocation"`
		} `json:"physicalLocation"`
	} `json:"locations"`
}

func (n *wireNotifications) add(one *wireNotification) {
	for _, l := range one.Locations {
		file := l.PhysicalLocation.ArtifactLocation
		if file.URI == "" && file.Index.value(-1) < 0 {
			continue
		}
		if n.ofFiles++; n.ofFiles == 1 {
			n.file = file
		}
		return
	}
	if n.general++; n.general == 1 {
		n.cause = text(FirstOf(string(one.Message.Text), string(one.Message.Markdown)))
	}
}

// maxCause bounds how much of a notification's message is repeated, in bytes.
const maxCause = 512

var (
	// urisInText matches a URI in a message, with what follows it up to a blank: possibly a list, such as GOPROXY.
	urisInText  = regexp.MustCompile(`[A-Za-z][\w+.-]*://\S+`)
	schemeOfURI = regexp.MustCompile(`[A-Za-z][\w+.-]*://`)
)

// because returns the end of a sentence about the errors: the message of the first one, without the user names and
// passwords of its URIs.
func (n *wireNotifications) because() string {
	if n.cause == "" {
		return ""
	}
	cause := urisInText.ReplaceAllStringFunc(string(n.cause), withoutUserOfEach)
	return ": " + shorten(strings.Join(strings.Fields(cause), " "), maxCause)
}

// withoutUserOfEach removes user name and password from each URI of a list, whatever separates them.
func withoutUserOfEach(uris string) string {
	var out strings.Builder
	from := 0
	for _, at := range schemeOfURI.FindAllStringIndex(uris, -1) {
		out.WriteString(WithoutUser(uris[from:at[0]]))
		from = at[0]
	}
	out.WriteString(WithoutUser(uris[from:]))
	return out.String()
}

// warnings explain the errors that do not make the run incomplete: those about one file, and those about the tool's
// configuration, which some tools write even if they found everything.
func (n *normaliser) warnings() (out []string) {
	for i := range n.wire.invocations {
		invocation := &n.wire.invocations[i]
		for _, list := range []*wireNotifications{&invocation.Execution, &invocation.Configuration} {
			if list.ofFiles > 0 {
				file := FirstOf(n.paths.path(list.file), "an unknown file")
				out = append(out, fmt.Sprintf("the tool reports errors about files (%d, the first about %s): "+
					"findings that it missed there count as fixed", list.ofFiles, file))
			}
		}
		if list := &invocation.Configuration; list.general > 0 {
			out = append(out, fmt.Sprintf("the tool reports errors in its configuration (%d), so it may have missed findings, "+
				"which count as fixed%s", list.general, list.because()))
		}
		if len(out) > maxWarnings {
			return out[:maxWarnings]
		}
	}
	return out
}

// maxWarnings bounds the warnings of a run.
const maxWarnings = 8
