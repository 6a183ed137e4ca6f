package load

import (
	"bytes"
	"fmt"
)

// Request returns an HTTP/1.1 request with the body, if any, and further header lines, as "Name:
// value".
func Request(method, host, path string, body []byte, headers ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, host)
	for _, header := range headers {
		fmt.Fprintf(&b, "%s\r\n", header)
	}
	if body != nil {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}
